//! The submission and event queues as JSON lines: `{"id", "op"}` in, `{"id", "msg"}` out.
//!
//! One task reads and another one writes, so a client that is slow to read can still interrupt. A line that is not a
//! submission is answered with a `warning` that contains the error, and the stream continues.

mod prompts;
mod reader;
mod writer;

use std::sync::Arc;

use codex_config::{Config, Home};
use codex_dialects::eq::Vocabulary;
use codex_thread::{Children, Feed, LoadedThreads, Thread};
use codex_wire::event::EventMsg;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};

pub use self::prompts::Prompts;
use self::reader::Reader;
use self::writer::Writer;
use codex_lines::LineReader;

/// The maximum number of direct answers that may wait to be written; with more, the reading side waits.
const WAITING_ANSWERS: usize = 64;

/// The thread that is served, and the user's settings.
#[derive(Debug)]
pub struct Served {
    /// The thread.
    pub thread: Thread,
    /// Its log.
    pub feed: Feed,
    /// The place where the threads of its child agents are loaded.
    pub children: Arc<dyn LoadedThreads>,
    /// The messages that the client wants.
    pub vocabulary: Vocabulary,
    pub user: User,
}

/// The user's data, independent of the thread: requests about it do not wait for a turn.
#[derive(Debug)]
pub struct User {
    /// The user's configuration.
    pub config: Arc<Config>,
    /// The home folder.
    pub home: Home,
    /// The prompts.
    pub prompts: Prompts,
}

/// Serves one thread to one client until it shuts down, its input ends, or its output is gone.
///
/// At the end of the input a running turn is finished first, so that `codex proto < file` prints all answers.
///
/// # Errors
/// When input or output fails for another reason than that the client has disconnected.
pub async fn serve<R, W>(served: Served, input: R, output: W) -> std::io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (answers, waiting) = mpsc::channel(WAITING_ANSWERS);
    let Served { thread, feed, children, vocabulary, user } = served;
    let (input_ends, has_input) = watch::channel(true);
    let reader = Reader::new(thread.clone(), Arc::clone(&children), user, answers, input_ends);
    let mut writer = Writer::new(output, vocabulary, Children::new(children), has_input);
    let write = writer.run(feed, waiting);
    tokio::pin!(write);
    let read = reader.run(LineReader::new(input));
    tokio::pin!(read);
    let written = tokio::select! {
        written = &mut write => {
            thread.close().await;
            written
        }
        read = &mut read => {
            let written = write.await;
            read.and(written)
        }
    };
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// A message that answers a submission directly.
struct Answer {
    id: String,
    msg: EventMsg,
}
