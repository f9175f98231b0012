//! Items as messages of the event queue.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codex_log::item::{AgentCall, McpCall, McpCallEnd};
use codex_log::{CommandEnd, CommandItem, Item, PatchEnd, PatchItem, Status};
use codex_wire::agent::AgentTool;
use codex_wire::event::{
    AgentMessageContent, AgentMessageItem, AgentMessageText, EventMsg, ExecCommandBeginEvent, ExecCommandEndEvent,
    ExecCommandOutputDeltaEvent, ExecCommandSource, ExecOutputStream, ItemCompletedEvent, ItemStartedEvent,
    McpToolCallBeginEvent, McpToolCallEndEvent, PatchApplyBeginEvent, PatchApplyEndEvent, ReasoningItem, TurnItem,
    UserMessageItem, WebSearchBeginEvent, WebSearchEndEvent, WebSearchItem,
};
use serde_json::json;

use super::View;

/// The size of the output of a call about other agents.
const SHOWN_BYTES: usize = 4000;

impl View<'_> {
    pub(super) fn item_started(&self, item: &Item, out: &mut Vec<EventMsg>) {
        match item {
            Item::Command(command) => {
                if self.vocabulary.items || command.status != Status::AwaitingApproval {
                    out.push(self.command_begin(command));
                }
            }
            Item::Patch(patch) => {
                if patch.status != Status::AwaitingApproval {
                    out.push(self.patch_begin(patch));
                }
            }
            Item::McpCall(call) => out.push(mcp_begin(call)),
            Item::DynamicCall(call) => out.push(mcp_begin(&call.as_mcp_call())),
            Item::AgentCall(call) => out.push(self.agent_call_begin(call)),
            // Readers of the queue are told of agents by other messages.
            Item::AgentActivity(_) => {}
            Item::UserMessage(_) | Item::AgentMessage(_) | Item::Reasoning(_) | Item::WebSearch(_) => {
                if let Some(item) = turn_item(item).filter(|_| self.vocabulary.items) {
                    let (thread_id, turn_id) = (self.event.thread, self.turn_id());
                    out.push(EventMsg::ItemStarted(ItemStartedEvent { thread_id, turn_id, item }));
                }
                if let Item::WebSearch(search) = item {
                    out.push(EventMsg::WebSearchBegin(WebSearchBeginEvent { call_id: search.id.as_str().to_owned() }));
                }
            }
        }
    }

    /// An approved item starts: a patch for every reader, a command for those that have not seen it yet.
    pub(super) fn allowed(&self, item: &Item, out: &mut Vec<EventMsg>) {
        match item {
            Item::Command(command) if !self.vocabulary.items => out.push(self.command_begin(command)),
            Item::Patch(patch) => out.push(self.patch_begin(patch)),
            Item::Command(_)
            | Item::McpCall(_)
            | Item::DynamicCall(_)
            | Item::AgentCall(_)
            | Item::AgentActivity(_)
            | Item::UserMessage(_)
            | Item::AgentMessage(_)
            | Item::Reasoning(_)
            | Item::WebSearch(_) => {}
        }
    }

    pub(super) fn item_completed(&self, item: &Item, out: &mut Vec<EventMsg>) {
        if self.vocabulary.items
            && let Some(item) = turn_item(item)
        {
            let (thread_id, turn_id) = (self.event.thread, self.turn_id());
            out.push(EventMsg::ItemCompleted(ItemCompletedEvent { thread_id, turn_id, item }));
        }
        match item {
            Item::Command(command) => {
                // A command whose start was not sent has no end either.
                if let Some(end) = &command.end
                    && (self.vocabulary.items || command.status != Status::Declined)
                {
                    out.push(self.command_end(command, end));
                }
            }
            Item::Patch(patch) => {
                if let Some(end) = &patch.end
                    && patch.status != Status::Declined
                {
                    if self.vocabulary.items && patch.status == Status::Completed {
                        out.push(EventMsg::ExecCommandOutputDelta(ExecCommandOutputDeltaEvent {
                            call_id: patch.id.as_str().to_owned(),
                            stream: ExecOutputStream::Stdout,
                            chunk: end.stdout.clone().into_bytes(),
                        }));
                    }
                    out.push(self.patch_end(patch, end));
                }
            }
            Item::McpCall(call) => out.extend(call.end.as_ref().map(|end| mcp_end(call, end))),
            Item::DynamicCall(call) => {
                let call = call.as_mcp_call();
                out.extend(call.end.as_ref().map(|end| mcp_end(&call, end)));
            }
            Item::AgentCall(call) => out.push(self.agent_call_end(call)),
            Item::AgentActivity(_) => {}
            Item::WebSearch(search) => {
                let (call_id, query) = (search.id.as_str().to_owned(), search.query.clone());
                out.push(EventMsg::WebSearchEnd(WebSearchEndEvent { call_id, query }));
            }
            Item::UserMessage(_) | Item::AgentMessage(_) | Item::Reasoning(_) => {
                item.messages(self.vocabulary.raw_reasoning, out);
            }
        }
    }

    fn patch_begin(&self, patch: &PatchItem) -> EventMsg {
        EventMsg::PatchApplyBegin(PatchApplyBeginEvent {
            call_id: patch.id.as_str().to_owned(),
            turn_id: Some(self.turn_id()),
            auto_approved: patch.is_auto_approved,
            changes: (*patch.changes).clone(),
        })
    }

    fn patch_end(&self, patch: &PatchItem, end: &PatchEnd) -> EventMsg {
        EventMsg::PatchApplyEnd(PatchApplyEndEvent {
            call_id: patch.id.as_str().to_owned(),
            turn_id: Some(self.turn_id()),
            stdout: end.stdout.clone(),
            stderr: end.stderr.clone(),
            success: patch.status == Status::Completed,
            changes: (*patch.changes).clone(),
        })
    }

    fn command_begin(&self, command: &CommandItem) -> EventMsg {
        EventMsg::ExecCommandBegin(ExecCommandBeginEvent {
            call_id: command.id.as_str().to_owned(),
            turn_id: Some(self.turn_id()),
            command: command.argv.clone(),
            cwd: command.cwd.clone(),
            parsed_cmd: command.parsed.clone(),
            source: source(command),
            process_id: command.terminal.map(|terminal| terminal.to_string()),
            interaction_input: None,
        })
    }

    fn command_end(&self, command: &CommandItem, end: &CommandEnd) -> EventMsg {
        EventMsg::ExecCommandEnd(ExecCommandEndEvent {
            call_id: command.id.as_str().to_owned(),
            turn_id: Some(self.turn_id()),
            command: command.argv.clone(),
            cwd: Some(command.cwd.clone()),
            parsed_cmd: command.parsed.clone(),
            source: source(command),
            process_id: command.terminal.map(|terminal| terminal.to_string()),
            interaction_input: None,
            stdout: end.stdout.clone(),
            stderr: end.stderr.clone(),
            aggregated_output: end.aggregated.clone(),
            exit_code: end.exit_code,
            duration: end.duration,
            formatted_output: end.formatted.clone(),
        })
    }

    /// A call about other agents. Readers of the queue know it as a command whose text is a sentence.
    fn agent_call_begin(&self, call: &AgentCall) -> EventMsg {
        EventMsg::ExecCommandBegin(ExecCommandBeginEvent {
            call_id: call.id.as_str().to_owned(),
            turn_id: Some(self.turn_id()),
            command: vec![Item::AgentCall(Arc::new(call.clone())).title().into_owned()],
            cwd: PathBuf::from("/"),
            parsed_cmd: Vec::new(),
            source: ExecCommandSource::Agent,
            process_id: None,
            interaction_input: None,
        })
    }

    fn agent_call_end(&self, call: &AgentCall) -> EventMsg {
        let output = agents_shown(call);
        EventMsg::ExecCommandEnd(ExecCommandEndEvent {
            call_id: call.id.as_str().to_owned(),
            turn_id: Some(self.turn_id()),
            command: vec![Item::AgentCall(Arc::new(call.clone())).title().into_owned()],
            cwd: Some(PathBuf::from("/")),
            parsed_cmd: Vec::new(),
            source: ExecCommandSource::Agent,
            process_id: None,
            interaction_input: None,
            stdout: output.clone(),
            stderr: String::new(),
            aggregated_output: output.clone(),
            exit_code: i32::from(call.status != Status::Completed),
            duration: Duration::ZERO,
            formatted_output: output,
        })
    }
}

