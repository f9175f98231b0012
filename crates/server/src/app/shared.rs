//! Many clients of one server: clients connect and disconnect, and the threads stay.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use codex_thread::{OpenQuestions, Thread};
use codex_wire::ids::ThreadId;
use futures_util::future::join_all;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, duplex};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::connection::Connection;
use super::outbox::Outbox;
use super::{AppServer, LAST_ANSWERS};

/// The time limit for a client to read the last messages.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// The number of bytes that an in-memory connection buffers in each direction.
const PIPE_BYTES: usize = 64 * 1024;
/// The longest and shortest interval between two checks for threads without subscribers.
const LOOKS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Closes a client's subscribers when it is gone, for whatever reason.
struct ClientGuard(Arc<Connection>);

impl Drop for ClientGuard {
    fn drop(&mut self) {
        self.0.part();
    }
}

impl AppServer {
    /// Serves one client of many until its input ends and all its requests are answered, until it stops reading, or
    /// until the server is closed.
    ///
    /// Its threads and their running turns continue, for other clients and for the same client when it reconnects. The
    /// same happens when the returned future is dropped.
    ///
    /// # Errors
    /// When input or output fails for another reason than that the client has disconnected.
    pub async fn serve<R, W>(&self, input: R, output: W) -> std::io::Result<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let (outbox, writer) = Outbox::new(output);
        let (connection, mut all_answered) = Connection::new(Arc::clone(&self.host), outbox);
        let presence = ClientGuard(Arc::new(connection));
        self.host.welcome(&presence.0);
        let mut closing = self.closing.subscribe();
        let mut writing = std::pin::pin!(writer.run());
        let read = tokio::select! {
            read = async {
                let read = presence.0.read(input).await;
                // When reading fails, the client is gone and receives no answers.
                if read.is_ok() {
                    let _: Result<_, _> = timeout(LAST_ANSWERS, all_answered.recv()).await;
                }
                read
            } => read,
            // It ends only with an error while the connection is held.
            written = &mut writing => return unless_gone(written),
            () = async { drop(closing.wait_for(|is_closing| *is_closing).await) } => Ok(()),
        };
        drop(presence);
        if read.is_err() {
            return unless_gone(read);
        }
        unless_gone(timeout(LAST_WORDS, writing).await.unwrap_or(Ok(())))
    }

    /// Connects a client within this program: its end of an in-memory stream with a bounded buffer.
    ///
    /// Dropping it disconnects the client.
    #[must_use]
    pub fn connect(&self) -> DuplexStream {
        let (theirs, ours) = duplex(PIPE_BYTES);
        let server = self.clone();
        tokio::spawn(async move {
            let (input, output) = tokio::io::split(ours);
            // An in-memory stream fails only when the client is gone.
            let _: std::io::Result<()> = server.serve(input, output).await;
        });
        theirs
    }

    /// Unloads threads that have had no subscriber and no activity for this long, except for open questions. Runs until
    /// it is dropped.
    ///
    /// They are on disk with their questions, so a client can load one again. A turn whose questions cannot be asked
    /// again is interrupted.
    pub async fn unload_idle(&self, after: Duration) {
        let mut looks = interval((after / 10).clamp(LOOKS.0, LOOKS.1));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut idle_since: HashMap<ThreadId, Instant> = HashMap::new();
        loop {
            looks.tick().await;
            let threads = &self.host.start.threads;
            let names: Vec<ThreadId> = threads.loaded().iter().map(Thread::id).collect();
            idle_since.retain(|name, _| names.binary_search(name).is_ok());
            for name in names {
                if threads.is_idle(name, OpenQuestions::Interrupt).await {
                    let since = *idle_since.entry(name).or_insert_with(Instant::now);
                    if since.elapsed() >= after {
                        threads.unload(name, OpenQuestions::Interrupt).await;
                    }
                } else {
                    idle_since.remove(&name);
                }
            }
        }
    }

    /// Immediately unloads the threads that [`AppServer::unload_idle`] would unload later without interrupting a turn,
    /// and returns their number.
    pub async fn unload_unsubscribed(&self) -> usize {
        let (threads, questions) = (&self.host.start.threads, OpenQuestions::Wait);
        let unload = async |id| threads.is_idle(id, questions).await && threads.unload(id, questions).await;
        let unloading = threads.loaded().iter().map(Thread::id).map(unload).collect::<Vec<_>>();
        join_all(unloading).await.into_iter().filter(|is_gone| *is_gone).count()
    }
}

fn unless_gone(done: std::io::Result<()>) -> std::io::Result<()> {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    match done {
        Err(error) if matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof) => {
            Ok(())
        }
        other => other,
    }
}
