//! The second line of defence: what commands and patches leave is inspected.
//!
//! Not everything can be closed while a command runs: creating a repository deep in the workspace is ordinary work, and
//! so is a commit. So the folders are inspected afterwards, and while a command goes on. Anything that would make the
//! user's next git, editor or package manager run code is *disarmed*: renamed in place, or replaced by a harmless version.
//!
//! Invariants: whatever git would read back from a place that a command could write is harmless by its content, or
//! was there with this content before commands could write ([`Accepted`]), or is out of git's reach. Anything that
//! cannot be examined counts as harmful. Nothing is deleted, every change is reported, and no link is followed.

#[cfg(target_os = "linux")]
mod accepted;
#[cfg(target_os = "linux")]
mod due;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod inspector;
#[cfg(target_os = "linux")]
mod points;
#[cfg(target_os = "linux")]
mod queue;
#[cfg(target_os = "linux")]
mod repository;
#[cfg(target_os = "linux")]
mod unconfined;

#[cfg(target_os = "linux")]
pub(crate) use accepted::Accepted;
#[cfg(target_os = "linux")]
pub(crate) use due::Due;
#[cfg(target_os = "linux")]
pub(crate) use queue::{Ticker, inspect_aside, inspect_now};
#[cfg(target_os = "linux")]
pub use unconfined::names_programs;
