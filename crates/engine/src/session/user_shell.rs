//! Commands of the user's own. They run as the user's, outside the sandbox, and the model is told of them later.

use std::time::Duration;

use codex_log::{ItemId, TurnId};
use codex_wire::ids::ThreadId;

use super::Session;
use crate::turn::Turn;
use codex_tools::call::{ToolCall, ToolInput};

/// How long a command of the user's may take when nothing else is said.
const LONGEST: Duration = Duration::from_secs(60 * 60);

impl Session {
    /// Runs a command of the user's in a turn of its own; false when another turn runs.
    pub(super) async fn run_user_shell(&mut self, turn: TurnId, command: String, timeout: Option<Duration>) -> bool {
        if self.running.is_some() {
            return false;
        }
        let call = ToolCall {
            id: ItemId::new(ThreadId::fresh().to_string()),
            tool: "user_shell".to_owned(),
            input: ToolInput::UserShell { command, timeout: timeout.unwrap_or(LONGEST) },
        };
        let (machine, effects) = Turn::user_shell(&turn, call, self.window(), self.turn_policy(&self.settings));
        self.begin(turn, machine, None);
        self.perform(effects).await;
        true
    }
}
