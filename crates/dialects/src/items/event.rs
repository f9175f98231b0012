//! Events of the queue with their members in camelCase.
//!
//! The members of the queue are there too, under their own names, except where a reader would take one for a member of
//! this dialect with another meaning.

use codex_log::{Event, Item, Outcome, TurnId};
use codex_wire::event::{EventMsg, McpToolCallBeginEvent, McpToolCallEndEvent};
use codex_wire::mcp::CallToolResult;
use codex_wire::tokens::TokenUsageInfo;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::json_form::{camel_case, without_nulls};

type Members = Map<String, Value>;

/// A `codex/event/*` of this dialect.
#[derive(Debug, Clone)]
pub struct NamedEvent {
    kind: String,
    msg: Members,
}

impl NamedEvent {
    /// The part of the method after `codex/event/`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The event itself.
    #[must_use]
    pub fn msg(&self) -> &impl Serialize {
        &self.msg
    }

    /// An event of the queue.
    #[must_use]
    pub fn new(event: &Event, msg: &EventMsg) -> Self {
        Self::of(event.turn.as_ref(), msg)
    }

    /// An event of the queue about a turn.
    #[must_use]
    pub fn of(turn: Option<&TurnId>, msg: &EventMsg) -> Self {
        match msg {
            EventMsg::McpToolCallBegin(call) => Self::tool_begin(msg.kind(), call),
            EventMsg::McpToolCallEnd(call) => Self::tool_end(msg.kind(), call),
            _ => {
                let mut named = Self::in_both_cases(msg);
                named.complete(turn, msg);
                named
            }
        }
    }

    /// The members of an event of the queue that have a value, in both cases.
    fn in_both_cases(msg: &EventMsg) -> Self {
        let mut members = match without_nulls(serde_json::to_value(msg).unwrap_or_default()) {
            Value::Object(members) => members,
            _ => Members::new(),
        };
        let named: Vec<_> = members.iter().filter(|(name, _)| name.contains('_')).collect();
        let named: Members = named.into_iter().map(|(name, value)| (camel_case(name), value.clone())).collect();
        members.extend(named);
        Self { kind: msg.kind().to_owned(), msg: members }
    }

    /// Adds the members that only this dialect has.
    fn complete(&mut self, turn: Option<&TurnId>, msg: &EventMsg) {
        match msg {
            EventMsg::TaskStarted(_) | EventMsg::TurnAborted(_) | EventMsg::TaskComplete(_) => {
                self.add("turnId", turn.map(TurnId::as_str).unwrap_or_default());
            }
            EventMsg::PatchApplyBegin(_) | EventMsg::PatchApplyEnd(_) | EventMsg::ApplyPatchApprovalRequest(_) => {
                if let Some(changes) = self.msg.get("changes").cloned() {
                    self.add("fileChanges", changes);
                }
            }
            EventMsg::TokenCount(count) => {
                let numbers = count.info.as_ref().map(token_numbers).unwrap_or_default();
                if let Some(Value::Object(info)) = self.msg.get_mut("info") {
                    info.extend(numbers);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, name: &str, value: impl Into<Value>) {
        self.msg.insert(name.to_owned(), value.into());
    }

    /// The end of a turn, with its status.
    #[must_use]
    pub(super) fn turn_ended(event: &Event, msg: &EventMsg, outcome: &Outcome) -> Self {
        let mut named = Self::new(event, msg);
        if matches!(msg, EventMsg::TaskComplete(_)) {
            named.add(
                "status",
                match outcome {
                    Outcome::Completed { .. } => "completed",
                    Outcome::Aborted(_) => "interrupted",
                    Outcome::Failed(_) => "failed",
                },
            );
        }
        named
    }

    /// The whole summary of a thought; `None` if it has none.
    #[must_use]
    pub(super) fn thought(text: &str) -> Option<Self> {
        let msg = json!({"type": "agent_reasoning", "text": text, "content": text});
        (!text.is_empty()).then(|| Self::literal("agent_reasoning", msg))
    }

    /// The begin of a search, with its query.
    #[must_use]
    pub(super) fn search_begin(search: &Item) -> Self {
        let (id, query) = (search.id().as_str(), search.title());
        let msg = json!({"type": "web_search_begin", "call_id": id, "callId": id, "query": query});
        Self::literal("web_search_begin", msg)
    }

    fn tool_begin(kind: &str, call: &McpToolCallBeginEvent) -> Self {
        let McpToolCallBeginEvent { call_id, invocation } = call;
        let (server, tool) = (&invocation.server, &invocation.tool);
        let msg = json!({"type": kind, "call_id": call_id, "callId": call_id, "server": server, "tool": tool});
        let mut named = Self::literal(kind, msg);
        // Readers take arguments that are no object for a broken event.
        if let Some(arguments) = invocation.arguments.as_ref().filter(|arguments| arguments.is_object()) {
            named.add("arguments", arguments.clone());
        }
        named
    }

    fn tool_end(kind: &str, call: &McpToolCallEndEvent) -> Self {
        let McpToolCallEndEvent { call_id, invocation, duration, result } = call;
        let (server, tool) = (&invocation.server, &invocation.tool);
        let msg = json!({
            "type": kind, "call_id": call_id, "callId": call_id, "server": server, "tool": tool, "duration": duration,
        });
        let mut named = Self::literal(kind, msg);
        match result {
            Ok(result) => {
                if result.is_error == Some(true) {
                    named.add("error", text_of(result));
                }
                named.add("result", serde_json::to_value(result).unwrap_or_default());
            }
            Err(error) => named.add("error", error.clone()),
        }
        named
    }

    fn literal(kind: &str, msg: Value) -> Self {
        let msg = if let Value::Object(msg) = msg { msg } else { Members::new() };
        Self { kind: kind.to_owned(), msg }
    }
}

/// The tokens as this dialect has them: one number for the whole thread, and one for the last answer.
fn token_numbers(info: &TokenUsageInfo) -> Members {
    let mut numbers = Members::new();
    numbers.insert("totalTokenUsage".to_owned(), info.total_token_usage.total_tokens.into());
    numbers.insert("lastTokenUsage".to_owned(), info.last_token_usage.total_tokens.into());
    if let Some(window) = info.model_context_window {
        numbers.insert("modelContextWindow".to_owned(), window.into());
    }
    numbers
}

/// The text with which a tool reports its failure.
fn text_of(result: &CallToolResult) -> String {
    let texts: Vec<_> = result.content.iter().filter_map(|part| part["text"].as_str()).collect();
    if texts.is_empty() { "the tool reported a failure".to_owned() } else { texts.join("\n") }
}
