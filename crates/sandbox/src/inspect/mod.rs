//! The second line of defence: what a command has left is inspected when it has ended.
//!
//! Not everything can be closed while a command runs: a new repository deep in the workspace is ordinary work, and so is a
//! commit. So what the command has changed is looked at afterwards. What would make the user's next git, editor or package
//! manager run code is *disarmed*: renamed beside itself, or replaced by a harmless form of itself.
//!
//! Invariants: nothing is deleted, and whatever is changed is reported. What a command cannot have changed, because it was
//! closed or is older than the command, is left alone. No link is followed, and everything has a budget.

#[cfg(target_os = "linux")]
mod due;
#[cfg(target_os = "linux")]
mod queue;
#[cfg(target_os = "linux")]
mod repository;
#[cfg(target_os = "linux")]
mod workspace;

#[cfg(target_os = "linux")]
pub(crate) use due::Due;
#[cfg(target_os = "linux")]
pub(crate) use queue::inspect_aside;
