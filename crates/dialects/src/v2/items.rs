//! Items of the log as items of v2.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use codex_log::item::{AgentCall, CalledAgent, DynamicCall, McpCall};
use codex_log::{CommandEnd, CommandItem, Item, PatchItem, Status};
use codex_protocol::v2::dynamic_tool::DynamicToolCall;
use codex_protocol::v2::item::{
    CallStatus, CollabAgentState, CollabAgentToolCall, CommandAction, CommandExecution, CommandSource,
    FileUpdateChange, InputItem, McpToolCall, McpToolCallContext, PatchChangeKind, SubAgentActivity, ThreadItem,
};
use codex_wire::change::FileChange;
use codex_wire::command::ParsedCommand;
use codex_wire::mcp::CallToolResult;
use serde_json::{Value, json};

use crate::ProtocolRelease;
use crate::json_form::camel_case;

/// An item as clients see it.
pub fn thread_item(item: &Item, release: ProtocolRelease) -> ThreadItem {
    let id = item.id().as_str().to_owned();
    match item {
        Item::UserMessage(said) => ThreadItem::UserMessage {
            id,
            client_id: said.key.as_deref().map(str::to_owned),
            content: said.content.iter().map(InputItem::from).collect(),
        },
        Item::AgentMessage(answer) => ThreadItem::agent_message(id, answer.text.clone()),
        Item::Reasoning(thought) => {
            ThreadItem::Reasoning { id, summary: thought.summary.clone(), content: thought.raw.clone() }
        }
        Item::WebSearch(search) => ThreadItem::WebSearch { id, query: search.query.clone(), action: None },
        Item::Command(command) => ThreadItem::CommandExecution(Box::new(command_execution(command, release))),
        Item::Patch(patch) => file_change(patch),
        Item::McpCall(call) => ThreadItem::McpToolCall(Box::new(mcp_tool_call(call, release))),
        Item::DynamicCall(call) if release != ProtocolRelease::V0166 => {
            ThreadItem::McpToolCall(Box::new(mcp_tool_call(&call.as_mcp_call(), release)))
        }
        Item::DynamicCall(call) => ThreadItem::DynamicToolCall(Box::new(dynamic_call(call))),
        Item::AgentCall(call) if release != ProtocolRelease::V0166 => {
            ThreadItem::CommandExecution(Box::new(command_execution(&as_command(call), release)))
        }
        Item::AgentCall(call) => ThreadItem::CollabAgentToolCall(Box::new(agent_call(call))),
        Item::AgentActivity(activity) => ThreadItem::SubAgentActivity(Box::new(SubAgentActivity {
            id,
            kind: activity.kind,
            agent_thread_id: activity.thread,
            agent_path: activity.path.clone(),
            model: activity.model.clone(),
            reasoning_effort: activity.effort.clone(),
        })),
    }
}

/// Whether clients of a release know items of this kind.
pub(super) fn is_known(item: &Item, release: ProtocolRelease) -> bool {
    release == ProtocolRelease::V0166 || !matches!(item, Item::AgentActivity(_))
}

/// The same for an item that has no other owner. Its texts are moved.
pub(super) fn stored_item(item: Item, release: ProtocolRelease) -> ThreadItem {
    match item {
        Item::Reasoning(thought) => {
            let id = thought.id.as_str().to_owned();
            ThreadItem::Reasoning { id, summary: thought.summary, content: thought.raw }
        }
        Item::Command(command) => {
            let mut command = Arc::unwrap_or_clone(command);
            let output = command.end.as_mut().map(|end| std::mem::take(&mut end.aggregated));
            let is_told = command.status != Status::Declined;
            let aggregated_output = output.filter(|text| is_told && !text.is_empty());
            let shown = command_execution(&command, release);
            ThreadItem::CommandExecution(Box::new(CommandExecution { aggregated_output, ..shown }))
        }
        Item::UserMessage(_)
        | Item::AgentMessage(_)
        | Item::WebSearch(_)
        | Item::Patch(_)
        | Item::McpCall(_)
        | Item::DynamicCall(_)
        | Item::AgentCall(_)
        | Item::AgentActivity(_) => thread_item(&item, release),
    }
}

/// A call about other agents. Its words are in the case of this protocol.
fn agent_call(call: &AgentCall) -> CollabAgentToolCall {
    let state = |agent: &CalledAgent| {
        let (status, message) = (camel_case(agent.status.as_str()), agent.message.clone());
        (agent.thread.to_string(), CollabAgentState { status, message })
    };
    CollabAgentToolCall {
        id: call.id.as_str().to_owned(),
        tool: camel_case(call.tool.as_str()),
        status: call_status(call.status),
        sender_thread_id: call.sender,
        receiver_thread_ids: call.receivers.clone(),
        prompt: call.prompt.clone(),
        model: call.model.clone(),
        reasoning_effort: call.effort.clone(),
        agents_states: call.agents.iter().map(state).collect(),
    }
}

/// The same for clients of older releases, which know it as a command whose text is a sentence.
fn as_command(call: &Arc<AgentCall>) -> CommandItem {
    let exit_code = i32::from(call.status != Status::Completed);
    let end = CommandEnd { exit_code, ..CommandEnd::declined("") };
    CommandItem {
        id: call.id.clone(),
        argv: vec![Item::AgentCall(Arc::clone(call)).title().into_owned()],
        cwd: "/".into(),
        parsed: Vec::new(),
        terminal: None,
        is_users_own: false,
        status: call.status,
        end: (call.status != Status::Running).then_some(end),
    }
}

