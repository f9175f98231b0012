//! What the log says of commands and patches.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codex_wire::change::FileChange;
use codex_wire::command::ParsedCommand;

use crate::ItemId;

/// A command the model runs.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandItem {
    /// Its name: the id of the model's call.
    pub id: ItemId,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// What it does, for display.
    pub parsed: Vec<ParsedCommand>,
    /// The number of its terminal, if it runs in one.
    pub terminal: Option<u64>,
    /// Whether the user runs it, not the model.
    pub is_users_own: bool,
    /// How far it is.
    pub status: CommandStatus,
    /// How it ended, once it has.
    pub end: Option<CommandEnd>,
}

/// How far a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandStatus {
    /// A person is asked first.
    AwaitingApproval,
    /// It runs.
    Running,
    /// It ended with status 0.
    Completed,
    /// It ended in another way, or was cut off.
    Failed,
    /// It was not allowed to run.
    Declined,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandEnd {
    /// The exit status; -1 when it never ran.
    pub exit_code: i32,
    /// How long it took.
    pub duration: Duration,
    /// What it printed on standard output, bounded.
    pub stdout: String,
    /// What it printed on standard error, bounded.
    pub stderr: String,
    /// Both in the order they came, bounded.
    pub aggregated: String,
    /// What the model gets of it.
    pub formatted: String,
}

impl CommandEnd {
    /// The end of a command that was not allowed to run.
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

/// A patch of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchItem {
    /// Its name: the id of the model's call.
    pub id: ItemId,
    /// What it does to each file.
    pub changes: Arc<BTreeMap<PathBuf, FileChange>>,
    /// Whether nobody had to be asked.
    pub is_auto_approved: bool,
    /// How far it is.
    pub status: PatchStatus,
    /// How it ended, once it has.
    pub end: Option<PatchEnd>,
}

/// How far a patch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchStatus {
    /// A person is asked first.
    AwaitingApproval,
    /// It is being applied.
    Running,
    /// It was applied.
    Completed,
    /// It could not be applied, and nothing was changed.
    Failed,
    /// It was not allowed.
    Declined,
}

/// How a patch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchEnd {
    /// Which files were changed.
    pub stdout: String,
    /// What went wrong.
    pub stderr: String,
}
