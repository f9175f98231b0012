//! Agents as results of calls show them.

use codex_log::agents::Mail;
use codex_wire::agent::{AgentState, SubagentCompletion, SubagentStatus};
use serde_json::{Map, Value, json};

use crate::tree::AgentView;

/// The members that the results of most calls have in common.
pub(crate) fn members_of(view: &AgentView) -> Map<String, Value> {
    let agent = &view.summary;
    members(json!({
        "session_id": agent.session_id,
        "agent_id": agent.agent_id,
        "parent_agent_id": agent.parent_agent_id,
        "origin": agent.origin,
        "status": agent.status,
        "label": agent.label,
        "summary": agent.summary,
        "parent_session_id": agent.parent_session_id,
        "started_at_ms": agent.started_at_ms,
        "initial_message_count": view.inherited,
        "pending_messages": agent.pending_messages,
        "pending_interrupts": agent.pending_interrupts,
    }))
}

/// An agent in a list.
pub(crate) fn listed(view: &AgentView) -> Value {
    let mut card = members_of(view);
    card.insert("reasoning_header".to_owned(), json!(view.summary.reasoning_header));
    Value::Object(card)
}

/// The result of a wait.
pub(crate) fn awaited(
    view: Option<&AgentView>,
    mail: &[Mail],
    completion: Option<&SubagentCompletion>,
    is_timed_out: bool,
    is_injected: bool,
) -> Value {
    let messages: Vec<_> = mail.iter().filter(|mail| mail.completion.is_none()).map(|mail| &mail.message).collect();
    let metadata = view.map(|view| {
        let mut card = members_of(view);
        card.remove("started_at_ms");
        card.insert("reasoning_header".to_owned(), json!(view.summary.reasoning_header));
        card
    });
    let completion_status = completion.map(|completion| match completion {
        SubagentCompletion::Completed { .. } => "completed",
        SubagentCompletion::Canceled { .. } => "canceled",
        SubagentCompletion::Failed { .. } => "failed",
    });
    json!({
        "session_id": view.map(|view| view.summary.session_id),
        "completion_status": completion_status,
        "lifecycle_status": view.map(|view| &view.summary.status),
        "started_at_ms": view.map(|view| view.summary.started_at_ms),
        "timed_out": is_timed_out,
        "messages": messages,
        "completion": completion,
        "metadata": metadata,
        "injected": is_injected,
    })
}

/// The status of an agent as the namespace spells it.
pub(crate) fn state(view: &AgentView) -> (AgentState, Option<String>) {
    match (&view.summary.status, &view.completion) {
        (_, Some(SubagentCompletion::Completed { last_message })) => (AgentState::Completed, last_message.clone()),
        (_, Some(SubagentCompletion::Failed { message })) => (AgentState::Errored, Some(message.clone())),
        (_, Some(SubagentCompletion::Canceled { .. })) => (AgentState::Interrupted, None),
        (SubagentStatus::Queued, None) => (AgentState::PendingInit, None),
        (SubagentStatus::Running, None) => (AgentState::Running, None),
        (_, None) => (AgentState::Completed, None),
    }
}

/// The same as a value in results.
pub(crate) fn status_value(view: &AgentView) -> Value {
    match state(view) {
        (AgentState::Completed, message) => json!({"completed": message}),
        (AgentState::Errored, message) => json!({"errored": message}),
        (state, _) => json!(state),
    }
}

/// The end of a task as the namespace spells it.
pub(crate) fn ended(completion: &SubagentCompletion) -> Value {
    match completion {
        SubagentCompletion::Completed { last_message } => json!({"completed": last_message}),
        SubagentCompletion::Failed { message } => json!({"errored": message}),
        SubagentCompletion::Canceled { .. } => json!("interrupted"),
    }
}

pub(crate) fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}
