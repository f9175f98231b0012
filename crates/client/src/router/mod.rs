//! Turns what a server tells, in any dialect, into events.
//!
//! Invariant: pure, and total. No message is an error: one of a method that is not known is [`Event::Unknown`], and
//! one that lacks what its method needs is [`Event::Other`].

mod items;
mod queue;
mod shapes;

use codex_protocol::v2::notification::ServerNotification;
use codex_wire::ids::RequestId;
use serde_json::{Value, json};

pub(crate) use self::queue::changes;
pub(crate) use self::shapes::thread_id;
use self::shapes::{any_text, text, turn_id};
use crate::event::{Delta, Event, Part, Teller};

/// Methods that other releases send, and that change nothing of a thread.
const OTHERS: &[&str] = &[
    "remoteControl/status/changed",
    "thread/settings/updated",
    "thread/queue/changed",
    "thread/environment/updated",
    "item/plan/delta",
    "item/autoApprovalReview/started",
    "item/autoApprovalReview/completed",
    "hook/started",
    "hook/completed",
    "model/rerouted",
    "app/list/updated",
    "mcpServer/oauthLogin/completed",
];

/// The event of a notification.
#[must_use]
pub fn notification(method: &str, params: Value) -> Event {
    if method == "codex/event" || method.starts_with("codex/event/") {
        return queue::event(method, params);
    }
    match second_dialect(method, &params) {
        Some(event) => event,
        None if ServerNotification::METHODS.contains(&method) || OTHERS.contains(&method) => {
            Event::Other { method: method.to_owned(), params }
        }
        None => Event::Unknown { method: method.to_owned(), params },
    }
}

/// A request of the server as an event.
#[must_use]
pub fn request(id: RequestId, method: &str, params: Value) -> Event {
    Event::Asked { thread: thread_id(&params).to_owned(), id, method: method.to_owned(), params }
}

/// The event of a response, if it carries a thread.
#[must_use]
pub fn response(result: &Value) -> Option<Event> {
    let thread = result.get("thread")?;
    let is_reset = result.get("reset").and_then(Value::as_bool).unwrap_or_default();
    thread_event(thread, is_reset)
}

fn thread_event(thread: &Value, is_reset: bool) -> Option<Event> {
    let value = thread.as_object()?.clone();
    let id = text(thread, &["id"])?.to_owned();
    let has_turns = value.get("turns").and_then(Value::as_array).is_some_and(|turns| !turns.is_empty());
    Some(Event::Thread { id, value, whole: has_turns || is_reset })
}

fn second_dialect(method: &str, params: &Value) -> Option<Event> {
    let thread = || thread_id(params).to_owned();
    let turn = || turn_id(params).to_owned();
    let changed = |member: &'static str, value: Value| Event::ThreadChanged { thread: thread(), member, value };
    let delta = |part: Part, teller: Teller| items::delta(params, part, teller);
    Some(match method {
        "thread/started" => thread_event(params.get("thread")?, false)?,
        "thread/status/changed" => changed("status", params.get("status")?.clone()),
        "thread/name/updated" => changed("name", params.get("threadName")?.clone()),
        "thread/archived" => changed("archived", json!(true)),
        "thread/unarchived" => changed("archived", json!(false)),
        "thread/deleted" => changed("deleted", json!(true)),
        "thread/closed" => changed("closed", json!(true)),
        "thread/goal/updated" => changed("goal", params.get("goal")?.clone()),
        "thread/goal/cleared" => changed("goal", Value::Null),
        "turn/started" => Event::TurnStarted { thread: thread(), turn: turn() },
        "turn/completed" => turn_ended(params),
        "item/started" => items::told(params, false)?,
        "item/completed" => items::told(params, true)?,
        "item/created" => items::created(params)?,
        "item/delta" => items::created_delta(params)?,
        "item/agentMessage/delta" => delta(Part::Message, Teller::Items)?,
        "item/plan/delta" => delta(Part::Plan, Teller::Items)?,
        "item/commandExecution/outputDelta" => delta(Part::Output, Teller::Items)?,
        "item/reasoning/summaryTextDelta" => {
            delta(Part::Summary(items::index(params, &["summaryIndex"])), Teller::Items)?
        }
        "item/reasoning/textDelta" => delta(Part::Reasoning(items::index(params, &["contentIndex"])), Teller::Items)?,
        "turn/plan/updated" => items::plan(thread(), turn(), params)?,
        "turn/diff/updated" => {
            Event::Diff { thread: thread(), turn: turn(), diff: params.get("diff")?.as_str()?.to_owned() }
        }
        "thread/tokenUsage/updated" => Event::Usage { thread: thread(), usage: params.get("tokenUsage")?.clone() },
        "account/rateLimits/updated" => Event::RateLimits { limits: params.get("rateLimits")?.clone() },
        "error" => error(params),
        "warning" => Event::Warning { thread: thread(), message: any_text(params)? },
        "serverRequest/resolved" => {
            Event::Resolved { thread: thread(), id: serde_json::from_value(params.get("requestId")?.clone()).ok()? }
        }
        "sessionConfigured" => configured(params)?,
        _ => return None,
    })
}

/// The end of a turn. Its status is in the turn, or beside it.
fn turn_ended(params: &Value) -> Event {
    let turn = params.get("turn").unwrap_or(&Value::Null);
    let status = text(turn, &["status"]).or_else(|| text(params, &["status"])).unwrap_or("completed");
    let error = turn.get("error").or_else(|| params.get("error")).cloned().unwrap_or_default();
    Event::TurnEnded {
        thread: thread_id(params).to_owned(),
        turn: turn_id(params).to_owned(),
        status: status.to_owned(),
        error,
        duration_ms: turn.get("durationMs").and_then(Value::as_i64),
    }
}

fn error(params: &Value) -> Event {
    let told = params.get("error").unwrap_or(params);
    Event::Error {
        thread: thread_id(params).to_owned(),
        turn: turn_id(params).to_owned(),
        message: any_text(told).unwrap_or_default(),
        will_retry: params.get("willRetry").and_then(Value::as_bool).unwrap_or_default(),
    }
}

/// The start of a conversation in the first dialect.
fn configured(params: &Value) -> Option<Event> {
    let id = text(params, &["sessionId", "session_id"])?.to_owned();
    let mut value = crate::event::Members::new();
    value.insert("id".to_owned(), json!(id));
    value.extend(params.get("model").map(|model| ("model".to_owned(), model.clone())));
    Some(Event::Thread { id, value, whole: false })
}

/// A delta, unless there is nothing in it.
fn piece(thread: String, turn: String, item: String, part: Part, text: String, teller: Teller) -> Event {
    Event::Delta(Box::new(Delta { thread, turn, item, part, text, teller }))
}
