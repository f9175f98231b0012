//! The servers of one thread.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use codex_config::{Config, Home, McpServer};
use codex_log::Body;
use codex_tools::registry::{Tool, ToolSource};
use codex_tools::servers::{Reload, ServerScope, ServerState, ServerStatus, ThreadServers};
use codex_wire::event::{McpStartupCompleteEvent, McpStartupUpdateEvent};
use codex_wire::mcp::{
    CallToolResult, McpAuthStatus, McpStartupError, McpStartupFailure, McpStartupStatus, Tool as Described,
};
use codex_wire::prompt::CustomPrompt;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::{StreamExt as _, select_all, unfold};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::pool::Pool;
use crate::resource_tools::ResourceTool;
use crate::server::{Lease, Phase, Ready, Server};
use crate::tool::{ServerTool, StartingServer};
use crate::{names, prompts, result, session};

/// The time that the first request of a thread waits for servers that are starting.
const GRACE: Duration = Duration::from_millis(240);
/// The deadline for a list of resources or prompts.
pub(crate) const LISTS: Duration = Duration::from_secs(5);
/// The most events that wait for the thread.
const EVENTS: usize = 64;

/// The servers of one thread.
pub(crate) struct ServerSet {
    pool: Arc<Pool>,
    home: Home,
    cwd: PathBuf,
    reload: Option<Reload>,
    slots: Mutex<Slots>,
    /// Increases when other servers are configured.
    generation: AtomicU64,
    /// Whether a turn has waited for the servers.
    has_waited: AtomicBool,
    /// Made for the first server, because most threads have none and a channel is a large part of their memory.
    channel: OnceLock<Channel>,
    /// Wakes the thread when the channel is there.
    has_channel: Notify,
}

/// The events of the servers, on their way to the thread.
struct Channel {
    /// Boxed, because a channel has room for 32 of them from the start.
    sender: mpsc::Sender<Box<Body>>,
    events: tokio::sync::Mutex<mpsc::Receiver<Box<Body>>>,
}

impl Channel {
    fn new() -> Self {
        let (sender, events) = mpsc::channel(EVENTS);
        Self { sender, events: tokio::sync::Mutex::new(events) }
    }
}

/// The configured servers, and the tasks that report on them.
#[derive(Default)]
struct Slots {
    all: Vec<Slot>,
    _reports: JoinSet<()>,
}

#[derive(Clone)]
pub(crate) struct Slot {
    pub(crate) config: Arc<McpServer>,
    /// Its process or connection; `None` if it is disabled.
    lease: Option<Arc<Lease>>,
}

impl Slot {
    pub(crate) fn server(&self) -> Option<&Arc<Server>> {
        self.lease.as_ref().map(|lease| lease.server())
    }
}

impl ServerSet {
    pub(crate) fn open(pool: Arc<Pool>, scope: ServerScope) -> Arc<Self> {
        let ServerScope { config, home, cwd, reload } = scope;
        let set = Arc::new(Self {
            pool,
            home,
            cwd,
            reload,
            slots: Mutex::default(),
            generation: AtomicU64::new(0),
            has_waited: AtomicBool::new(false),
            channel: OnceLock::new(),
            has_channel: Notify::new(),
        });
        set.configure(&config);
        set
    }

    /// Reads the configuration again. Servers that have failed are started again in any case.
    pub(crate) fn reload(&self) -> Result<(), String> {
        let Some(reload) = &self.reload else { return Ok(()) };
        let config = reload()?;
        let now = config.mcp_servers(self.home.user_dir());
        let is_same = self.slots().all.iter().map(|slot| &*slot.config).eq(now.iter());
        if is_same {
            self.all().iter().filter_map(Slot::server).for_each(|server| server.try_again());
        } else {
            self.configure(&config);
        }
        Ok(())
    }

