//! Encodes an entry as events of the Responses API.

use std::{iter, time::Duration};

use serde_json::{Value, json};

use super::{
    entry::{End, Entry, Usage},
    item::{Call, Custom, Delta, Item, LocalShell, Reasoning, Text, WebSearch},
    player::spaced_json,
};

/// One step of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// An event to send.
    Event(Value),
    /// A pause.
    Pause(Duration),
    /// A pause until the peer disconnects.
    Hang,
}

type Steps = Box<dyn Iterator<Item = Step> + Send>;

/// The steps of an entry; items take their ids from its number in the script, from 1.
///
/// An entry that ends as [`End::Cut`] or [`End::Reset`] has no last event: the player decides what happens to the
/// connection.
pub fn responses_events(entry: Entry, number: usize) -> impl Iterator<Item = Step> + Send + 'static {
    let id = entry.id.unwrap_or_else(|| format!("resp-{number}"));
    let created = event(json!({"type": "response.created", "response": {"id": id}}));
    let last = last_event(&id, entry.end, entry.usage, entry.follows_schema);
    let items = entry.items.into_iter().enumerate();
    let items = items.flat_map(move |(index, item)| steps(item, &Place { entry: number, index }));
    iter::once(created).chain(items).chain(last)
}

fn last_event(id: &str, end: End, usage: Usage, follows_schema: bool) -> Option<Step> {
    match end {
        End::Completed => {
            let usage = json!({
                "input_tokens": usage.input,
                "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.written},
                "output_tokens": usage.output,
                "output_tokens_details": {"reasoning_tokens": usage.reasoning},
                "total_tokens": usage.input.saturating_add(usage.output),
            });
            let format = if follows_schema { "json_schema" } else { "text" };
            let response = json!({"id": id, "usage": usage, "text": {"format": {"type": format}}});
            Some(event(json!({"type": "response.completed", "response": response})))
        }
        End::Failed(error) => Some(event(json!({"type": "response.failed", "response": {"id": id, "error": error}}))),
        End::Incomplete(reason) => {
            let response = json!({"id": id, "incomplete_details": {"reason": reason}});
            Some(event(json!({"type": "response.incomplete", "response": response})))
        }
        End::Cut | End::Reset => None,
    }
}

/// The position of an item in the script.
struct Place {
    entry: usize,
    index: usize,
}

impl Place {
    fn id(&self, given: Option<&String>, prefix: &str) -> String {
        given.cloned().unwrap_or_else(|| format!("{prefix}-{}-{}", self.entry, self.index + 1))
    }

    fn added(&self, item: &Value) -> Step {
        event(json!({"type": "response.output_item.added", "output_index": self.index, "item": item}))
    }

    fn done(&self, item: &Value) -> Step {
        event(json!({"type": "response.output_item.done", "output_index": self.index, "item": item}))
    }
}

fn steps(item: Item, place: &Place) -> Steps {
    match item {
        Item::Pause(span) => Box::new(iter::once(Step::Pause(span))),
        Item::Hang => Box::new(iter::once(Step::Hang)),
        Item::Event(value) => Box::new(iter::once(event(value))),
        Item::Text(text) => text_steps(text, place),
        Item::Reasoning(reasoning) => reasoning_steps(&reasoning, place),
        Item::Call(call) => call_steps(call, place),
        Item::Custom(custom) => custom_steps(&custom, place),
        Item::LocalShell(shell) => local_shell_steps(&shell, place),
        Item::WebSearch(search) => web_search_steps(&search, place),
    }
}

fn text_steps(item: Text, place: &Place) -> Steps {
    let (id, index) = (place.id(item.id.as_ref(), "msg"), place.index);
    let message = json!({"type": "message", "role": "assistant", "id": id});
    let added = place.added(&with(&message, "content", json!([])));
    let content = json!([{"type": "output_text", "text": item.whole}]);
    let done = item.done.then(|| place.done(&with(&message, "content", content)));
    let deltas = item.deltas.unwrap_or_else(|| vec![Delta::Text(item.whole)]);
    let deltas = deltas.into_iter().map(move |delta| match delta {
        Delta::Pause(span) => Step::Pause(span),
        Delta::Text(delta) => event(json!({
            "type": "response.output_text.delta", "item_id": id, "output_index": index, "content_index": 0, "delta": delta,
        })),
    });
    Box::new(iter::once(added).chain(deltas).chain(done))
}

