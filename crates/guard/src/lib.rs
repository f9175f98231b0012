//! The parts of a workspace or a home that can be turned against the user: names that make programs run code, git's
//! configuration, and secrets; and the disarming of what a command has left behind.
//!
//! Invariants: nothing is run, no link is followed, nothing is deleted. No async code, and no sandboxing: this crate
//! knows what a sandbox protects, not how.

#[cfg(target_os = "linux")]
pub mod disarm;
pub mod findings;
#[cfg(target_os = "linux")]
pub mod fingerprint;
pub mod git;
pub mod names;
pub mod roots;
pub mod secrets;
pub mod walk;
