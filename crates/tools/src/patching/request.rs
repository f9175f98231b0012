//! Parses a call into a patch: a separate tool, or `apply_patch` in a command.

use std::path::{Path, PathBuf};
use std::time::Duration;

use codex_log::ItemId;
use serde::Deserialize;
use serde_json::json;

use crate::call::{ToolCall, ToolInput};
use crate::command::CommandRequest;

/// A patch requested by the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PatchRequest {
    pub(crate) call: ItemId,
    pub(crate) text: String,
    /// The base of its relative paths.
    pub(crate) cwd: PathBuf,
    pub(crate) voice: ReportFormat,
}

/// The format of the report for the model: that of the tool it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportFormat {
    /// As a command.
    Command,
    /// As the tool for patches.
    Tool,
    /// In plain words, for tools whose changes are not written as a patch.
    Plain,
}

impl ReportFormat {
    /// The report that the changes do not fit the files.
    pub(super) fn say_misfit(self, problem: &str) -> String {
        match self {
            Self::Command | Self::Tool => format!("apply_patch verification failed: {problem}"),
            Self::Plain => problem.to_owned(),
        }
    }

    /// The report for the model.
    pub(super) fn say(self, exit_code: i32, duration: Duration, text: &str) -> String {
        let seconds = (duration.as_secs_f64() * 10.0).round() / 10.0;
        match self {
            Self::Command => {
                json!({"output": text, "metadata": {"exit_code": exit_code, "duration_seconds": seconds}}).to_string()
            }
            Self::Plain => text.to_owned(),
            Self::Tool => format!("Exit code: {exit_code}\nWall time: {seconds} seconds\nOutput:\n{text}"),
        }
    }
}

#[derive(Deserialize)]
struct FunctionArguments {
    input: String,
}

impl PatchRequest {
    /// Parses a call of the tool for patches; `None` for other tools.
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
        Some(text.map(|text| Self { call, text, cwd: cwd.to_owned(), voice: ReportFormat::Tool }))
    }

    /// Finds a patch in a command; `None` for any other command.
    pub(crate) fn find(command: &CommandRequest) -> Option<Self> {
        let found = codex_patch::from_command(&command.argv)?;
        let cwd = found.cwd.map_or_else(|| command.cwd.clone(), |folder| command.cwd.join(folder));
        Some(Self { call: command.call.clone(), text: found.text, cwd, voice: ReportFormat::Command })
    }
}