    /// Applies a configuration. Servers that stay the same continue to run.
    fn configure(&self, config: &Config) {
        let lease = |server: &McpServer| {
            let login = self.pool.login(&self.home, config.mcp_login(), server);
            server.is_enabled.then(|| Arc::new(self.pool.lease(server, &self.cwd, &self.home, login)))
        };
        let servers = config.mcp_servers(self.home.user_dir());
        let all: Vec<Slot> =
            servers.into_iter().map(|config| Slot { lease: lease(&config), config: Arc::new(config) }).collect();
        let watched: Vec<_> =
            all.iter().filter_map(|slot| Some((slot.config.name.clone(), slot.server()?.watch()))).collect();
        let mut reports = JoinSet::new();
        if !watched.is_empty() {
            let channel = self.channel.get_or_init(Channel::new);
            reports.spawn(report(watched, channel.sender.clone()));
            self.has_channel.notify_one();
        }
        self.has_waited.store(false, Ordering::Relaxed);
        *self.slots() = Slots { all, _reports: reports };
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> Vec<Slot> {
        self.slots().all.clone()
    }

    fn slot(&self, name: &str) -> Result<Slot, String> {
        let found = self.slots().all.iter().find(|slot| slot.config.name == name).cloned();
        found.ok_or_else(|| format!("there is no MCP server `{name}`"))
    }
}

impl ToolSource for ServerSet {
    fn version(&self) -> u64 {
        let servers: u64 = self.slots().all.iter().filter_map(Slot::server).map(|server| server.version()).sum();
        // One generation outweighs all changes of the servers before it, so that the sum grows.
        (self.generation.load(Ordering::Acquire) << 32) + servers
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let (mut tools, mut taken): (Vec<Arc<dyn Tool>>, _) = (Vec::new(), BTreeSet::new());
        let all = self.all();
        for slot in &all {
            let Some(server) = slot.server() else { continue };
            let mut add = |listed: &[Described], is_remembered| {
                for tool in ServerTool::all(slot, server, listed, is_remembered, &mut taken) {
                    tools.push(Arc::new(tool));
                }
            };
            match (server.phase(), server.remembered()) {
                (Phase::Ready(ready), _) => add(&ready.tools, false),
                (phase, remembered) => {
                    if let (Phase::Starting, Some(remembered)) = (phase, remembered) {
                        add(&remembered.tools, true);
                    }
                    tools.push(Arc::new(StartingServer::new(Arc::clone(&slot.config), Arc::clone(server))));
                }
            }
        }
        if !all.is_empty() {
            tools.extend(ResourceTool::all(&all));
        }
        tools
    }
}

impl ThreadServers for ServerSet {
    fn next_event(&self) -> BoxFuture<'_, Body> {
        Box::pin(async {
            let channel = loop {
                match self.channel.get() {
                    Some(channel) => break channel,
                    None => self.has_channel.notified().await,
                }
            };
            match channel.events.lock().await.recv().await {
                Some(body) => *body,
                // The set itself has a sender, so this is not reached.
                None => std::future::pending().await,
            }
        })
    }

