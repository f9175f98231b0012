//! Requests from the server to a client that listens to a conversation.

use std::collections::BTreeMap;
use std::path::PathBuf;

use codex_wire::change::FileChange;
use codex_wire::command::ParsedCommand;
use codex_wire::decision::ReviewDecision;
use codex_wire::ids::ThreadId;
use serde::{Deserialize, Serialize};

/// `execCommandApproval`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExecCommandApprovalParams {
    /// The conversation.
    pub conversation_id: ThreadId,
    /// The call.
    pub call_id: String,
    /// The exact command.
    pub command: Vec<String>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// The reason for the request.
    pub reason: Option<String>,
    /// Its parsed form, for display.
    pub parsed_cmd: Vec<ParsedCommand>,
}

/// `applyPatchApproval`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApplyPatchApprovalParams {
    /// The conversation.
    pub conversation_id: ThreadId,
    /// The call.
    pub call_id: String,
    /// The proposed change of each file.
    pub file_changes: BTreeMap<PathBuf, FileChange>,
    /// The reason for the request.
    pub reason: Option<String>,
    /// A folder that would be writable for the rest of the session.
    pub grant_root: Option<PathBuf>,
}

/// The answer to either.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConversationApprovalResponse {
    /// The answer.
    pub decision: ReviewDecision,
}