/// The agents of a call, for readers of the queue that draw them.
fn agents_shown(call: &AgentCall) -> String {
    let kind = match call.tool {
        AgentTool::SpawnAgent => "Spawn",
        AgentTool::Wait => "Await",
        AgentTool::SendInput | AgentTool::SendMessage | AgentTool::FollowupTask | AgentTool::InterruptAgent => {
            "SendMessage"
        }
        AgentTool::CloseAgent => "Cancel",
        AgentTool::ResumeAgent => "Raw",
        AgentTool::ListAgents => "List",
    };
    let agents: Vec<_> = call
        .agents
        .iter()
        .map(|agent| json!({"session_id": agent.thread, "label": agent.nickname, "status": agent.status}))
        .collect();
    let mut text = json!({"subagent_render": {"kind": kind, "agents": agents, "prompt": call.prompt}}).to_string();
    let end = (0..=SHOWN_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.truncate(end);
    text
}

fn mcp_begin(call: &McpCall) -> EventMsg {
    EventMsg::McpToolCallBegin(McpToolCallBeginEvent {
        call_id: call.id.as_str().to_owned(),
        invocation: call.invocation.clone(),
    })
}

fn mcp_end(call: &McpCall, end: &McpCallEnd) -> EventMsg {
    EventMsg::McpToolCallEnd(McpToolCallEndEvent {
        call_id: call.id.as_str().to_owned(),
        invocation: call.invocation.clone(),
        duration: end.duration,
        result: end.result.clone(),
    })
}

fn source(command: &CommandItem) -> ExecCommandSource {
    match command {
        CommandItem { is_users_own: true, .. } => ExecCommandSource::UserShell,
        CommandItem { terminal: Some(_), .. } => ExecCommandSource::UnifiedExecStartup,
        CommandItem { .. } => ExecCommandSource::Agent,
    }
}

/// The items that the event queue has as items; a command has its own messages.
fn turn_item(item: &Item) -> Option<TurnItem> {
    let id = item.id().as_str().to_owned();
    Some(match item {
        Item::Command(_)
        | Item::Patch(_)
        | Item::McpCall(_)
        | Item::DynamicCall(_)
        | Item::AgentCall(_)
        | Item::AgentActivity(_) => {
            return None;
        }
        Item::WebSearch(search) => TurnItem::WebSearch(WebSearchItem { id, query: search.query.clone() }),
        Item::UserMessage(said) => TurnItem::UserMessage(UserMessageItem { id, content: said.content.clone() }),
        Item::AgentMessage(answer) => TurnItem::AgentMessage(AgentMessageItem {
            id,
            content: if answer.text.is_empty() {
                Vec::new()
            } else {
                vec![AgentMessageContent::Text(AgentMessageText { text: answer.text.clone() })]
            },
        }),
        Item::Reasoning(thought) => TurnItem::Reasoning(ReasoningItem {
            id,
            summary_text: thought.summary.clone(),
            raw_content: thought.raw.clone(),
        }),
    })
}