    fn before_turn(&self) -> Option<BoxFuture<'static, Result<(), String>>> {
        let is_first = !self.has_waited.swap(true, Ordering::Relaxed);
        let all = self.all();
        let (mut required, mut others) = (Vec::new(), Vec::new());
        for slot in &all {
            let Some(server) = slot.server() else { continue };
            let phases = server.watch();
            let phase = phases.borrow().clone();
            match phase {
                Phase::Ready(_) => {}
                Phase::Starting | Phase::Failed(_) if slot.config.is_required => {
                    server.try_again();
                    required.push(slot.clone());
                }
                // A server that did not start the last time is not expected to start now.
                Phase::Starting if is_first && !server.has_failed_before() => others.push(phases),
                Phase::Starting | Phase::Failed(_) => {}
            }
        }
        if required.is_empty() && others.is_empty() {
            return None;
        }
        Some(Box::pin(async move {
            let (started, _) = tokio::join!(join_all(required.iter().map(started)), timeout(GRACE, settled(others)));
            started.into_iter().collect()
        }))
    }

    fn startup(&self) -> Option<McpStartupCompleteEvent> {
        let mut complete = McpStartupCompleteEvent::default();
        for slot in self.all() {
            let name = slot.config.name.clone();
            match slot.server().map(|server| server.watch().borrow().clone()) {
                None => {}
                Some(Phase::Starting) => return None,
                Some(Phase::Ready(_)) => complete.ready.push(name),
                Some(Phase::Failed(why)) => {
                    complete.failed.push(McpStartupFailure { server: name, error: why.to_string() });
                }
            }
        }
        Some(complete)
    }

    fn list(&self) -> BoxFuture<'static, Vec<ServerStatus>> {
        let all = self.all();
        Box::pin(async move {
            let mut taken = BTreeSet::new();
            let mut servers = join_all(all.into_iter().map(status)).await;
            for server in &mut servers {
                let tools: Vec<String> = server.tools.keys().cloned().collect();
                let named = tools.into_iter().map(|tool| (names::tool_name(&server.name, &tool, &mut taken), tool));
                server.names = named.collect();
            }
            servers
        })
    }

    fn prompts(&self) -> BoxFuture<'static, Vec<CustomPrompt>> {
        Box::pin(prompts::all(self.all()))
    }

    fn call(
        &self,
        server: String,
        tool: String,
        arguments: Option<Value>,
    ) -> BoxFuture<'static, Result<CallToolResult, String>> {
        let slot = self.slot(&server);
        Box::pin(async move {
            let slot = slot?;
            let ready = ready(&slot).await?;
            let params = json!({"name": tool, "arguments": arguments.unwrap_or_else(|| json!({}))});
            let answer = ready.connection.request("tools/call", params, slot.config.tool_timeout).await;
            answer.map(result::read).map_err(|error| error.to_string())
        })
    }

    fn read_resource(&self, server: String, uri: String) -> BoxFuture<'static, Result<Vec<Value>, String>> {
        let slot = self.slot(&server);
        Box::pin(async move { read_resource(&slot?, &uri).await })
    }
}

/// The server of a slot, once it has started.
pub(crate) async fn ready(slot: &Slot) -> Result<Arc<Ready>, String> {
    let name = &slot.config.name;
    let server = slot.server().ok_or_else(|| format!("the MCP server `{name}` is disabled"))?;
    server.ready(slot.config.startup_timeout).await
}

pub(crate) async fn read_resource(slot: &Slot, uri: &str) -> Result<Vec<Value>, String> {
    let ready = ready(slot).await?;
    let params = json!({"uri": uri});
    let mut answer = ready
        .connection
        .request("resources/read", params, slot.config.tool_timeout)
        .await
        .map_err(|error| error.to_string())?;
    match answer["contents"].take() {
        Value::Array(contents) => Ok(contents),
        _ => Err("the server has answered without contents".to_owned()),
    }
}

/// The entries of a list of a server; empty if it has none.
pub(crate) async fn entries<T: serde::de::DeserializeOwned>(ready: &Ready, method: &str, key: &str) -> Vec<T> {
    if !ready.introduction.has("resources") {
        return Vec::new();
    }
    session::list(&ready.connection, method, key, LISTS).await.unwrap_or_default()
}

