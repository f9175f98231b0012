//! Commands of the user's own. They run as the user's, outside the sandbox, and the model is told of them later.

use std::time::Duration;

use codex_log::{ItemId, TurnId};
use codex_shell::Answer;
use codex_wire::ids::ThreadId;

use super::Session;
use crate::turn::{Input, Turn};
use codex_tools::call::{ToolCall, ToolInput};
use codex_tools::command::{CommandRequest, Confinement};

/// How long a command of the user's may take when nothing else is said.
const LONGEST: Duration = Duration::from_secs(60 * 60);

impl Session {
    /// Runs a command of the user's in a turn of its own; false when another turn runs.
    pub(super) async fn run_own(&mut self, turn: TurnId, command: String, timeout: Option<Duration>) -> bool {
        if self.running.is_some() {
            return false;
        }
        let call = ToolCall {
            id: ItemId::new(ThreadId::fresh().to_string()),
            tool: "user_shell".to_owned(),
            input: ToolInput::UserShell { command, timeout: timeout.unwrap_or(LONGEST) },
        };
        let (machine, effects) = Turn::own(&turn, call, self.window(), self.manners(&self.settings));
        self.begin(turn, machine, None);
        self.perform(effects).await;
        true
    }

    /// Begins the command. Nobody is asked: whoever could answer has just said so.
    pub(super) fn start_own(&mut self, id: &ItemId, command: &str, timeout: Duration) -> Option<Input> {
        let settings = self.turn_settings();
        let shell = self.setup.shell.as_deref().unwrap_or("/bin/sh");
        let request = CommandRequest {
            call: id.clone(),
            argv: vec![shell.to_owned(), "-lc".to_owned(), command.to_owned()],
            cwd: settings.cwd.clone(),
            timeout,
            is_users_own: true,
            is_escalated: false,
            confinement: Confinement::Usual,
            justification: None,
            terminal: None,
            typed: None,
        };
        let judged =
            Answer::Run { sandboxed: false, vouched: true, because: "it is the user's own command".to_owned() };
        self.begin_command(request, judged)
    }
}
