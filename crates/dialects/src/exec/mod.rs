//! The events of `codex exec --json`: a projection of a thread's log to a few kinds of JSON lines.
//!
//! Scripts and SDKs read these. Lines stay short enough for readers that give up at 64 KiB, as far as that is up to us:
//! what a command printed is cut in the middle, what the model said never is.

mod bounded;
mod event;
mod items;
mod project;
#[cfg(test)]
mod tests;

pub use event::{
    ApprovalRequest, CommandStatus, FileChangeKind, FileChangeStatus, Subject, ThreadError, ThreadEvent, ThreadItem,
    ThreadItemDetails, Todo, UpdatedFile, Usage,
};
pub use project::Projector;
