//! What the server asks of a client that listens to a conversation.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::change::FileChange;
use crate::command::ParsedCommand;
use crate::ids::ThreadId;

/// `execCommandApproval`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecCommandApprovalParams<'a> {
    /// The conversation.
    pub conversation_id: ThreadId,
    /// The call.
    pub call_id: &'a str,
    /// Exactly what would run.
    pub command: &'a [String],
    /// Where it would run.
    pub cwd: &'a PathBuf,
    /// Why a person is asked.
    pub reason: Option<&'a str>,
    /// What it does, for display.
    pub parsed_cmd: &'a [ParsedCommand],
}

/// `applyPatchApproval`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApplyPatchApprovalParams<'a> {
    /// The conversation.
    pub conversation_id: ThreadId,
    /// The call.
    pub call_id: &'a str,
    /// What would happen to each file.
    pub file_changes: &'a BTreeMap<PathBuf, FileChange>,
    /// Why a person is asked.
    pub reason: Option<&'a str>,
    /// A folder that would be writable for the rest of the session.
    pub grant_root: Option<&'a PathBuf>,
}
