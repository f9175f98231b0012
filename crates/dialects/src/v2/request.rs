//! Questions as requests of v2.

use std::path::Path;

use codex_log::permissions::Permissions;
use codex_log::{Question, QuestionKind};
use codex_protocol::v2::permission_request::{
    AdditionalFileSystemPermissions, AdditionalNetworkPermissions, PermissionsRequestApprovalParams,
    RequestPermissionProfile,
};
use codex_protocol::v2::request::{CommandApprovalParams, FileChangeApprovalParams, ServerRequest};
use codex_wire::command::ParsedCommand;
use codex_wire::ids::ThreadId;
use serde_json::{Value, json};

use super::items::{actions, command_line};
use super::mcp;
use crate::{ProtocolRelease, mcp_tool};

/// A question as a request; `None` if clients of the release cannot answer it.
#[must_use]
pub fn question(
    release: ProtocolRelease,
    thread: ThreadId,
    turn: &str,
    asked: &Question,
    at_ms: i64,
) -> Option<ServerRequest> {
    let (thread_id, turn_id) = (thread.to_string(), turn.to_owned());
    let item_id = asked.item().as_str().to_owned();
    let reason = asked.reason.clone();
    Some(match &asked.kind {
        QuestionKind::Command { argv, cwd, parsed, amendment } => {
            let shown = Shown { argv, parsed, cwd, amendment: amendment.as_deref() };
            as_command(release, asked, (thread_id, turn_id), shown, at_ms)
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
            let (argv, parsed) = (mcp_tool::argv(invocation), mcp_tool::parsed(invocation));
            as_command(release, asked, (thread_id, turn_id), Shown { parsed: &parsed, ..Shown::of(&argv) }, at_ms)
        }
        QuestionKind::Permissions { asked: wanted, cwd } if release == ProtocolRelease::V0166 => {
            ServerRequest::PermissionsRequestApproval(PermissionsRequestApprovalParams {
                thread_id,
                turn_id,
                item_id,
                started_at_ms: at_ms,
                environment_id: Some("local".into()),
                cwd: cwd.clone(),
                reason,
                permissions: profile(wanted),
            })
        }
        QuestionKind::Permissions { asked: wanted, cwd } => {
            as_command(release, asked, (thread_id, turn_id), Shown { cwd, ..Shown::of(&wanted.argv()) }, at_ms)
        }
        QuestionKind::Elicitation(elicitation) if release == ProtocolRelease::V0166 => {
            mcp::elicitation(thread, turn, elicitation)
        }
        // Earlier clients can only say yes or no.
        QuestionKind::Elicitation(elicitation) if elicitation.needs_content() => return None,
        QuestionKind::Elicitation(elicitation) => {
            let argv = mcp_tool::question_argv(elicitation);
            as_command(release, asked, (thread_id, turn_id), Shown::of(&argv), at_ms)
        }
    })
}

/// The permissions that are asked for.
fn profile(wanted: &Permissions) -> RequestPermissionProfile {
    let files = AdditionalFileSystemPermissions { write: Some(wanted.write.clone()), ..Default::default() };
    RequestPermissionProfile {
        file_system: (!wanted.write.is_empty()).then_some(files),
        network: wanted.network.then_some(AdditionalNetworkPermissions { enabled: Some(true) }),
    }
}

/// A command, or something that is shown as one.
#[derive(Clone, Copy)]
struct Shown<'a> {
    argv: &'a [String],
    parsed: &'a [ParsedCommand],
    cwd: &'a Path,
    /// A command prefix that a rule could allow from here on.
    amendment: Option<&'a [String]>,
}

impl<'a> Shown<'a> {
    fn of(argv: &'a [String]) -> Self {
        Self { argv, parsed: &[], cwd: Path::new(""), amendment: None }
    }
}

/// A question about a command, or about something that is shown as one.
fn as_command(
    release: ProtocolRelease,
    asked: &Question,
    (thread_id, turn_id): (String, String),
    shown: Shown<'_>,
    at_ms: i64,
) -> ServerRequest {
    ServerRequest::CommandExecutionRequestApproval(CommandApprovalParams {
        kind: "command".into(),
        thread_id,
        turn_id,
        item_id: asked.item().as_str().to_owned(),
        started_at_ms: at_ms,
        environment_id: "local".into(),
        reason: asked.reason.clone(),
        command: command_line(shown.argv),
        cwd: shown.cwd.to_owned(),
        command_actions: actions(shown.argv, shown.parsed, release),
        proposed_execpolicy_amendment: shown.amendment.map(<[_]>::to_vec),
        available_decisions: available_decisions(shown.amendment),
    })
}

fn available_decisions(amendment: Option<&[String]>) -> Vec<Value> {
    let amendment = amendment.map(|words| json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": words}}));
    std::iter::once(json!("accept")).chain(amendment).chain([json!("cancel")]).collect()
}
