//! The user's files around a thread: the repository they belong to ([`git`]), finding files by a few letters of their
//! path ([`search`]), and changes to them (`watch`).
//!
//! The workspace is assumed to be hostile. No module follows instructions in a file to run something or to read
//! elsewhere.

pub mod git;
pub mod search;
#[cfg(target_os = "linux")]
pub mod watch;
