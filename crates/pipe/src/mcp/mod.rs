//! An MCP server: the agent as two tools of another agent or program.
//!
//! `codex` starts a thread and runs its first turn, `codex-reply` runs another one. A call is answered when its turn has
//! ended; until then its events are notifications, and its approvals are elicitations. Calls run concurrently.
//!
//! ```text
//! line in → session ─┬─ at once: initialize, ping, tools/list
//!                    ├─ call (one task for each): thread → events, elicitations, result ─▶ outbox → line out
//!                    └─ answer of the client ─▶ thread
//! ```

mod asker;
mod call;
mod elicitation;
mod elsewhere;
mod exchange;
mod followed;
mod forwarding;
mod http;
mod message;
mod parked;
mod questions;
mod sealed;
mod session;
mod stateless;
mod tool;

use std::sync::Arc;
use std::time::Duration;

use codex_lines::{LineReader, Outbox};
use codex_thread::ThreadHost;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};

pub use self::elsewhere::{OtherServers, ServerConnection};
use self::forwarding::Forwarding;
pub use self::http::{Body, HttpServer};
use self::session::{Session, Shared};

/// The time limit of calls that still run when the client has closed its side.
const LAST_ANSWERS: Duration = Duration::from_secs(30);
/// The time limit for the client to read the last messages.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// The parts of a server.
#[derive(Debug, Clone)]
pub struct Server {
    /// Runs the threads.
    pub threads: Arc<dyn ThreadHost>,
    /// The servers that share the threads, if there can be any.
    pub others: Option<Arc<dyn OtherServers>>,
    /// The user agent, without the client.
    pub user_agent: String,
}

/// Serves one client until it closes its side. Its threads end with it: running turns are interrupted, everything is
/// written. Requests with the names of the app-server of 2025 are passed to `conversations`, the stream of one, if
/// there is one.
///
/// # Errors
/// When input or output fails for another reason than that the client has disconnected.
pub async fn serve<R, W>(
    server: Server,
    conversations: Option<DuplexStream>,
    input: R,
    output: W,
) -> std::io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let threads = Arc::clone(&server.threads);
    let (outbox, writer) = Outbox::new(output);
    let shared = Shared::new(server);
    let (session, mut all_answered) = Session::new(Arc::clone(&shared));
    let read = async {
        let outbox = Arc::new(outbox);
        if let Some(stream) = conversations {
            Forwarding::connect(&session, &outbox, stream);
        }
        let read = session.read(LineReader::new(input), &outbox).await;
        session.leave();
        shared.parked.clear();
        drop(session);
        // It closes when the last call has ended.
        let _: Result<_, _> = tokio::time::timeout(LAST_ANSWERS, all_answered.recv()).await;
        threads.close().await;
        read
    };
    let write = writer.run();
    tokio::pin!(read, write);
    let ended = tokio::select! {
        read = &mut read => {
            // A call that hangs may hold the outbox, and a client may not read.
            let written = tokio::time::timeout(LAST_WORDS, write).await.unwrap_or(Ok(()));
            read.and(written)
        }
        written = &mut write => {
            // The client no longer reads.
            threads.close().await;
            written
        }
    };
    match ended {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
