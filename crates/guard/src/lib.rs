//! What in a workspace or a home can be turned against its user: the names that make programs run code, git's configuration, and
//! secrets; and how to take the edge off what a command has left.
//!
//! Invariants: nothing is run, no link is followed, nothing is deleted. No async code, and nothing of a sandbox: this is what a
//! sandbox protects, not how.

#[cfg(target_os = "linux")]
pub mod disarm;
pub mod findings;
pub mod git;
pub mod names;
pub mod roots;
pub mod secrets;
pub mod walk;
