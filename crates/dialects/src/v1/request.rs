//! Questions as requests of v1.

use std::path::PathBuf;

use codex_log::{Question, QuestionKind};
use codex_protocol::v1::request::{ApplyPatchApprovalParams, ExecCommandApprovalParams};
use codex_protocol::v2::request::ServerRequest;
use codex_wire::ids::ThreadId;

use crate::mcp_tool;

/// A question as a request; `None` if clients of these requests cannot answer it.
#[must_use]
pub fn question(conversation_id: ThreadId, asked: &Question) -> Option<ServerRequest> {
    let (call_id, reason) = (asked.item().as_str().to_owned(), asked.reason.clone());
    Some(match &asked.kind {
        QuestionKind::Command { argv, cwd, parsed, .. } => {
            ServerRequest::ExecCommandApproval(ExecCommandApprovalParams {
                conversation_id,
                call_id,
                command: argv.clone(),
                cwd: cwd.clone(),
                reason,
                parsed_cmd: parsed.clone(),
            })
        }
        QuestionKind::Patch { changes, grant_root } => ServerRequest::ApplyPatchApproval(ApplyPatchApprovalParams {
            conversation_id,
            call_id,
            file_changes: (**changes).clone(),
            reason,
            grant_root: grant_root.clone(),
        }),
        QuestionKind::Tool { invocation, .. } => ServerRequest::ExecCommandApproval(ExecCommandApprovalParams {
            conversation_id,
            call_id,
            command: mcp_tool::argv(invocation),
            cwd: PathBuf::new(),
            reason,
            parsed_cmd: mcp_tool::parsed(invocation),
        }),
        QuestionKind::Permissions { asked, cwd } => ServerRequest::ExecCommandApproval(ExecCommandApprovalParams {
            conversation_id,
            call_id,
            command: asked.argv(),
            cwd: cwd.clone(),
            reason,
            parsed_cmd: Vec::new(),
        }),
        // They can only say yes or no.
        QuestionKind::Elicitation(elicitation) if elicitation.needs_content() => return None,
        QuestionKind::Elicitation(elicitation) => ServerRequest::ExecCommandApproval(ExecCommandApprovalParams {
            conversation_id,
            call_id,
            command: mcp_tool::question_argv(elicitation),
            cwd: PathBuf::new(),
            reason: Some(elicitation.message.clone()),
            parsed_cmd: Vec::new(),
        }),
    })
}
