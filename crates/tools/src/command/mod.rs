//! Commands: the request of a model or user, its judgement, the process, and its outcome.
//!
//! Invariant: nothing runs without a `Permit`, and only the machine creates them.

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
pub(crate) use self::output::CommandOutcome;
pub use self::output::cut;
pub(crate) use self::request::{CommandRequest, Confinement, ParseContext};
pub(crate) use self::run::{CommandTool, UserShellTool, forecast};
pub use self::terminal::PollOutput;
pub(crate) use self::typing::WriteStdinTool;

/// The limits of a call.
#[derive(Debug, Clone, Copy)]
pub struct CallLimits {
    /// The maximum number of output bytes for the model.
    pub output_bytes: usize,
    /// The time after which an unanswered question counts as declined.
    pub answer_within: Option<Duration>,
}
