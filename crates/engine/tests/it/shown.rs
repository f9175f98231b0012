//! Events, records and prompts as short lines for snapshots.

use codex_log::{Body, Event, Item, Reasoning};
use codex_model::Prompt;
use codex_wire::response::{ContentItem, FunctionCallOutputPayload, Message, ResponseItem};

/// An event: its turn, then its content.
pub(crate) fn event(event: &Event) -> String {
    let turn = event.turn.as_ref().map_or("-", |turn| turn.as_str());
    format!("{turn} {}", body(&event.body))
}

fn body(body: &Body) -> String {
    match body {
        Body::ThreadStarted(_) => "thread started".to_owned(),
        Body::TurnStarted { context_window } => format!("turn started, window {context_window:?}"),
        Body::ModelAsked(settings) => format!("asked {}", settings.model),
        Body::Recorded(record) => {
            record.item().map_or_else(String::new, |recorded| format!("recorded {}", item(&recorded)))
        }
        Body::ItemStarted(item) => format!("started {}", shown_item(item)),
        Body::ItemDelta { item, delta } => format!("grew {} {delta:?}", item.as_str()),
        Body::ItemInterrupted(item) => format!("broke off {}", shown_item(item)),
        Body::ItemCompleted(item) => format!("completed {}", shown_item(item)),
        Body::PlanUpdated(plan) => format!("plan {:?}", plan.plan.iter().map(|step| &step.step).collect::<Vec<_>>()),
        Body::TokensCounted { info, .. } => {
            format!("counted {:?}", info.as_ref().map(|info| info.total_token_usage.total_tokens))
        }
        Body::AnswerRetried { failure, attempt, limit, .. } => format!("retry {attempt}/{limit}: {}", failure.message),
        Body::Warning { message } => format!("warning: {message}"),
        Body::TurnEnded(outcome) => format!("ended {outcome:?}"),
        other => format!("{other:?}"),
    }
}

/// An item as a client sees it. A user's item has a random id, so the id is left out.
fn shown_item(item: &Item) -> String {
    match item {
        Item::UserMessage(said) => format!("user {} piece(s)", said.content.len()),
        Item::AgentMessage(answer) => format!("agent {} {:?}", answer.id.as_str(), answer.text),
        Item::Reasoning(Reasoning { id, summary, raw }) => format!("reasoning {} {summary:?} {raw:?}", id.as_str()),
        Item::WebSearch(search) => format!("search {} {:?}", search.id.as_str(), search.query),
        Item::Patch(patch) => format!("patch {} {:?}", patch.id.as_str(), patch.status),
        Item::Command(command) => format!("command {}", command.id.as_str()),
        Item::McpCall(call) => format!("mcp call {} {:?}", call.id.as_str(), call.status),
        Item::DynamicCall(call) => format!("dynamic call {} {:?}", call.id.as_str(), call.status),
        Item::AgentCall(call) => format!("agent call {} {:?}", call.id.as_str(), call.status),
        Item::AgentActivity(activity) => format!("agent {} {}", activity.path, activity.kind.as_str()),
    }
}

/// An item of the conversation.
pub(crate) fn item(item: &ResponseItem) -> String {
    match item {
        ResponseItem::Message(message) => format!("{}: {}", message.role, content(message)),
        ResponseItem::FunctionCall(call) => format!("call {} {}", call.call_id, call.name),
        ResponseItem::CustomToolCall(call) => format!("custom call {} {}", call.call_id, call.name),
        ResponseItem::FunctionCallOutput(out) => format!("output {} {}", out.call_id, output(&out.output)),
        ResponseItem::CustomToolCallOutput(out) => format!("custom output {} {}", out.call_id, output(&out.output)),
        other => other.kind().to_owned(),
    }
}

fn output(payload: &FunctionCallOutputPayload) -> String {
    if let FunctionCallOutputPayload::Text(text) = payload { format!("{text:?}") } else { format!("{payload:?}") }
}

fn content(message: &Message) -> String {
    let parts = message.content.iter().map(|part| match part {
        ContentItem::InputText { text } if text.starts_with("<environment_context>") => "(environment)".to_owned(),
        ContentItem::InputText { text } | ContentItem::OutputText { text } => format!("{text:?}"),
        other => format!("{other:?}"),
    });
    parts.collect::<Vec<_>>().join(" + ")
}

/// The conversation in a prompt, one item per line.
pub(crate) fn input(prompt: &Prompt) -> Vec<String> {
    let items = prompt.input.iter().map(|json| serde_json::from_str(&json.json()).expect("an item is in its own form"));
    items.map(|decoded: ResponseItem| item(&decoded)).collect()
}