async fn status(slot: Slot) -> ServerStatus {
    let config = &slot.config;
    let mut status = ServerStatus {
        name: config.name.clone(),
        state: ServerState::Disabled,
        info: None,
        tools: std::collections::BTreeMap::new(),
        names: std::collections::BTreeMap::new(),
        resources: Vec::new(),
        resource_templates: Vec::new(),
        auth: if config.has_bearer_token() { McpAuthStatus::BearerToken } else { McpAuthStatus::Unsupported },
    };
    let Some(server) = slot.server() else { return status };
    match server.ready(config.startup_timeout).await {
        Ok(ready) => {
            status.state = ServerState::Connected;
            status.info = Some(ready.introduction.info.clone()).filter(|info| !info.is_null());
            let offered = ready.tools.iter().filter(|tool| config.offers(&tool.name));
            status.tools = offered.map(|tool| (tool.name.clone(), tool.clone())).collect();
            status.resources = entries(&ready, "resources/list", "resources").await;
            status.resource_templates = entries(&ready, "resources/templates/list", "resourceTemplates").await;
        }
        Err(_) if matches!(server.phase(), Phase::Starting) => status.state = ServerState::Starting,
        Err(why) => status.state = ServerState::Failed(why),
    }
    if let Some(login) = server.login() {
        status.auth = match login.is_logged_in().await {
            true => McpAuthStatus::OAuth,
            false if login.is_asked_for() => McpAuthStatus::NotLoggedIn,
            false => McpAuthStatus::Unsupported,
        };
    }
    status
}

/// Waits for a required server.
async fn started(slot: &Slot) -> Result<(), String> {
    let (name, Some(server)) = (&slot.config.name, slot.server()) else { return Ok(()) };
    // The server itself gives up at its time, and says more about the reason than that the time is over.
    let started = server.ready(slot.config.startup_timeout + GRACE).await;
    started.map(drop).map_err(|why| format!("the required MCP server `{name}` cannot be used: {why}"))
}

/// Waits until none of the servers is starting.
async fn settled(servers: Vec<watch::Receiver<Phase>>) {
    join_all(servers.into_iter().map(|mut phases| async move {
        // A server whose task has ended will not start any more.
        let _: Result<_, _> = phases.wait_for(|phase| !matches!(phase, Phase::Starting)).await.map(drop);
    }))
    .await;
}

/// Reports on servers: each change, and once that all have started or failed to start.
async fn report(servers: Vec<(String, watch::Receiver<Phase>)>, events: mpsc::Sender<Box<Body>>) {
    for (server, _) in &servers {
        tell(&events, server, McpStartupStatus::Starting).await;
    }
    let mut open: BTreeSet<String> = servers.iter().map(|(name, _)| name.clone()).collect();
    let mut complete = McpStartupCompleteEvent::default();
    let changes = servers.into_iter().map(|(name, mut phases)| {
        phases.mark_changed();
        Box::pin(unfold((name, phases), |(name, mut phases)| async move {
            phases.changed().await.ok()?;
            let phase = phases.borrow_and_update().clone();
            Some(((name.clone(), phase), (name, phases)))
        }))
    });
    let mut changes = select_all(changes);
    while let Some((name, phase)) = changes.next().await {
        let is_first = open.contains(&name);
        match phase {
            Phase::Starting if is_first => continue,
            Phase::Starting => tell(&events, &name, McpStartupStatus::Starting).await,
            Phase::Ready(ready) => {
                tell(&events, &name, McpStartupStatus::Ready).await;
                for warning in &ready.warnings {
                    let message = format!("MCP server `{name}`: {warning}");
                    let _: Result<(), _> = events.send(Box::new(Body::Warning { message })).await;
                }
                if open.remove(&name) {
                    complete.ready.push(name);
                }
            }
            Phase::Failed(why) => {
                let failed = McpStartupError { error: why.to_string() };
                tell(&events, &name, McpStartupStatus::Failed(failed)).await;
                if open.remove(&name) {
                    complete.failed.push(McpStartupFailure { server: name, error: why.to_string() });
                }
            }
        }
        if is_first && open.is_empty() {
            let complete = Arc::new(std::mem::take(&mut complete));
            let _: Result<(), _> = events.send(Box::new(Body::ServersStarted(complete))).await;
        }
    }
}

async fn tell(events: &mpsc::Sender<Box<Body>>, server: &str, status: McpStartupStatus) {
    let changed = McpStartupUpdateEvent { server: server.to_owned(), status };
    let _: Result<(), _> = events.send(Box::new(Body::ServerChanged(Arc::new(changed)))).await;
}
