//! Questions in the words of the first version.

use codex_engine::log::{Approval, Subject};
use codex_wire::ids::ThreadId;
use codex_wire::v1::request::{ApplyPatchApprovalParams, ExecCommandApprovalParams};

use crate::app::outbox::Outbox;

/// A question as a line, and its number.
pub(crate) fn question(outbox: &Outbox, conversation_id: ThreadId, approval: &Approval) -> (i64, Vec<u8>) {
    let (call_id, reason) = (approval.call.as_str(), approval.reason.as_deref());
    match &approval.subject {
        Subject::Command { argv, cwd, parsed, .. } => outbox.request(
            "execCommandApproval",
            ExecCommandApprovalParams { conversation_id, call_id, command: argv, cwd, reason, parsed_cmd: parsed },
        ),
        Subject::Patch { changes, grant_root } => outbox.request(
            "applyPatchApproval",
            ApplyPatchApprovalParams {
                conversation_id,
                call_id,
                file_changes: changes,
                reason,
                grant_root: grant_root.as_ref(),
            },
        ),
    }
}
