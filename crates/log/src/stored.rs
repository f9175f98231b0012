//! Calls as files keep them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codex_wire::change::FileChange;
use codex_wire::command::ParsedCommand;
use serde::Deserialize;

use crate::{CommandEnd, CommandItem, CommandStatus, Item, ItemId, PatchEnd, PatchItem, PatchStatus};

/// An item that is whole.
#[derive(Deserialize)]
#[serde(tag = "type")]
pub enum StoredItem {
    CommandExecution(StoredCommand),
    FileChange {
        id: String,
        changes: BTreeMap<PathBuf, FileChange>,
        #[serde(default)]
        status: String,
    },
    WebSearch {
        id: String,
        #[serde(default)]
        query: String,
    },
    #[serde(other)]
    Other,
}

/// A command that is over.
#[derive(Deserialize)]
pub struct StoredCommand {
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

impl StoredItem {
    /// The item as it began, and as it ended.
    #[must_use]
    pub fn both(self) -> Option<(Item, Item)> {
        match self {
            Self::CommandExecution(command) => Some(command.both()),
            Self::FileChange { id, changes, status } => {
                let status = match status.as_str() {
                    "completed" => PatchStatus::Completed,
                    "declined" => PatchStatus::Declined,
                    _ => PatchStatus::Failed,
                };
                let begun = PatchItem {
                    id: ItemId::new(id),
                    changes: Arc::new(changes),
                    is_auto_approved: true,
                    status: PatchStatus::Running,
                    end: None,
                };
                let end = Some(PatchEnd { stdout: String::new(), stderr: String::new() });
                let ended = PatchItem { status, end, ..begun.clone() };
                Some((Item::Patch(Arc::new(begun)), Item::Patch(Arc::new(ended))))
            }
            Self::WebSearch { id, query } => {
                let item = Item::WebSearch { id: ItemId::new(id), query };
                Some((item.clone(), item))
            }
            Self::Other => None,
        }
    }
}

impl StoredCommand {
    fn both(self) -> (Item, Item) {
        // The newest releases keep folders as URLs.
        let cwd = self.cwd.to_str().and_then(|cwd| cwd.strip_prefix("file://")).map(PathBuf::from);
        let begun = CommandItem {
            id: ItemId::new(self.id),
            argv: self.command,
            cwd: cwd.unwrap_or(self.cwd),
            parsed: self.parsed_cmd,
            terminal: self.process_id.and_then(|id| id.parse().ok()),
            is_users_own: self.source.as_deref() == Some("user_shell"),
            status: CommandStatus::Running,
            end: None,
        };
        let output = self.aggregated_output.unwrap_or_default();
        let end = CommandEnd {
            exit_code: self.exit_code.unwrap_or(-1),
            duration: self.duration.unwrap_or_default(),
            stdout: output.clone(),
            stderr: String::new(),
            aggregated: output.clone(),
            formatted: output,
        };
        let status = match self.status.as_str() {
            "completed" => CommandStatus::Completed,
            "declined" => CommandStatus::Declined,
            _ => CommandStatus::Failed,
        };
        let ended = CommandItem { status, end: Some(end), ..begun.clone() };
        (Item::Command(Arc::new(begun)), Item::Command(Arc::new(ended)))
    }
}
