//! Items as lines of `codex exec --json`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use codex_log::item::{AgentCall, CalledAgent, McpCall};
use codex_log::{CommandItem, Item, ItemId, PatchItem, Status};
use codex_wire::change::FileChange;

use super::bounded::bounded;
use super::event::{
    CollabAgentState, CommandStatus, FileChangeKind, FileChangeStatus, McpResult, ThreadError, ThreadEvent, ThreadItem,
    ThreadItemDetails, UpdatedFile,
};
use super::project::{Out, Projector};

impl Projector {
    pub(super) fn item_completed(&mut self, item: &Item, out: Out<'_>) {
        match item {
            Item::UserMessage(_) | Item::AgentActivity(_) => {}
            Item::AgentMessage(answer) => {
                self.completed(ThreadItemDetails::AgentMessage { text: answer.text.clone() }, out);
            }
            Item::Reasoning(thought) => {
                for text in &thought.summary {
                    self.completed(ThreadItemDetails::Reasoning { text: text.clone() }, out);
                }
            }
            Item::WebSearch(search) => {
                self.completed(ThreadItemDetails::WebSearch { query: search.query.clone() }, out);
            }
            Item::Command(command) => self.command_completed(command, out),
            Item::Patch(patch) => self.patch_completed(patch, out),
            Item::McpCall(call) => self.call_completed(&call.id, mcp_tool_call(call), out),
            Item::DynamicCall(call) => self.call_completed(&call.id, mcp_tool_call(&call.as_mcp_call()), out),
            Item::AgentCall(call) => self.call_completed(&call.id, agent_call(call), out),
        }
    }

    /// Emits the start of an item. Commands and calls of MCP tools are shown before they are complete.
    pub(super) fn item_started(&mut self, item: &Item, out: Out<'_>) {
        match item {
            Item::Command(command) => self.command_started(command, out),
            Item::McpCall(call) => self.call_started(&call.id, mcp_tool_call(call), out),
            Item::DynamicCall(call) => self.call_started(&call.id, mcp_tool_call(&call.as_mcp_call()), out),
            Item::AgentCall(call) => self.call_started(&call.id, agent_call(call), out),
            Item::Patch(_)
            | Item::UserMessage(_)
            | Item::AgentMessage(_)
            | Item::Reasoning(_)
            | Item::WebSearch(_)
            | Item::AgentActivity(_) => {}
        }
    }

    fn call_started(&mut self, call: &ItemId, details: ThreadItemDetails, out: Out<'_>) {
        let id = self.name();
        self.begun.insert(call.clone(), id.clone());
        out.push(ThreadEvent::ItemStarted { item: ThreadItem { id, details } });
    }

    fn call_completed(&mut self, call: &ItemId, details: ThreadItemDetails, out: Out<'_>) {
        let id = self.begun.remove(call).unwrap_or_else(|| self.name());
        out.push(ThreadEvent::ItemCompleted { item: ThreadItem { id, details } });
    }

    fn completed(&mut self, details: ThreadItemDetails, out: Out<'_>) {
        let id = self.name();
        out.push(ThreadEvent::ItemCompleted { item: ThreadItem { id, details } });
    }

    fn command_started(&mut self, command: &CommandItem, out: Out<'_>) {
        if self.begun.contains_key(&command.id) {
            return;
        }
        let id = self.name();
        self.begun.insert(command.id.clone(), id.clone());
        let details = ThreadItemDetails::CommandExecution {
            command: codex_wire::command_line::join(&command.argv),
            aggregated_output: String::new(),
            exit_code: None,
            status: CommandStatus::InProgress,
        };
        out.push(ThreadEvent::ItemStarted { item: ThreadItem { id, details } });
    }

    fn command_completed(&mut self, command: &CommandItem, out: Out<'_>) {
        let id = self.begun.remove(&command.id).unwrap_or_else(|| self.name());
        let end = command.end.as_ref();
        let output = match (command.status, end) {
            // A declined command has only the reason.
            (Status::Declined, Some(end)) => end.formatted.as_str(),
            (_, Some(end)) => end.aggregated.as_str(),
            (_, None) => "",
        };
        let details = ThreadItemDetails::CommandExecution {
            command: codex_wire::command_line::join(&command.argv),
            aggregated_output: bounded(output),
            exit_code: end.map(|end| end.exit_code),
            status: match command.status {
                Status::Completed => CommandStatus::Completed,
                Status::AwaitingApproval | Status::Running | Status::Failed | Status::Declined => CommandStatus::Failed,
            },
        };
        out.push(ThreadEvent::ItemCompleted { item: ThreadItem { id, details } });
    }

    fn patch_completed(&mut self, patch: &PatchItem, out: Out<'_>) {
        let status = match patch.status {
            Status::Completed => FileChangeStatus::Completed,
            Status::AwaitingApproval | Status::Running | Status::Failed | Status::Declined => FileChangeStatus::Failed,
        };
        self.completed(ThreadItemDetails::FileChange { changes: updated(&patch.changes), status }, out);
    }
}

fn agent_call(call: &AgentCall) -> ThreadItemDetails {
    let state =
        |agent: &CalledAgent| (agent.thread, CollabAgentState { status: agent.status, message: agent.message.clone() });
    ThreadItemDetails::CollabToolCall {
        tool: call.tool,
        sender_thread_id: call.sender,
        receiver_thread_ids: call.receivers.clone(),
        prompt: call.prompt.clone(),
        agents_states: call.agents.iter().map(state).collect(),
        status: match call.status {
            Status::AwaitingApproval | Status::Running => CommandStatus::InProgress,
            Status::Completed => CommandStatus::Completed,
            Status::Failed | Status::Declined => CommandStatus::Failed,
        },
    }
}

fn mcp_tool_call(call: &McpCall) -> ThreadItemDetails {
    let result = call.end.as_ref().map(|end| &end.result);
    ThreadItemDetails::McpToolCall {
        server: call.invocation.server.clone(),
        tool: call.invocation.tool.clone(),
        arguments: call.invocation.arguments.clone().unwrap_or_default(),
        result: result.and_then(|result| result.as_ref().ok()).map(|result| McpResult {
            content: result.content.clone(),
            structured_content: result.structured_content.clone(),
        }),
        error: result.and_then(|result| result.as_ref().err()).map(|message| ThreadError { message: message.clone() }),
        status: match call.status {
            Status::AwaitingApproval | Status::Running => CommandStatus::InProgress,
            Status::Completed => CommandStatus::Completed,
            Status::Failed | Status::Declined => CommandStatus::Failed,
        },
    }
}

/// The files of a patch.
pub(super) fn updated(changes: &BTreeMap<PathBuf, FileChange>) -> Vec<UpdatedFile> {
    let kind = |change: &FileChange| match change {
        FileChange::Add { .. } => FileChangeKind::Add,
        FileChange::Delete { .. } => FileChangeKind::Delete,
        FileChange::Update { .. } => FileChangeKind::Update,
    };
    changes.iter().map(|(path, change)| UpdatedFile { path: path.clone(), kind: kind(change) }).collect()
}
