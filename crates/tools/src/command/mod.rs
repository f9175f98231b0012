//! Commands: what a model or the user wants to run, whether it may, the process, and what comes of it.
//!
//! Invariant: nothing runs without a `Permit`, and only the machine makes them.

mod launch;
mod machine;
mod open_terminal;
mod output;
mod request;
mod run;
mod terminal;
mod typing;

use std::time::Duration;

pub(crate) use self::launch::{LaunchContext, Process, variables};
pub(crate) use self::machine::{CommandCall, Input, Permit};
pub use self::open_terminal::OpenTerminal;
pub(crate) use self::output::{Ran, aborted_text};
pub(crate) use self::request::{CommandRequest, Confinement, Place};
pub(crate) use self::run::{CommandTool, UserShellTool};
pub use self::terminal::Shown;
pub(crate) use self::typing::WriteStdinTool;

/// What a call is held to.
#[derive(Debug, Clone, Copy)]
pub struct CallLimits {
    /// How many bytes of output the model gets at most.
    pub output_bytes: usize,
    /// After how long a question counts as answered with a no.
    pub answer_within: Option<Duration>,
}
