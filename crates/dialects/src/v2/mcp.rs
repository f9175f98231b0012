//! MCP servers in v2: their startup, the progress of their tools, and their questions.

use codex_log::{Body, Elicitation, ElicitationForm, ItemId};
use codex_protocol::v2::mcp_status::{
    McpServerStartupState, McpServerStatusUpdatedNotification, McpToolCallProgressNotification,
};
use codex_protocol::v2::notification::ServerNotification;
use codex_protocol::v2::request::{ElicitationMode, McpElicitationParams, ServerRequest};
use codex_wire::event::McpStartupUpdateEvent;
use codex_wire::ids::ThreadId;
use codex_wire::mcp::{McpInvocation, McpStartupStatus};
use serde_json::{Value, json};

use crate::ProtocolRelease;

/// The notification about a server or a call.
pub(super) fn told(release: ProtocolRelease, thread: &str, turn: &str, body: &Body) -> Option<ServerNotification> {
    match body {
        Body::ServerChanged(changed) => startup(release, thread.to_owned(), changed),
        Body::CallProgressed { item, message } => Some(progress(thread.to_owned(), turn.to_owned(), item, message)),
        _ => None,
    }
}

/// The startup status of a server. Clients of earlier releases receive only `codex/event/mcp_startup_update`.
fn startup(release: ProtocolRelease, thread: String, changed: &McpStartupUpdateEvent) -> Option<ServerNotification> {
    let (status, error) = match &changed.status {
        McpStartupStatus::Starting => (McpServerStartupState::Starting, None),
        McpStartupStatus::Ready => (McpServerStartupState::Ready, None),
        McpStartupStatus::Failed(failed) => (McpServerStartupState::Failed, Some(failed.error.clone())),
        McpStartupStatus::Cancelled => (McpServerStartupState::Cancelled, None),
        McpStartupStatus::Other(_) => return None,
    };
    (release == ProtocolRelease::V0166).then(|| {
        ServerNotification::McpServerStartupStatusUpdated(McpServerStatusUpdatedNotification {
            thread_id: Some(thread),
            name: changed.server.clone(),
            status,
            error,
            failure_reason: None,
        })
    })
}

/// The progress of a call.
fn progress(thread_id: String, turn_id: String, item: &ItemId, message: &str) -> ServerNotification {
    let (item_id, message) = (item.as_str().to_owned(), message.to_owned());
    ServerNotification::McpToolCallProgress(McpToolCallProgressNotification { thread_id, turn_id, item_id, message })
}

/// The approval request for a call.
pub(super) fn approval(
    thread_id: String,
    turn_id: String,
    invocation: &McpInvocation,
    description: Option<&str>,
) -> ServerRequest {
    let McpInvocation { server, tool, arguments } = invocation;
    let shown = |(name, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        json!({"name": name, "value": value, "display_name": name})
    };
    let display: Vec<Value> = arguments.as_ref().and_then(Value::as_object).into_iter().flatten().map(shown).collect();
    let meta = json!({
        "codex_approval_kind": "mcp_tool_call",
        "persist": ["session", "always"],
        "tool_description": description,
        "tool_params": arguments,
        "tool_params_display": display,
    });
    ServerRequest::McpServerElicitation(McpElicitationParams {
        thread_id,
        turn_id: Some(turn_id),
        server_name: server.clone(),
        message: format!("Allow the {server} MCP server to run tool \"{tool}\"?"),
        mode: ElicitationMode::Form,
        requested_schema: Some(json!({"type": "object", "properties": {}})),
        url: None,
        elicitation_id: None,
        meta: Some(meta),
    })
}

/// A question of a server.
#[must_use]
pub fn elicitation(thread: ThreadId, turn: &str, asked: &Elicitation) -> ServerRequest {
    let (mode, requested_schema, url, elicitation_id) = match &asked.form {
        ElicitationForm::Schema(schema) => (ElicitationMode::Form, Some(schema.clone()), None, None),
        ElicitationForm::Url { url, id } => (ElicitationMode::Url, None, Some(url.clone()), Some(id.clone())),
    };
    ServerRequest::McpServerElicitation(McpElicitationParams {
        thread_id: thread.to_string(),
        turn_id: Some(turn.to_owned()).filter(|turn| !turn.is_empty()),
        server_name: asked.server.clone(),
        message: asked.message.clone(),
        mode,
        requested_schema,
        url,
        elicitation_id,
        meta: None,
    })
}
