//! Requests about the queue of a thread: input that starts a turn when the running one is complete.

use std::sync::Arc;

use codex_log::TurnId;
use codex_log::queue::{QueueState, QueuedInput};
use codex_wire::input::UserInput;
use tokio::sync::oneshot;

use crate::handle::Thread;
use crate::request::{Closed, ThreadRequest};

/// The maximum number of entries.
pub const MOST_ENTRIES: usize = 100;
/// The maximum number of bytes of all entries, as JSON.
pub const MOST_BYTES: usize = 16 * 1024 * 1024;

/// The reason why a change of the queue is refused. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    #[error("the queue has {MOST_ENTRIES} entries, the maximum; delete one first")]
    TooMany,
    #[error("the queue would have {bytes} bytes, {MOST_BYTES} are allowed")]
    TooLarge { bytes: usize },
    #[error("queued submission not found: {id}")]
    Unknown { id: String },
    #[error("queuedSubmissionIds must name every entry of the queue once: {id} is {}", if *.is_missing { "missing" } else { "not an entry, or named twice" })]
    Order { id: String, is_missing: bool },
    #[error("the queue is empty")]
    Empty,
    #[error("a turn is running; the next entry starts when it is complete")]
    Running,
}

/// A request about the queue.
#[derive(Debug)]
pub enum QueueRequest {
    List { reply: oneshot::Sender<QueueState> },
    Add { entry: Box<QueuedInput>, reply: oneshot::Sender<Result<Arc<QueuedInput>, QueueError>> },
    Update { id: String, input: Vec<UserInput>, reply: oneshot::Sender<Result<Arc<QueuedInput>, QueueError>> },
    Delete { id: String, reply: oneshot::Sender<bool> },
    Reorder { ids: Vec<String>, reply: oneshot::Sender<Result<(), QueueError>> },
    Start { id: Option<String>, reply: oneshot::Sender<Result<TurnId, QueueError>> },
}

impl Thread {
    /// The queue.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn queue(&self) -> Result<QueueState, Closed> {
        self.ask(|reply| ThreadRequest::Queue(QueueRequest::List { reply })).await
    }

    /// Adds an entry at the end, and returns it; an idle thread starts it at once, unless the queue is paused. If a
    /// message with its client id was already accepted, the entry is not added, and its id is that of the turn that
    /// accepted the message.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn enqueue(&self, entry: QueuedInput) -> Result<Result<Arc<QueuedInput>, QueueError>, Closed> {
        let entry = Box::new(entry);
        self.ask(|reply| ThreadRequest::Queue(QueueRequest::Add { entry, reply })).await
    }

    /// Replaces the input of an entry.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn update_queued(
        &self,
        id: String,
        input: Vec<UserInput>,
    ) -> Result<Result<Arc<QueuedInput>, QueueError>, Closed> {
        self.ask(|reply| ThreadRequest::Queue(QueueRequest::Update { id, input, reply })).await
    }

    /// Removes an entry; false if there is none with this id.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn delete_queued(&self, id: String) -> Result<bool, Closed> {
        self.ask(|reply| ThreadRequest::Queue(QueueRequest::Delete { id, reply })).await
    }

    /// Orders all entries.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn reorder_queue(&self, ids: Vec<String>) -> Result<Result<(), QueueError>, Closed> {
        self.ask(|reply| ThreadRequest::Queue(QueueRequest::Reorder { ids, reply })).await
    }

    /// Resumes a paused queue: starts the turn of an entry, by default the next one.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn start_queue(&self, id: Option<String>) -> Result<Result<TurnId, QueueError>, Closed> {
        self.ask(|reply| ThreadRequest::Queue(QueueRequest::Start { id, reply })).await
    }
}