/// The actions of a command. The newest release reports an unknown script as one unknown action.
pub(super) fn actions(argv: &[String], parsed: &[ParsedCommand], release: ProtocolRelease) -> Vec<CommandAction> {
    let is_unknown = |parsed: &ParsedCommand| matches!(parsed, ParsedCommand::Unknown { .. });
    match argv {
        [_, _, script] if release == ProtocolRelease::V0166 && parsed.len() > 1 && parsed.iter().all(is_unknown) => {
            vec![CommandAction::Unknown { command: script.clone() }]
        }
        _ => parsed.iter().map(CommandAction::from).collect(),
    }
}

fn command_execution(command: &CommandItem, release: ProtocolRelease) -> CommandExecution {
    // A command that never ran has no exit code and no duration.
    let end = command.end.as_ref().filter(|_| command.status != Status::Declined);
    // Before it may run it has no terminal.
    let terminal = command.terminal.filter(|_| command.status != Status::AwaitingApproval);
    CommandExecution {
        id: command.id.as_str().to_owned(),
        plugin_id: (),
        script_path: (),
        command: command_line(&command.argv),
        cwd: command.cwd.clone(),
        process_id: terminal.map(|terminal| terminal.to_string()),
        source: match (command.is_users_own, terminal) {
            (true, _) => CommandSource::UserShell,
            (false, Some(_)) => CommandSource::UnifiedExecStartup,
            (false, None) => CommandSource::Agent,
        },
        status: call_status(command.status),
        command_actions: actions(&command.argv, &command.parsed, release),
        aggregated_output: end.map(|end| end.aggregated.clone()).filter(|text| !text.is_empty()),
        exit_code: end.map(|end| end.exit_code),
        duration_ms: end.map(|end| i64::try_from(end.duration.as_millis()).unwrap_or(i64::MAX)),
    }
}

/// A command as a line that a shell would parse to the same words.
pub(super) fn command_line(argv: &[String]) -> String {
    codex_wire::command_line::join(argv)
}

fn file_change(patch: &PatchItem) -> ThreadItem {
    ThreadItem::FileChange {
        id: patch.id.as_str().to_owned(),
        changes: changes(&patch.changes),
        status: call_status(patch.status),
    }
}

fn mcp_tool_call(call: &McpCall, release: ProtocolRelease) -> McpToolCall {
    let is_newer = release == ProtocolRelease::V0166;
    let result = call.end.as_ref().map(|end| &end.result);
    McpToolCall {
        id: call.id.as_str().to_owned(),
        server: call.invocation.server.clone(),
        tool: call.invocation.tool.clone(),
        status: call_status(call.status),
        arguments: call.invocation.arguments.clone().unwrap_or_default(),
        result: result.and_then(|result| result.as_ref().ok()).map(|result| result_of(result, is_newer)),
        error: result.and_then(|result| result.as_ref().err()).map(|message| json!({"message": message})),
        duration_ms: call.end.as_ref().map(|end| i64::try_from(end.duration.as_millis()).unwrap_or(i64::MAX)),
        newer: is_newer.then(McpToolCallContext::default),
    }
}

fn dynamic_call(call: &DynamicCall) -> DynamicToolCall {
    let content_items = call.end.as_ref().and_then(|end| end.content.clone());
    DynamicToolCall {
        id: call.id.as_str().to_owned(),
        namespace: call.namespace.clone(),
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
        status: call_status(call.status),
        success: call.end.as_ref().map(|_| call.status == Status::Completed),
        content_items,
        duration_ms: call.end.as_ref().map(|end| i64::try_from(end.duration.as_millis()).unwrap_or(i64::MAX)),
    }
}

fn result_of(result: &CallToolResult, is_newer: bool) -> Value {
    let mut shown = json!({"content": result.content, "structuredContent": result.structured_content});
    if is_newer {
        shown["_meta"] = Value::Null;
    }
    shown
}

fn call_status(status: Status) -> CallStatus {
    match status {
        Status::AwaitingApproval | Status::Running => CallStatus::InProgress,
        Status::Completed => CallStatus::Completed,
        Status::Failed => CallStatus::Failed,
        Status::Declined => CallStatus::Declined,
    }
}

fn changes(changes: &BTreeMap<PathBuf, FileChange>) -> Vec<FileUpdateChange> {
    let change = |(path, change): (&PathBuf, &FileChange)| {
        let (kind, diff) = match change {
            FileChange::Add { content } => (PatchChangeKind::Add, content.clone()),
            FileChange::Delete { content } => (PatchChangeKind::Delete, content.clone()),
            FileChange::Update { unified_diff, move_path } => {
                let moved = move_path.as_ref().map(|to| format!("\n\nMoved to: {}", to.display()));
                let diff = format!("{unified_diff}{}", moved.unwrap_or_default());
                (PatchChangeKind::Update { move_path: move_path.clone() }, diff)
            }
        };
        FileUpdateChange { path: path.clone(), kind, diff }
    };
    changes.iter().map(change).collect()
}
