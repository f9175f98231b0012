//! The abilities of the agent: the tools offered to a model, and the commands and patches of its calls.
//!
//! Invariant: state machines without I/O decide what a call does; nothing runs and nothing is written that was not
//! judged first. Nothing here knows models, stored threads, or clients.
#![cfg_attr(test, allow(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots that way"))]

pub mod agents;
pub mod call;
pub mod command;
pub mod context;
pub mod dynamic;
pub mod grants;
pub mod images;
pub mod lifecycle;
pub mod one_off;
mod patching;
mod permissions;
mod plain;
pub mod registry;
pub mod rules;
pub mod sampling;
pub mod servers;
mod specs;
pub mod trusted_git;
pub mod worktrees;
mod written;

pub use patching::{ForeignChanges, apply_changes};
pub use written::written_files;

/// An error with its causes on one line, for clients.
#[must_use]
pub fn full_message(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message.push_str(": ");
        message.push_str(&error.to_string());
        cause = error.source();
    }
    message
}
