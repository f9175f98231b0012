//! One server: its task starts it, keeps its list of tools, and restarts it when it has ended by itself.
//!
//! Invariant: a server without threads ends a minute later, and its task with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use codex_config::{Env, McpServer, McpTransport};
use codex_login::ServerLogin;
use codex_wire::mcp::Tool;
use serde_json::json;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::approvals::Approvals;
use crate::connection::{Connection, Notice, RequestError};
use crate::http::{self, HttpSession};
use crate::names;
use crate::remembered::{Remembered, State};
use crate::session::{self, Introduction};
use crate::stdio::{self, Process};

/// The time that a server stays without threads.
const UNUSED: Duration = Duration::from_secs(60);
/// The maximum number of restarts, and the time after which a server counts as healthy again.
const MOST_RESTARTS: u32 = 5;
const HEALTHY: Duration = Duration::from_secs(60);
/// The first and the longest wait before a restart.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The state of a server.
#[derive(Clone)]
pub(crate) enum Phase {
    Starting,
    Ready(Arc<Ready>),
    /// It did not start, or has ended too often, with the reason.
    Failed(Arc<str>),
}

/// A server that can be used.
pub(crate) struct Ready {
    pub(crate) connection: Connection,
    pub(crate) introduction: Introduction,
    pub(crate) tools: Vec<Tool>,
    /// A warning for each tool that is not offered.
    pub(crate) warnings: Vec<String>,
}

/// The part of the configuration that defines a process.
pub(crate) struct Recipe {
    pub(crate) config: McpServer,
    /// The working directory, unless the configuration names one.
    pub(crate) cwd: PathBuf,
    pub(crate) env: Env,
    /// The login to it, if a person can log in there.
    pub(crate) login: Option<ServerLogin>,
}

