//! Calls that the model repeats although they fail.
//!
//! A call counts as the same if its tool and its arguments are. Any call that succeeds changes something, or shows the
//! model something, so the count starts again with it: a test may fail ten times between changes of files.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use codex_log::Failure;
use codex_tools::call::{ToolCall, ToolInput};
use codex_wire::error_info::CodexErrorInfo;

/// The failure from which on the model is told that it repeats itself.
const POINTED_OUT: u32 = 3;
/// The failure that ends the turn.
const ENDED: u32 = 10;
/// The maximum number of different calls that are counted.
const MOST_COUNTED: usize = 1024;

/// The failures of each call, since the last call that succeeded.
#[derive(Debug, Default)]
pub(super) struct Repeats(HashMap<u64, u32>);

/// The consequence of one more failure.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Repeated {
    /// The model is told this.
    PointedOut(String),
    /// The turn ends with this reason.
    Ended(String),
}

impl Repeats {
    /// Counts the end of a call.
    pub(super) fn count(&mut self, call: &ToolCall, has_failed: bool) -> Option<Repeated> {
        if !has_failed {
            self.0.clear();
            return None;
        }
        if self.0.len() == MOST_COUNTED {
            self.0.clear();
        }
        let failures = self.0.entry(digest(call)).or_default();
        *failures += 1;
        let tool = &call.tool;
        match *failures {
            ENDED.. => {
                Some(Repeated::Ended(format!("the model made the same failing call of {tool} {failures} times")))
            }
            POINTED_OUT.. => Some(Repeated::PointedOut(format!(
                "<repeated_call>\nThe same call of {tool} has failed {failures} times, and nothing else has succeeded in \
                 between. Do not repeat it: look for the cause, try another way, or say what stops you. The turn ends when \
                 it fails for the {ENDED}th time.\n</repeated_call>"
            ))),
            _ => None,
        }
    }
}

fn digest(call: &ToolCall) -> u64 {
    let mut hasher = DefaultHasher::new();
    call.tool.hash(&mut hasher);
    match &call.input {
        ToolInput::Function(text) | ToolInput::Custom(text) => text.hash(&mut hasher),
        ToolInput::UserShell { command, .. } => command.hash(&mut hasher),
    }
    hasher.finish()
}

/// The failure of a turn that is ended for a reason that no retry removes.
pub(super) fn given_up(message: String, hint: &'static str) -> Failure {
    Failure { message, hint: Some(hint), info: CodexErrorInfo::Other }
}
