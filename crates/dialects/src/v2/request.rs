//! Questions as requests of v2.

use std::path::PathBuf;

use codex_log::{Question, QuestionKind};
use codex_protocol::v2::request::{CommandApprovalParams, FileChangeApprovalParams, ServerRequest};
use codex_wire::ids::ThreadId;
use serde_json::{Value, json};

use super::items::{actions, command_line};
use super::mcp;
use crate::{ProtocolRelease, mcp_tool};

/// A question as a request.
#[must_use]
pub fn question(release: ProtocolRelease, thread: ThreadId, turn: &str, asked: &Question, at_ms: i64) -> ServerRequest {
    let (thread_id, turn_id) = (thread.to_string(), turn.to_owned());
    let item_id = asked.item().as_str().to_owned();
    let reason = asked.reason.clone();
    match &asked.kind {
        QuestionKind::Command { argv, cwd, parsed, amendment } => {
            ServerRequest::CommandExecutionRequestApproval(CommandApprovalParams {
                kind: "command".into(),
                thread_id,
                turn_id,
                item_id,
                started_at_ms: at_ms,
                environment_id: "local".into(),
                reason,
                command: command_line(argv),
                cwd: cwd.clone(),
                command_actions: actions(argv, parsed, release),
                proposed_execpolicy_amendment: amendment.clone(),
                available_decisions: available_decisions(amendment.as_deref()),
            })
        }
        QuestionKind::Patch { grant_root, .. } => ServerRequest::FileChangeRequestApproval(FileChangeApprovalParams {
            thread_id,
            turn_id,
            item_id,
            started_at_ms: at_ms,
            reason: reason.filter(|_| release != ProtocolRelease::V0166),
            grant_root: grant_root.clone().filter(|_| release != ProtocolRelease::V0166),
        }),
        QuestionKind::Tool { invocation, description } if release == ProtocolRelease::V0166 => {
            mcp::approval(thread_id, turn_id, invocation, description.as_deref())
        }
        // Earlier clients can only answer questions about commands.
        QuestionKind::Tool { invocation, .. } => {
            let argv = mcp_tool::argv(invocation);
            ServerRequest::CommandExecutionRequestApproval(CommandApprovalParams {
                kind: "command".into(),
                thread_id,
                turn_id,
                item_id,
                started_at_ms: at_ms,
                environment_id: "local".into(),
                reason,
                command: command_line(&argv),
                cwd: PathBuf::new(),
                command_actions: actions(&argv, &mcp_tool::parsed(invocation), release),
                proposed_execpolicy_amendment: None,
                available_decisions: available_decisions(None),
            })
        }
        QuestionKind::Elicitation(asked) => mcp::elicitation(thread, turn, asked),
    }
}

fn available_decisions(amendment: Option<&[String]>) -> Vec<Value> {
    let amendment = amendment.map(|words| json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": words}}));
    std::iter::once(json!("accept")).chain(amendment).chain([json!("cancel")]).collect()
}