impl Recipe {
    /// A digest of everything that defines the process or the URL: equal ones can share a server.
    pub(crate) fn digest(&self) -> String {
        // A server is told at the start whether it may ask the model.
        let mut parts: Vec<String> = vec![self.config.sampling.is_some().to_string()];
        match &self.config.transport {
            McpTransport::Stdio(program) => {
                let cwd = program.cwd.as_ref().unwrap_or(&self.cwd);
                parts.extend(["stdio".to_owned(), program.command.clone(), cwd.display().to_string()]);
                parts.push(program.args.len().to_string());
                parts.extend(program.args.iter().cloned());
                parts.extend(program.env.iter().flat_map(|(name, value)| [name.clone(), value.reveal().to_owned()]));
                parts.extend(
                    program.env_vars.iter().map(|name| format!("{name}={}", self.env.text(name).unwrap_or_default())),
                );
            }
            McpTransport::Http(address) => {
                // Servers with different names have different logins.
                let name = self.login.as_ref().map(|_| self.config.name.clone());
                parts.extend(["http".to_owned(), address.url.clone(), name.unwrap_or_default()]);
                parts.push(address.legacy_sse.to_string());
                parts.extend(address.bearer_token_env_var.clone());
                parts.extend(
                    address.http_headers.iter().flat_map(|(name, value)| [name.clone(), value.reveal().to_owned()]),
                );
                parts.extend(
                    address.env_http_headers.iter().flat_map(|(name, variable)| [name.clone(), variable.clone()]),
                );
            }
        }
        names::digest(&parts.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// A digest of everything except for values that may be keys, to find the server again in another run.
    fn digest_without_keys(&self) -> String {
        let mut parts: Vec<&str> = Vec::new();
        let folder;
        match &self.config.transport {
            McpTransport::Stdio(program) => {
                folder = program.cwd.as_ref().unwrap_or(&self.cwd).display().to_string();
                parts.extend(["stdio", &program.command, &folder]);
                parts.extend(program.args.iter().map(String::as_str));
                // Variables follow arguments, and are told from them by this.
                parts.push("\0");
                parts.extend(program.env.keys().chain(&program.env_vars).map(String::as_str));
            }
            McpTransport::Http(address) => {
                parts.extend(["http", &address.url]);
                parts.extend(address.http_headers.keys().chain(address.env_http_headers.keys()).map(String::as_str));
                parts.extend(address.bearer_token_env_var.as_deref());
            }
        }
        names::digest(&parts)
    }
}

/// A server that threads share.
pub(crate) struct Server {
    recipe: Recipe,
    remembered: Remembered,
    pub(crate) approvals: Approvals,
    /// The folder for results that models were not shown as a whole.
    pub(crate) results: PathBuf,
    phase: watch::Sender<Phase>,
    /// The number of threads that use it.
    threads: watch::Sender<usize>,
    /// Increases with every change of the tools.
    version: AtomicU64,
    /// Signals that a failed server should be started again.
    again: Notify,
    /// Signals that a running server should be started again.
    restart: Notify,
}

/// The use of a server by one thread.
pub(crate) struct Lease(Arc<Server>);

impl Lease {
    pub(crate) fn server(&self) -> &Arc<Server> {
        &self.0
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.threads.send_modify(|threads| *threads = threads.saturating_sub(1));
    }
}

/// The end of a server that was running.
enum End {
    /// It has ended by itself, with the reason.
    Ended(String),
    /// Somebody wants it to start again.
    Restart,
}

/// The transport to a server. Dropping it ends a process, and all requests to a URL.
enum Transport {
    Process(Box<Process>),
    Http(HttpSession),
}

impl Transport {
    /// The last lines of stderr, to follow a reason.
    fn stderr(&self) -> String {
        match self {
            Self::Process(process) => process.stderr(),
            Self::Http(_) => String::new(),
        }
    }

    async fn stop(self) {
        match self {
            Self::Process(process) => process.stop().await,
            Self::Http(session) => session.stop().await,
        }
    }
}

/// A started server.
struct Started {
    transport: Transport,
    notices: mpsc::Receiver<Notice>,
    ready: Arc<Ready>,
}

impl Server {
    /// A server that is not started yet; what is known of it is below the home.
    pub(crate) fn new(recipe: Recipe, home: &Path) -> Self {
        let cache = home.join("cache/mcp");
        Self {
            remembered: Remembered::read(&cache, &recipe.digest_without_keys()),
            approvals: Approvals::below(home),
            results: cache.join("results"),
            recipe,
            phase: watch::Sender::new(Phase::Starting),
            threads: watch::Sender::new(0),
            version: AtomicU64::new(0),
            again: Notify::new(),
            restart: Notify::new(),
        }
    }

    /// Adds a thread. A failed server is started again.
    pub(crate) fn lease(self: &Arc<Self>) -> Lease {
        self.threads.send_modify(|threads| *threads += 1);
        self.try_again();
        Lease(Arc::clone(self))
    }

    /// The login to it, if a person can log in there.
    pub(crate) fn login(&self) -> Option<&ServerLogin> {
        self.recipe.login.as_ref()
    }

    /// Somebody has logged in to the server of this name, so one that has failed may start now.
    pub(crate) fn logged_in(&self, name: &str) {
        if self.is_named(name) {
            self.try_again();
        }
    }

    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.recipe.config.name == name
    }

    /// Starts it again, whether it runs or has failed. Calls that it has not answered fail.
    pub(crate) fn restart(&self) {
        if matches!(*self.phase.borrow(), Phase::Ready(_)) {
            self.restart.notify_one();
        } else {
            self.try_again();
        }
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    /// The tools that it had when it last ran, if it may have them again in a moment.
    pub(crate) fn remembered(&self) -> Option<Arc<State>> {
        self.remembered.state().filter(|state| state.was_ready)
    }

    /// Whether its last start has failed.
    pub(crate) fn has_failed_before(&self) -> bool {
        self.remembered.state().is_some_and(|state| !state.was_ready)
    }

    /// Starts it again, if it has failed.
    pub(crate) fn try_again(&self) {
        // From here on it is starting, so that those who wait for it wait.
        let is_again = self.phase.send_if_modified(|phase| {
            let has_failed = matches!(phase, Phase::Failed(_));
            if has_failed {
                *phase = Phase::Starting;
            }
            has_failed
        });
        if is_again {
            self.version.fetch_add(1, Ordering::Release);
            self.again.notify_one();
        }
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Waits until it can be used.
    pub(crate) async fn ready(&self, within: Duration) -> Result<Arc<Ready>, String> {
        let mut phases = self.phase.subscribe();
        let settled = timeout(within, phases.wait_for(|phase| !matches!(phase, Phase::Starting))).await;
        match settled {
            Ok(Ok(phase)) => match &*phase {
                Phase::Ready(ready) => Ok(Arc::clone(ready)),
                Phase::Failed(why) => Err(why.to_string()),
                Phase::Starting => Err("it is starting".to_owned()),
            },
            Ok(Err(_)) => Err("it has ended".to_owned()),
            Err(_) => Err(format!("it has not started within {} s", within.as_secs_f64())),
        }
    }

    /// Whether no thread uses it.
    pub(crate) fn is_unused(&self) -> bool {
        *self.threads.borrow() == 0
    }

    /// Waits until no thread has used it for a while.
    pub(crate) async fn unused(&self) {
        let mut threads = self.threads.subscribe();
        loop {
            // The sender is a part of the server, so it exists.
            let _: Result<_, _> = threads.wait_for(|threads| *threads == 0).await;
            if timeout(UNUSED, threads.wait_for(|threads| *threads > 0)).await.is_err() {
                return;
            }
        }
    }

    /// Runs the server. It ends when this is dropped.
    pub(crate) async fn keep_running(&self) {
        let mut restarts = 0;
        loop {
            let begun = Instant::now();
            let why = match self.start().await {
                Ok(started) => match self.serve(started).await {
                    End::Ended(why) => why,
                    End::Restart => {
                        restarts = 0;
                        self.set(Phase::Starting);
                        continue;
                    }
                },
                Err(why) => {
                    // A server that cannot start will not start a moment later either.
                    restarts = MOST_RESTARTS;
                    self.remembered.keep_failure();
                    why
                }
            };
            if begun.elapsed() >= HEALTHY {
                restarts = 0;
            }
            if restarts < MOST_RESTARTS {
                restarts += 1;
                self.set(Phase::Starting);
                sleep((FIRST_WAIT * (1 << (restarts - 1))).min(LONGEST_WAIT)).await;
            } else {
                self.set(Phase::Failed(why.into()));
                self.again.notified().await;
                restarts = 0;
            }
        }
    }

    fn set(&self, phase: Phase) {
        self.version.fetch_add(1, Ordering::Release);
        self.phase.send_replace(phase);
    }

    fn set_ready(&self, ready: &Arc<Ready>) {
        let (is_stateless, tools) = (ready.introduction.is_stateless(), ready.tools.clone());
        self.remembered.keep(State { is_stateless, was_ready: true, tools });
        self.set(Phase::Ready(Arc::clone(ready)));
    }

    async fn start(&self) -> Result<Started, String> {
        let (within, name) = (self.recipe.config.startup_timeout, &self.recipe.config.name);
        let (transport, connection, notices) = self.connect()?;
        let greeted = timeout(within, async {
            let is_stateless = self.remembered.state().is_some_and(|state| state.is_stateless);
            let introduction = session::introduce(&connection, is_stateless, within).await?;
            let (tools, warnings) = list_tools(&connection, &introduction, within).await?;
            Ok((introduction, tools, warnings))
        });
        match greeted.await.unwrap_or(Err(RequestError::Timeout(within))) {
            Ok((introduction, tools, warnings)) => {
                let ready = Arc::new(Ready { connection, introduction, tools, warnings });
                self.set_ready(&ready);
                Ok(Started { transport, notices, ready })
            }
            Err(error) => {
                let stderr = match &error {
                    RequestError::Ended(_) => String::new(),
                    _ => transport.stderr(),
                };
                Err(format!("MCP client for `{name}` failed to start: {error}{stderr}"))
            }
        }
    }

    fn connect(&self) -> Result<(Transport, Connection, mpsc::Receiver<Notice>), String> {
        let Recipe { config, cwd, env, login } = &self.recipe;
        let connected = match &config.transport {
            McpTransport::Stdio(program) => stdio::start(program, cwd, env)
                .map(|(process, connection, notices)| (Transport::Process(Box::new(process)), connection, notices)),
            McpTransport::Http(address) => http::start(address, env, login.clone())
                .map(|(session, connection, notices)| (Transport::Http(session), connection, notices)),
        };
        if let (Ok((_, connection, _)), Some(_)) = (&connected, config.sampling) {
            connection.allow_sampling();
        }
        connected.map_err(|why| format!("MCP client for `{}` failed to start: {why}", config.name))
    }

    /// Updates the list of tools until the server ends.
    async fn serve(&self, started: Started) -> End {
        let Started { transport, mut notices, mut ready } = started;
        let (connection, introduction) = (ready.connection.clone(), ready.introduction.clone());
        let mut subscription = std::pin::pin!(subscribe(&connection, &introduction));
        let why = loop {
            tokio::select! {
                why = connection.ended() => break Some(why),
                () = self.restart.notified() => {
                    connection.end(": it is restarted");
                    break None;
                }
                () = &mut subscription => {}
                Some(Notice::ToolsChanged) = notices.recv() => {
                    // Servers often report several changes at once.
                    while notices.try_recv().is_ok() {}
                    let within = self.recipe.config.startup_timeout;
                    let listed = list_tools(&connection, &ready.introduction, within).await;
                    if let Ok((tools, warnings)) = listed {
                        let introduction = ready.introduction.clone();
                        ready = Arc::new(Ready { connection: connection.clone(), introduction, tools, warnings });
                        self.set_ready(&ready);
                    }
                }
            }
        };
        transport.stop().await;
        match why {
            Some(why) => End::Ended(format!("MCP server `{}` has ended{why}", self.recipe.config.name)),
            None => End::Restart,
        }
    }
}

/// Asks a server without sessions to tell of changes, and again when that breaks off. Never returns.
async fn subscribe(connection: &Connection, introduction: &Introduction) {
    let mut failures = 0;
    while introduction.is_stateless() && introduction.tells_changes() && failures < MOST_RESTARTS {
        let begun = Instant::now();
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        let ended = match connection.begin("subscriptions/listen", wanted) {
            Ok(mut in_flight) => in_flight.answer().await,
            Err(error) => Err(error),
        };
        if matches!(ended, Err(RequestError::Refused(_) | RequestError::Ended(_))) {
            break;
        }
        failures = if begun.elapsed() >= HEALTHY { 1 } else { failures + 1 };
        sleep((FIRST_WAIT * (1 << (failures - 1))).min(LONGEST_WAIT)).await;
        // The tools may have changed in the meantime.
        connection.tools_changed();
    }
    std::future::pending::<()>().await;
}

async fn list_tools(
    connection: &Connection,
    introduction: &Introduction,
    within: Duration,
) -> Result<(Vec<Tool>, Vec<String>), RequestError> {
    if introduction.has("tools") { session::tools(connection, within).await } else { Ok(Default::default()) }
}
