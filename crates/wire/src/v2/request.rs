//! What the server asks of a client.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use super::item::CommandAction;

/// `item/commandExecution/requestApproval`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandApprovalParams {
    /// What is asked about; always a command here.
    pub kind: &'static str,
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
    /// The item.
    pub item_id: String,
    /// When the item began.
    pub started_at_ms: i64,
    /// Where it would run; always `local` here.
    pub environment_id: &'static str,
    /// Why a person is asked.
    pub reason: Option<String>,
    /// The command line.
    pub command: String,
    /// Where it would run.
    pub cwd: PathBuf,
    /// What it does, for display.
    pub command_actions: Vec<CommandAction>,
    /// A beginning of commands that a rule could allow from here on.
    pub proposed_execpolicy_amendment: Option<Vec<String>>,
    /// The answers that make sense.
    pub available_decisions: Vec<Value>,
}

/// `item/fileChange/requestApproval`. What would change is in the item.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChangeApprovalParams {
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
    /// The item.
    pub item_id: String,
    /// When the item began.
    pub started_at_ms: i64,
    /// Why a person is asked.
    pub reason: Option<String>,
    /// A folder that would be writable for the rest of the session.
    pub grant_root: Option<PathBuf>,
}
