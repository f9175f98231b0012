//! Runs a server as a child process, and starts it again when it ends on its own.
//!
//! Invariant: no child outlives its supervisor. A child that does not end with its input is killed with all that it
//! has started.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::approvals::Approvals;
use crate::backoff::Backoff;
use crate::connection::{Client, Options, connect};
use crate::error::ConnectError;
use crate::feed::Events;

/// The time limit for a server to end after its input has ended.
const GRACE: Duration = Duration::from_secs(5);
/// The longest line of standard error that is passed on as one.
const STDERR_LINE_BYTES: u64 = 64 * 1024;

/// The server's program and its arguments.
#[derive(Debug, Clone)]
pub struct Launch {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Variables besides those of this program.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory, if it is another than this program's.
    pub cwd: Option<PathBuf>,
}

impl Launch {
    /// `codex app-server`, found by `PATH`.
    #[must_use]
    pub fn codex() -> Self {
        Self { program: "codex".into(), args: vec!["app-server".into()], env: Vec::new(), cwd: None }
    }
}

/// The state of the server.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerState {
    Stopped,
    Starting,
    Running,
    /// It has ended and is started again after the wait.
    Restarting {
        attempt: u32,
        delay: Duration,
    },
    /// It could not be started, or has ended too often; then there is no restart.
    Failed {
        error: String,
        restart_in: Option<Duration>,
    },
}

/// A line of the server's standard error.
type Sink = Arc<dyn Fn(&str) + Send + Sync>;

/// Runs a server. Each time it is up there is a new connection.
#[derive(Debug)]
pub struct Supervisor {
    states: watch::Receiver<ServerState>,
    connections: mpsc::Receiver<(Client, Events)>,
    stopping: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Supervisor {
    /// Starts a server. The lines of its standard error go to the sink.
    pub fn start(
        launch: Launch,
        options: Options,
        approvals: Approvals,
        sink: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let (state, states) = watch::channel(ServerState::Stopped);
        let (sender, connections) = mpsc::channel(1);
        let (stopping, stop) = watch::channel(false);
        let running = Running { launch, options, approvals, sink: Arc::new(sink), state, sender, stop };
        Self { states, connections, stopping, task: tokio::spawn(running.run()) }
    }

    /// The states of the server, as they change.
    #[must_use]
    pub fn states(&self) -> watch::Receiver<ServerState> {
        self.states.clone()
    }

    /// Waits until the server is up, and connects to it; `None` when it is stopped or has failed for good.
    pub async fn connection(&mut self) -> Option<(Client, Events)> {
        self.connections.recv().await
    }

    /// Stops the server: ends its input, waits a little, then kills it with all that it has started.
    pub async fn stop(mut self) {
        self.stopping.send_replace(true);
        let _: Result<(), tokio::task::JoinError> = (&mut self.task).await;
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // The task owns the child, which is killed when it is dropped.
        self.task.abort();
    }
}

struct Running {
    launch: Launch,
    options: Options,
    approvals: Approvals,
    sink: Sink,
    state: watch::Sender<ServerState>,
    sender: mpsc::Sender<(Client, Events)>,
    stop: watch::Receiver<bool>,
}

/// The reason why a server is not running any more.
enum End {
    Stopped,
    Ended,
    Failed(String),
}

impl Running {
    async fn run(mut self) {
        let mut backoff = Backoff::default();
        loop {
            self.state.send_replace(ServerState::Starting);
            let started = Instant::now();
            let end = self.once().await;
            let next = backoff.next(started.elapsed(), fastrand::f64());
            let state = match (end, next) {
                (End::Stopped, _) => {
                    self.state.send_replace(ServerState::Stopped);
                    return;
                }
                (End::Ended, Some((attempt, delay))) => ServerState::Restarting { attempt, delay },
                (End::Failed(error), Some((_, delay))) => ServerState::Failed { error, restart_in: Some(delay) },
                (End::Failed(error), None) => ServerState::Failed { error, restart_in: None },
                (End::Ended, None) => {
                    ServerState::Failed { error: "the server has ended too often".to_owned(), restart_in: None }
                }
            };
            self.state.send_replace(state);
            let Some((_, delay)) = next else { return };
            tokio::select! {
                () = sleep(delay) => {}
                () = stopped(&mut self.stop) => {
                    self.state.send_replace(ServerState::Stopped);
                    return;
                }
            }
        }
    }

    /// Runs the server once, to its end.
    async fn once(&mut self) -> End {
        let (client, events, mut tree) = match self.connected().await {
            Ok(connected) => connected,
            Err(error) => return End::Failed(with_sources(&error)),
        };
        self.state.send_replace(ServerState::Running);
        let handed = self.sender.try_send((client.clone(), events));
        if let Err(mpsc::error::TrySendError::Closed(_)) = handed {
            return End::Stopped;
        }
        tokio::select! {
            _ = tree.child.wait() => {
                client.close();
                End::Ended
            }
            () = stopped(&mut self.stop) => {
                client.close();
                if timeout(GRACE, tree.child.wait()).await.is_err() {
                    tree.kill();
                    let _: std::io::Result<_> = tree.child.wait().await;
                }
                End::Stopped
            }
        }
    }

    async fn connected(&self) -> Result<(Client, Events, Tree), ConnectError> {
        let Launch { program, args, env, cwd } = &self.launch;
        let mut command = Command::new(program);
        command.args(args).envs(env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        if let Some(cwd) = cwd {
            command.current_dir(cwd);
        }
        let failed = |source| ConnectError::Start { program: program.display().to_string(), source };
        let mut tree = Tree::new(command.spawn().map_err(failed)?);
        let lost = || failed(std::io::Error::other("its streams are missing"));
        let input = tree.child.stdin.take().ok_or_else(lost)?;
        let output = tree.child.stdout.take().ok_or_else(lost)?;
        if let Some(stderr) = tree.child.stderr.take() {
            tokio::spawn(pass_on(stderr, Arc::clone(&self.sink)));
        }
        let (client, events) = connect(output, input, self.options.clone(), self.approvals.clone()).await?;
        Ok((client, events, tree))
    }
}

/// A child and all that it has started in its process group.
pub(crate) struct Tree {
    pub(crate) child: Child,
    group: Option<Pid>,
}

impl Tree {
    pub(crate) fn new(child: Child) -> Self {
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self { child, group }
    }

    /// Kills the group, whether its first process has ended or not.
    fn kill(&mut self) {
        // Only once: later its number may belong to others.
        if let Some(group) = self.group.take() {
            let _: rustix::io::Result<()> = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until the program stops the server, or forgets it.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _: bool = stop.wait_for(|stop| *stop).await.is_ok();
}

async fn pass_on(stderr: ChildStderr, sink: Sink) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    while matches!((&mut stderr).take(STDERR_LINE_BYTES).read_until(b'\n', &mut line).await, Ok(count) if count > 0) {
        sink(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
}

/// An error with its causes, for people.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
