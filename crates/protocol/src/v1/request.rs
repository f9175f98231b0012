//! What the server asks of a client that listens to a conversation.

use std::collections::BTreeMap;
use std::path::PathBuf;

use codex_wire::change::FileChange;
use codex_wire::command::ParsedCommand;
use codex_wire::decision::ReviewDecision;
use codex_wire::ids::ThreadId;
use serde::{Deserialize, Serialize};

/// `execCommandApproval`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExecCommandApprovalParams {
    /// The conversation.
    pub conversation_id: ThreadId,
    /// The call.
    pub call_id: String,
    /// Exactly what would run.
    pub command: Vec<String>,
    /// Where it would run.
    pub cwd: PathBuf,
    /// Why a person is asked.
    pub reason: Option<String>,
    /// What it does, for display.
    pub parsed_cmd: Vec<ParsedCommand>,
}

/// `applyPatchApproval`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApplyPatchApprovalParams {
    /// The conversation.
    pub conversation_id: ThreadId,
    /// The call.
    pub call_id: String,
    /// What would happen to each file.
    pub file_changes: BTreeMap<PathBuf, FileChange>,
    /// Why a person is asked.
    pub reason: Option<String>,
    /// A folder that would be writable for the rest of the session.
    pub grant_root: Option<PathBuf>,
}

/// The answer to either.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConversationApprovalResponse {
    /// The answer.
    pub decision: ReviewDecision,
}
