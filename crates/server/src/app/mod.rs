//! The app-server: JSON-RPC in lines, many threads, and both versions of the protocol.
//!
//! ```text
//! line in → connection → dispatch ─┬─ immediately
//!                                  ├─ concurrently
//!                                  └─ lane (one for each thread): requests in order; its subscriber sends the log
//!                                                                                         └▶ outbox → line out
//! ```

mod agents;
mod backlog;
mod children;
mod client_kinds;
mod config_warnings;
mod connection;
mod disk;
mod dispatch;
mod encoded;
mod goals;
mod host;
mod initialize;
mod lane;
mod open_thread;
mod outbox;
mod outgoing;
mod paced_feed;
mod permissions;
mod questions;
mod queue;
mod server_methods;
mod shared;
mod stored;
mod stored_threads;
mod subscriber;
mod subscription;
mod terminals;
mod thread_metadata;
mod thread_search;
mod tool_client;
mod turn_list;
mod turns;
mod v1;

use std::sync::Arc;
use std::time::Duration;

use codex_config::ConfigFindings;
use codex_dialects::ProtocolRelease;
use codex_protocol::v2::notification::ServerNotification;
use codex_thread::Thread;
use futures_util::future::join_all;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use self::connection::Connection;
use self::host::Host;
pub use self::host::Start;
use self::outbox::Outbox;
pub use codex_protocol::v2::initialize::Dialect;

/// The time limit for requests that are still being served when the input of the client ends.
const LAST_ANSWERS: Duration = Duration::from_secs(30);
/// The time limit for a single client to read the last messages after everything has ended.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// The time limit for telling all clients something.
const TELLING: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub struct AppServer {
    host: Arc<Host>,
    /// Becomes true when all clients have to disconnect.
    closing: watch::Sender<bool>,
}

impl AppServer {
    /// Creates a server. Nothing is read from disk before a client requests it.
    #[must_use]
    pub fn new(start: Start) -> Self {
        Self { host: Arc::new(Host::new(start)), closing: watch::Sender::new(false) }
    }

    /// A server for the one client of standard input, which initializes at once. `initialize` then needs these findings
    /// alone, and reads nothing.
    #[must_use]
    pub fn for_one_client(start: Start, findings: ConfigFindings) -> Self {
        Self { host: Arc::new(Host::for_one_client(start, findings)), closing: watch::Sender::new(false) }
    }

    /// Waits until a client has initialized.
    pub async fn initialized(&self) {
        self.host.initialized.notified().await;
    }

    /// Serves one client until its input ends and all its requests are answered.
    ///
    /// A single client owns its threads: they end with it, running turns are interrupted, and everything is written.
    ///
    /// # Errors
    /// When input or output fails for another reason than that the client has disconnected.
    pub async fn serve_alone<R, W>(&self, input: R, output: W) -> std::io::Result<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let (outbox, writer) = Outbox::new(output);
        let (over, is_over) = oneshot::channel::<()>();
        let (connection, mut all_answered) = Connection::new(Arc::clone(&self.host), outbox);
        let connection = Arc::new(connection);
        self.host.welcome(&connection);
        let (host, still_there) = (Arc::clone(&self.host), Arc::downgrade(&connection));
        let read = async move {
            let read = connection.read(input).await;
            let _: Result<_, _> = tokio::time::timeout(LAST_ANSWERS, all_answered.recv()).await;
            connection.leave();
            host.start.threads.close().await;
            drop(over);
            read
        };
        let (read, written) = tokio::join!(read, async {
            let written = tokio::select! {
                written = writer.run() => written,
                // Work that hangs may hold the connection until it ends.
                () = async { drop(is_over.await); tokio::time::sleep(LAST_WORDS).await } => Ok(()),
            };
            if written.is_err() {
                // The client no longer reads.
                if let Some(connection) = still_there.upgrade() {
                    connection.leave();
                }
                self.host.start.threads.close().await;
            }
            written
        });
        match read.and(written) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }

    /// The release whose behaviour clients get that do not choose one.
    #[must_use]
    pub fn default_release(&self) -> ProtocolRelease {
        self.host.release()
    }

    /// Ends all threads. Running turns have this long to finish; after that they are interrupted.
    pub async fn finish_threads(&self, patience: Duration) {
        let threads = self.host.start.threads.loaded();
        let finishing = join_all(threads.iter().map(Thread::finish));
        let _: Result<_, _> = timeout(patience, finishing).await;
        self.host.start.threads.close().await;
    }

    /// Sends a notification that is about no subscription to all clients that are not clients of another server.
    pub async fn tell_clients(&self, told: ServerNotification) {
        let clients = self.host.connections();
        let clients: Vec<_> =
            clients.iter().filter(|it| it.client().is_some_and(|client| !client.is_relayed)).collect();
        let telling = join_all(clients.iter().map(|client| stored_threads::tell(client, told.clone())));
        // A client that does not read misses it.
        let _: Result<_, _> = timeout(TELLING, telling).await;
    }

    /// Ends all threads: running turns are interrupted, everything is written. Then the clients of [`AppServer::serve`]
    /// receive the last messages, and their connections end.
    pub async fn close(&self) {
        self.host.start.threads.close().await;
        self.closing.send_replace(true);
    }
}

/// Milliseconds of Unix time.
fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
