use std::path::PathBuf;
use std::time::Duration;

use codex_log::store::{StoreError, StoreErrorKind};
use codex_thread::{Fault, StartError};
use codex_wire::ids::ThreadId;

/// The reason why a thread could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The working directory is unusable.
    #[error("the working directory {cwd} does not exist", cwd = .cwd.display())]
    NoSuchFolder { cwd: PathBuf },
    /// A thread of another machine works in a folder that this one does not have.
    #[error(
        "thread {thread} works in {cwd}, which {problem}; it was last open on server {server}. It can be read here; to \
         continue it, connect to that server, or name another folder (cwd)",
        cwd = .cwd.display()
    )]
    Elsewhere { thread: ThreadId, cwd: PathBuf, problem: &'static str, server: String },
    /// The file that replaces the base instructions could not be read.
    #[error("{key}: could not read {path}", path = .path.display())]
    Instructions {
        /// Its configuration key.
        key: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// Its history could not be read, or it could not be created, opened, copied or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The work before the start was cut off by the end of the program.
    #[error("could not prepare the thread")]
    Prepare(#[source] tokio::task::JoinError),
    /// The files of the thread or of its project could not be read in time.
    #[error("the files of the thread and its project could not be read within {} s", .after.as_secs())]
    Slow { after: Duration },
    /// A log names a child that is not its own.
    #[error("the thread {thread} was started by another agent")]
    OtherTree { thread: ThreadId },
    /// Our own tool descriptions could not be encoded.
    #[error("could not describe the tools")]
    Tools(#[from] serde_json::Error),
}

impl OpenError {
    /// Whether the thread could not be saved, which is not the requester's fault.
    fn is_unsaved(&self) -> bool {
        let Self::Store(error) = self else { return false };
        matches!(error.kind(), StoreErrorKind::Unwritable | StoreErrorKind::Unencodable | StoreErrorKind::Failed)
    }
}

impl From<OpenError> for StartError {
    fn from(error: OpenError) -> Self {
        Self::new(if error.is_unsaved() { Fault::Host } else { Fault::Request }, error)
    }
}
