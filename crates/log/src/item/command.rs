//! A command the model runs.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use codex_wire::command::ParsedCommand;
use serde::{Deserialize, Serialize};

use super::{ItemId, Status};
use crate::draft::{Run, RunKind};

/// A command the model runs.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandItem {
    /// The id of the model's call.
    pub id: ItemId,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The working directory.
    pub cwd: PathBuf,
    /// Its parsed form, for display.
    pub parsed: Vec<ParsedCommand>,
    /// The number of its terminal, if it runs in one.
    pub terminal: Option<u64>,
    /// Whether the user runs it, not the model.
    pub is_users_own: bool,
    pub status: CommandStatus,
    /// Its result, once it has ended.
    pub end: Option<CommandEnd>,
}

/// The status of a command.
pub type CommandStatus = Status;

/// The result of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandEnd {
    /// The exit code; -1 if it never ran.
    pub exit_code: i32,
    pub duration: Duration,
    /// Its standard output, bounded.
    pub stdout: String,
    /// Its standard error, bounded.
    pub stderr: String,
    /// Both streams in the order of arrival, bounded.
    pub aggregated: String,
    /// The output for the model.
    pub formatted: String,
}

impl CommandEnd {
    /// The result of a command that was not allowed to run.
    #[must_use]
    pub fn declined(why: &str) -> Self {
        Self {
            exit_code: -1,
            duration: Duration::ZERO,
            stdout: String::new(),
            stderr: why.to_owned(),
            aggregated: why.to_owned(),
            formatted: why.to_owned(),
        }
    }
}

impl CommandEnd {
    /// The result of a command of which only the output is known.
    fn of_output(output: String, exit_code: Option<i32>, duration: Duration) -> Self {
        Self {
            exit_code: exit_code.unwrap_or(-1),
            duration,
            stdout: output.clone(),
            stderr: String::new(),
            aggregated: output.clone(),
            formatted: output,
        }
    }
}

impl CommandItem {
    pub(super) fn begun(&self) -> Self {
        Self {
            id: self.id.clone(),
            argv: self.argv.clone(),
            cwd: self.cwd.clone(),
            parsed: self.parsed.clone(),
            terminal: self.terminal,
            is_users_own: self.is_users_own,
            status: Status::Running,
            end: None,
        }
    }

    pub(super) fn broken_off(&self, runs: &[Run]) -> Self {
        let output = Run::texts(runs, RunKind::Output).concat();
        let end = CommandEnd::of_output(output, None, Duration::ZERO);
        Self { status: Status::Failed, end: Some(end), ..self.clone() }
    }

    /// A script is more readable without the shell around it.
    pub(super) fn title(&self) -> Cow<'_, str> {
        match self.argv.as_slice() {
            [_, flag, script] if flag == "-lc" || flag == "-c" => script.into(),
            argv => argv.join(" ").into(),
        }
    }

    pub(super) fn weight(&self) -> usize {
        self.end.as_ref().map_or(0, |end| 2 * end.aggregated.len() + end.formatted.len())
    }

    pub(super) fn stored_form(&self) -> StoredForm<'_> {
        let end = self.end.as_ref().filter(|_| self.status != Status::Declined);
        StoredForm {
            id: self.id.as_str(),
            command: &self.argv,
            cwd: &self.cwd,
            parsed_cmd: &self.parsed,
            process_id: self.terminal.map(|terminal| terminal.to_string()),
            source: match (self.is_users_own, self.terminal) {
                (true, _) => USER_SHELL,
                (false, Some(_)) => "unified_exec_startup",
                (false, None) => "agent",
            },
            status: self.status.word(),
            aggregated_output: end.map_or("", |end| &end.aggregated),
            exit_code: end.map(|end| end.exit_code),
            duration: end.map(|end| end.duration),
        }
    }
}

/// The source of a command that the user runs.
const USER_SHELL: &str = "user_shell";

#[derive(Serialize)]
pub(crate) struct StoredForm<'a> {
    id: &'a str,
    command: &'a [String],
    cwd: &'a Path,
    parsed_cmd: &'a [ParsedCommand],
    process_id: Option<String>,
    source: &'static str,
    status: &'static str,
    aggregated_output: &'a str,
    exit_code: Option<i32>,
    duration: Option<Duration>,
}

#[derive(Deserialize)]
pub struct Stored {
    id: String,
    command: Vec<String>,
    cwd: PathBuf,
    #[serde(default)]
    parsed_cmd: Vec<ParsedCommand>,
    #[serde(default)]
    process_id: Option<String>,
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    status: String,
    #[serde(default)]
    aggregated_output: Option<String>,
    #[serde(default)]
    exit_code: Option<i32>,
    #[serde(default)]
    duration: Option<Duration>,
}

impl From<Stored> for CommandItem {
    fn from(stored: Stored) -> Self {
        // The newest releases store folders as URLs.
        let cwd = stored.cwd.to_str().and_then(|cwd| cwd.strip_prefix("file://")).map(PathBuf::from);
        let output = stored.aggregated_output.unwrap_or_default();
        let end = CommandEnd::of_output(output, stored.exit_code, stored.duration.unwrap_or_default());
        Self {
            id: ItemId::new(stored.id),
            argv: stored.command,
            cwd: cwd.unwrap_or(stored.cwd),
            parsed: stored.parsed_cmd,
            terminal: stored.process_id.and_then(|id| id.parse().ok()),
            is_users_own: stored.source.as_deref() == Some(USER_SHELL),
            status: Status::of_ended(&stored.status),
            end: Some(end),
        }
    }
}
