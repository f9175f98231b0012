//! From a call to a patch: a tool of its own, or `apply_patch` in a command.

use std::path::{Path, PathBuf};
use std::time::Duration;

use codex_log::ItemId;
use serde::Deserialize;
use serde_json::json;

use crate::call::{ToolCall, ToolInput};
use crate::command::CommandRequest;

/// A patch as the model wants it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PatchRequest {
    /// The call it comes from.
    pub(crate) call: ItemId,
    /// The patch.
    pub(crate) text: String,
    /// Where its relative paths start.
    pub(crate) cwd: PathBuf,
    /// How the model is told what came of it.
    pub(crate) voice: Voice,
}

/// How the model is told what came of a patch: in the form of the tool it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    /// As a command.
    Command,
    /// As the tool for patches.
    Tool,
}

impl Voice {
    /// What the model gets.
    pub(super) fn say(self, exit_code: i32, duration: Duration, text: &str) -> String {
        let seconds = (duration.as_secs_f64() * 10.0).round() / 10.0;
        match self {
            Self::Command => {
                json!({"output": text, "metadata": {"exit_code": exit_code, "duration_seconds": seconds}}).to_string()
            }
            Self::Tool => format!("Exit code: {exit_code}\nWall time: {seconds} seconds\nOutput:\n{text}"),
        }
    }
}

#[derive(Deserialize)]
struct FunctionArguments {
    input: String,
}

impl PatchRequest {
    /// Reads a call of the tool for patches; none for other tools.
    pub(crate) fn read(call: &ToolCall, cwd: &Path) -> Option<Result<Self, serde_json::Error>> {
        if call.tool != "apply_patch" {
            return None;
        }
        let text = match &call.input {
            ToolInput::Custom(text) => Ok(text.clone()),
            ToolInput::Function(arguments) => {
                serde_json::from_str::<FunctionArguments>(arguments).map(|arguments| arguments.input)
            }
            ToolInput::UserShell { .. } => return None,
        };
        let call = call.id.clone();
        Some(text.map(|text| Self { call, text, cwd: cwd.to_owned(), voice: Voice::Tool }))
    }

    /// Finds a patch in a command; none when the command is something else.
    pub(crate) fn find(command: &CommandRequest) -> Option<Self> {
        let found = codex_patch::from_command(&command.argv)?;
        let cwd = found.cwd.map_or_else(|| command.cwd.clone(), |folder| command.cwd.join(folder));
        Some(Self { call: command.call.clone(), text: found.text, cwd, voice: Voice::Command })
    }
}
