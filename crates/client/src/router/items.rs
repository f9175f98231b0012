//! Items of the second dialect, and of the one with `item/created`.

use serde_json::{Value, json};

use super::piece;
use super::shapes::{any_text, text, thread_id, turn_id};
use crate::event::{Event, Members, Part, Teller};

const ITEM: &[&str] = &["itemId", "item_id"];

/// `item/started` and `item/completed`.
pub(super) fn told(params: &Value, is_complete: bool) -> Option<Event> {
    let item = params.get("item")?.as_object()?.clone();
    item.get("type")?.as_str()?;
    let (thread, turn, teller) = (thread_id(params).to_owned(), turn_id(params).to_owned(), Teller::Items);
    let at_ms = params.get(if is_complete { "completedAtMs" } else { "startedAtMs" }).and_then(Value::as_i64);
    Some(if is_complete {
        Event::ItemCompleted { thread, turn, item, teller, at_ms }
    } else {
        Event::ItemStarted { thread, turn, item, teller, at_ms }
    })
}

/// A delta that names its item.
pub(super) fn delta(params: &Value, part: Part, teller: Teller) -> Option<Event> {
    let (thread, turn) = (thread_id(params).to_owned(), turn_id(params).to_owned());
    let item = text(params, ITEM)?.to_owned();
    Some(piece(thread, turn, item, part, params.get("delta")?.as_str()?.to_owned(), teller))
}

pub(super) fn index(params: &Value, names: &[&str]) -> usize {
    let index = names.iter().find_map(|name| params.get(name)?.as_u64()).unwrap_or_default();
    usize::try_from(index).unwrap_or_default()
}

/// The plan of a turn, with its steps in the form of v2.
pub(super) fn plan(thread: String, turn: String, params: &Value) -> Option<Event> {
    let steps = params.get("plan")?.as_array()?.iter().map(|step| {
        let status = match text(step, &["status"]).unwrap_or("pending") {
            "in_progress" => "inProgress",
            status => status,
        };
        json!({"step": any_text(step.get("step").unwrap_or(step)).unwrap_or_default(), "status": status})
    });
    let steps: Vec<Value> = steps.collect();
    let explanation = params.get("explanation").cloned().unwrap_or_default();
    Some(Event::Plan { thread, turn, plan: json!({"explanation": explanation, "steps": steps}) })
}

/// The kind of an item of this dialect: a message, unless it says otherwise.
fn created_kind(item: &Value) -> &'static str {
    let kind = text(item, &["type"]).unwrap_or_default().to_lowercase();
    let purpose = text(item, &["purpose"]).unwrap_or_default().to_lowercase();
    match kind.as_str() {
        _ if kind.contains("reasoning") || purpose == "reasoning" => "reasoning",
        "plan" => "plan",
        "image" | "imageview" => "imageView",
        _ => "agentMessage",
    }
}

/// `item/created`: with its first piece, or whole.
pub(super) fn created(params: &Value) -> Option<Event> {
    let item = params.get("item")?;
    let (thread, turn) = (thread_id(params).to_owned(), turn_id(params).to_owned());
    let kind = created_kind(item);
    if kind == "plan" && item.get("plan").is_some() {
        return plan(thread, turn, item);
    }
    let mut members = Members::new();
    members.insert("type".to_owned(), json!(kind));
    members.insert("id".to_owned(), json!(text(item, &["id"]).or_else(|| text(params, ITEM)).unwrap_or_default()));
    let told = any_text(item).unwrap_or_default();
    match kind {
        "reasoning" => members.extend([("summary".to_owned(), json!([told])), ("content".to_owned(), json!([]))]),
        "imageView" => members.extend([("path".to_owned(), item.get("path").cloned().unwrap_or_default())]),
        _ => members.extend([("text".to_owned(), json!(told))]),
    }
    let is_complete = item.get("text").is_some() || kind == "imageView";
    let teller = Teller::Created;
    Some(if is_complete {
        Event::ItemCompleted { thread, turn, item: members, teller, at_ms: None }
    } else {
        Event::ItemStarted { thread, turn, item: members, teller, at_ms: None }
    })
}

/// `item/delta`: more of the item that it names, or of the last one.
pub(super) fn created_delta(params: &Value) -> Option<Event> {
    let inner = params.get("item").unwrap_or(&Value::Null);
    let item = text(params, ITEM).or_else(|| text(inner, &["id"])).unwrap_or_default().to_owned();
    let part = match created_kind(inner) {
        "reasoning" => Part::Summary(0),
        _ => Part::Message,
    };
    let more = any_text(params.get("delta").unwrap_or(&Value::Null)).or_else(|| any_text(inner))?;
    Some(piece(thread_id(params).to_owned(), turn_id(params).to_owned(), item, part, more, Teller::Created))
}