fn reasoning_steps(item: &Reasoning, place: &Place) -> Steps {
    let id = place.id(item.id.as_ref(), "rs");
    let reasoning = json!({"type": "reasoning", "id": id});
    let mut steps = vec![place.added(&with(&reasoning, "summary", json!([])))];
    for (part, text) in item.summary.iter().enumerate() {
        let part_event = |kind: &str| json!({"type": format!("response.reasoning_summary_{kind}"), "item_id": id, "summary_index": part});
        steps.push(event(part_event("part.added")));
        steps.extend(halves(text).map(|half| event(with(&part_event("text.delta"), "delta", json!(half)))));
        steps.push(event(with(&part_event("text.done"), "text", json!(text))));
    }
    let summary = item.summary.iter().map(|text| json!({"type": "summary_text", "text": text})).collect::<Vec<_>>();
    let mut whole = with(&reasoning, "encrypted_content", json!("c2VjcmV0"));
    whole = with(&whole, "summary", json!(summary));
    if let Some(raw) = &item.raw {
        steps.extend(halves(raw).map(|half| {
            event(json!({"type": "response.reasoning_text.delta", "item_id": id, "content_index": 0, "delta": half}))
        }));
        whole = with(&whole, "content", json!([{"type": "reasoning_text", "text": raw}]));
    }
    steps.push(place.done(&whole));
    Box::new(steps.into_iter())
}

fn call_steps(item: Call, place: &Place) -> Steps {
    let arguments = match item.args {
        Value::String(text) => text,
        arguments => spaced_json(&arguments),
    };
    let mut call = json!({
        "type": "function_call", "id": place.id(item.id.as_ref(), "fc"), "name": item.name,
        "call_id": place.id(item.id.as_ref(), "call"),
    });
    if let Some(namespace) = item.namespace {
        call = with(&call, "namespace", json!(namespace));
    }
    added_and_done(place, &with(&call, "arguments", json!("")), &with(&call, "arguments", json!(arguments)))
}

fn custom_steps(item: &Custom, place: &Place) -> Steps {
    let call = json!({
        "type": "custom_tool_call", "name": item.name, "status": "completed",
        "call_id": place.id(item.id.as_ref(), "call"),
    });
    added_and_done(place, &with(&call, "input", json!("")), &with(&call, "input", json!(item.input)))
}

fn local_shell_steps(item: &LocalShell, place: &Place) -> Steps {
    let mut action = json!({"type": "exec", "command": item.command});
    if let Some(timeout) = item.timeout_ms {
        action = with(&action, "timeout_ms", json!(timeout));
    }
    let id = place.id(item.id.as_ref(), "call");
    let call = json!({"type": "local_shell_call", "call_id": id, "status": "completed", "action": action});
    Box::new(iter::once(place.done(&call)))
}

fn web_search_steps(item: &WebSearch, place: &Place) -> Steps {
    let search = json!({"type": "web_search_call", "id": place.id(item.id.as_ref(), "ws")});
    let action = json!({"type": "search", "query": item.query});
    let done = with(&with(&search, "status", json!("completed")), "action", action);
    added_and_done(place, &with(&search, "status", json!("in_progress")), &done)
}

fn added_and_done(place: &Place, added: &Value, done: &Value) -> Steps {
    Box::new([place.added(added), place.done(done)].into_iter())
}

fn event(value: Value) -> Step {
    Step::Event(value)
}

/// A copy of an object with one more member.
fn with(object: &Value, name: &str, value: Value) -> Value {
    let mut object = object.clone();
    object[name] = value;
    object
}

/// A text in two parts, neither of them empty.
fn halves(text: &str) -> impl Iterator<Item = &str> {
    let half = (text.chars().count() / 2).max(1);
    let middle = text.char_indices().nth(half).map_or(text.len(), |(place, _)| place);
    let (first, second) = text.split_at(middle);
    [first, second].into_iter().filter(|piece| !piece.is_empty())
}
