//! The second line of defence: the changes of a command are inspected after it has ended.
//!
//! Not everything can be closed while a command runs: creating a repository deep in the workspace is ordinary work, and
//! so is a commit. So the changes are inspected afterwards. Anything that would make the user's next git, editor or
//! package manager run code is *disarmed*: renamed in place, or replaced by a harmless version.
//!
//! Invariants: nothing is deleted, and every change is reported. Files that the command cannot have changed, because
//! they were closed or are older than the command, are left alone. No link is followed, and everything has a budget.

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
