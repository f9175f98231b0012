//! Keeps a connection to a server: runs its program or dials its address, again whenever the connection has ended on
//! its own.
//!
//! Invariant: no child outlives its supervisor. A child that does not end with its input is killed with all that it
//! has started.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::approvals::Approvals;
use crate::backoff::Backoff;
use crate::connection::{Client, Options, connect};
use crate::error::ConnectError;
use crate::feed::Events;
pub use crate::server::{Launch, Server};
use crate::server::{Sink, Tree, dial};

/// The state of the server.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerState {
    Stopped,
    Starting,
    Running,
    /// It has ended, and is started or dialled again after the wait.
    Restarting {
        attempt: u32,
        delay: Duration,
    },
    /// It could not be started or reached; or has ended too often, then there is no restart.
    Failed {
        error: String,
        restart_in: Option<Duration>,
    },
}

/// The connection that is up, until it is taken.
#[derive(Debug, Clone, Default)]
struct Slot(Arc<Mutex<Option<(Client, Events)>>>);

impl Slot {
    fn replace(&self, connection: Option<(Client, Events)>) -> Option<(Client, Events)> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), connection)
    }
}

/// Keeps a connection to a server. Each time it is up there is a new one.
#[derive(Debug)]
pub struct Supervisor {
    states: watch::Receiver<ServerState>,
    slot: Slot,
    pid: watch::Receiver<Option<u32>>,
    stopping: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Supervisor {
    /// Starts a server, or connects to one. The lines of a child's standard error go to the sink.
    pub fn start(
        server: impl Into<Server>,
        options: Options,
        approvals: Approvals,
        sink: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let (state, states) = watch::channel(ServerState::Stopped);
        let slot = Slot::default();
        let (pid, pids) = watch::channel(None);
        let (stopping, stop) = watch::channel(false);
        let running = Running {
            server: Some(server.into()),
            options,
            approvals,
            sink: Arc::new(sink),
            state,
            slot: slot.clone(),
            pid,
            stop,
        };
        Self { states, slot, pid: pids, stopping, task: tokio::spawn(running.run()) }
    }

    /// The states of the server, as they change.
    #[must_use]
    pub fn states(&self) -> watch::Receiver<ServerState> {
        self.states.clone()
    }

    /// The process of a server that was started, while there is one.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        *self.pid.borrow()
    }

    /// Waits until the server is up, and connects to it; `None` when it is stopped or has failed for good.
    pub async fn connection(&mut self) -> Option<(Client, Events)> {
        loop {
            if let Some(connection) = self.slot.replace(None) {
                return Some(connection);
            }
            // A connection is put there before the state changes, and nothing comes after the last state.
            self.states.changed().await.ok()?;
        }
    }

    /// Stops: ends the input of the server, and waits a little. A child is then killed with all that it has started;
    /// a server elsewhere goes on.
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
    /// `None` once a pipe is used.
    server: Option<Server>,
    options: Options,
    approvals: Approvals,
    sink: Sink,
    state: watch::Sender<ServerState>,
    slot: Slot,
    pid: watch::Sender<Option<u32>>,
    stop: watch::Receiver<bool>,
}

/// The reason why a server is not running any more.
enum End {
    Stopped,
    Ended,
    Failed(ConnectError),
}

impl Running {
    async fn run(mut self) {
        let mut backoff = Backoff::default();
        loop {
            self.state.send_replace(ServerState::Starting);
            let started = Instant::now();
            let end = self.once().await;
            let is_final = self.server.is_none() || matches!(&end, End::Failed(error) if error.is_final());
            let next = backoff.next(started.elapsed(), fastrand::f64()).filter(|_| !is_final);
            let state = match (end, next) {
                (End::Stopped, _) => ServerState::Stopped,
                (End::Ended, Some((attempt, delay))) => ServerState::Restarting { attempt, delay },
                (End::Failed(error), next) => {
                    ServerState::Failed { error: with_sources(&error), restart_in: next.map(|(_, delay)| delay) }
                }
                (End::Ended, None) if is_final => {
                    ServerState::Failed { error: ConnectError::Spent.to_string(), restart_in: None }
                }
                (End::Ended, None) => {
                    ServerState::Failed { error: "the server has ended too often".to_owned(), restart_in: None }
                }
            };
            let is_over = state == ServerState::Stopped;
            self.state.send_replace(state);
            let Some((_, delay)) = next.filter(|_| !is_over) else { return };
            tokio::select! {
                () = sleep(delay) => {}
                () = stopped(&mut self.stop) => {
                    self.state.send_replace(ServerState::Stopped);
                    return;
                }
            }
        }
    }

    /// Connects to the server, and stays connected to the end.
    async fn once(&mut self) -> End {
        let mut stop = self.stop.clone();
        let connected = tokio::select! {
            connected = self.connected() => connected,
            () = stopped(&mut stop) => return End::Stopped,
        };
        let (client, events, mut tree) = match connected {
            Ok(connected) => connected,
            Err(error) => return End::Failed(error),
        };
        self.pid.send_replace(tree.as_ref().and_then(|tree| tree.child.id()));
        self.slot.replace(Some((client.clone(), events)));
        self.state.send_replace(ServerState::Running);
        let end = tokio::select! {
            () = client.closed() => End::Ended,
            // Processes that it has started may still hold its output.
            () = ended(tree.as_mut()) => End::Ended,
            () = stopped(&mut self.stop) => End::Stopped,
        };
        // Nobody has taken it, and it is of no use any more.
        self.slot.replace(None);
        client.close();
        if let Some(mut tree) = tree {
            tree.end().await;
        }
        self.pid.send_replace(None);
        // All that it has written is read before it is started again.
        client.closed().await;
        end
    }

    async fn connected(&mut self) -> Result<(Client, Events, Option<Tree>), ConnectError> {
        let (options, approvals) = (self.options.clone(), self.approvals.clone());
        let (client, events) = match &self.server {
            Some(Server::Program(launch)) => {
                let (client, events, tree) = launch.connect(options, approvals, Arc::clone(&self.sink)).await?;
                return Ok((client, events, Some(tree)));
            }
            Some(Server::At(address, token)) => dial(address, token.as_ref(), options, approvals).await?,
            Some(Server::Pipe(..)) | None => match self.server.take() {
                Some(Server::Pipe(input, output)) => connect(input, output, options, approvals).await?,
                Some(Server::Program(_) | Server::At(..)) | None => return Err(ConnectError::Spent),
            },
        };
        Ok((client, events, None))
    }
}

/// Waits until a child has ended.
async fn ended(tree: Option<&mut Tree>) {
    match tree {
        Some(tree) => drop(tree.child.wait().await),
        None => std::future::pending().await,
    }
}

/// Waits until the program stops the server, or forgets it.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _: bool = stop.wait_for(|stop| *stop).await.is_ok();
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
