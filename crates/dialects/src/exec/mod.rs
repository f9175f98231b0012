//! The events of `codex exec --json`: a projection of a thread's log to a few kinds of JSON lines.
//!
//! Scripts and SDKs read these. Lines stay short enough for readers that give up at 64 KiB where possible: the output
//! of a command is cut in the middle, messages of the model never are.

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
