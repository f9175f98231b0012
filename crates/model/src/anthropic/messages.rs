//! The conversation as alternating messages.
//!
//! Each item is encoded once, as a fragment: a letter for its side, and the JSON of blocks. Fragments of one side are
//! joined to one message. The joining of an item depends only on the items before it, so except for cache marks a
//! request begins with the bytes of the previous one.

use codex_wire::conversation_item::ConversationItem;
use codex_wire::response::{
    ContentItem, FunctionCallOutputPayload, Message, Reasoning, ReasoningContent, ReasoningSummaryText, ResponseItem,
};
use serde_json::{Value, json};

use crate::encoding::{RequestFormat, call_parts, output_parts};
use crate::tool_names::{accepted_name, restricted_name};

/// Blocks of the user, including the outputs of calls.
const USER: u8 = b'u';
/// Blocks of the model.
const MODEL: u8 = b'a';

/// Replaces an omitted start, because the first message must be the user's.
const LEFT_OUT: &str = r#"{"type":"text","text":"(What came before was left out.)"}"#;
/// Follows a last message of the model, because newer models reject requests that end with one.
const GO_ON: &str = r#"{"type":"text","text":"Go on."}"#;

const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

/// The longest id of a call.
const CALL_ID_LENGTH: usize = 64;

/// The number of cache marks in messages: one of the four is for the instructions and tools before them.
const MOST_MARKS: usize = 3;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    /// Whether there are calls, which require a description of tools.
    pub(super) has_calls: bool,
}

/// Adds the conversation to a request, with or without cache marks.
///
/// Marks are placed where the conversation does not change: after the initial items of the thread, and after the last
/// two messages of the user's side, the second of which the next request finds where this one left it.
pub(super) fn write(
    body: &mut Vec<u8>,
    items: &[ConversationItem],
    format: &RequestFormat<'_>,
    is_marked: bool,
) -> Written {
    let mut joined = Joined { body, side: None, ends: Vec::new(), written: Written::default() };
    for item in items {
        // A line of a file may not be a valid item; it is left out.
        let Ok(fragment) = item.on_wire(&format.name, |typed| fragment(item, typed, format)) else { continue };
        joined.add(&fragment);
    }
    joined.finish();
    let (ends, written) = (joined.ends, joined.written);
    if is_marked {
        mark(body, &ends);
    }
    written
}

struct Joined<'b> {
    body: &'b mut Vec<u8>,
    side: Option<u8>,
    /// The end of the last block of each user message, before its brace.
    ends: Vec<usize>,
    written: Written,
}

impl Joined<'_> {
    fn add(&mut self, fragment: &str) {
        let (Some(side), Some(blocks)) = (fragment.bytes().next(), fragment.get(1..)) else { return };
        if blocks.is_empty() {
            return;
        }
        if self.side.is_none() && side == MODEL {
            self.add(&format!("{}{LEFT_OUT}", char::from(USER)));
        }
        if self.side == Some(side) {
            self.body.push(b',');
        } else {
            self.end_message();
            if self.body.last() != Some(&b'[') {
                self.body.push(b',');
            }
            let role = if side == USER { "user" } else { "assistant" };
            self.body.extend_from_slice(format!("{{\"role\":\"{role}\",\"content\":[").as_bytes());
            self.side = Some(side);
        }
        self.body.extend_from_slice(blocks.as_bytes());
        self.written.has_calls |= side == MODEL && blocks.starts_with(r#"{"type":"tool_use""#);
    }

    fn end_message(&mut self) {
        if self.side == Some(USER) {
            self.ends.push(self.body.len() - 1);
        }
        if self.side.is_some() {
            self.body.extend_from_slice(b"]}");
        }
    }

    fn finish(&mut self) {
        if self.side != Some(USER) {
            let said = if self.side.is_some() { GO_ON } else { LEFT_OUT };
            self.add(&format!("{}{said}", char::from(USER)));
        }
        self.end_message();
    }
}

/// Adds marks at the first and the last two of these positions.
fn mark(body: &mut Vec<u8>, ends: &[usize]) {
    let mut places: Vec<usize> = ends.first().copied().into_iter().chain(ends.iter().rev().take(2).copied()).collect();
    places.sort_unstable();
    places.dedup();
    places.truncate(MOST_MARKS);
    for place in places.into_iter().rev() {
        body.splice(place..place, MARK.iter().copied());
    }
}

fn fragment(item: &ConversationItem, typed: &ResponseItem, format: &RequestFormat<'_>) -> String {
    let (side, blocks) = blocks(item, typed, format).unwrap_or((USER, Vec::new()));
    let blocks: Vec<String> = blocks.iter().map(Value::to_string).collect();
    format!("{}{}", char::from(side), blocks.join(","))
}

fn blocks(item: &ConversationItem, typed: &ResponseItem, format: &RequestFormat<'_>) -> Option<(u8, Vec<Value>)> {
    if let Some((id, name, arguments)) = call_parts(typed) {
        // The API requires an object, and the arguments of the model may be none.
        let input = serde_json::from_str::<Value>(&arguments).ok().filter(Value::is_object);
        let input = input.unwrap_or_else(|| json!({"arguments": arguments}));
        let name = accepted_name(&name, format.traits);
        return Some((MODEL, vec![json!({"type": "tool_use", "id": call_id(&id), "name": name, "input": input})]));
    }
    if let Some((id, output)) = output_parts(typed) {
        let id = call_id(id);
        let block = match output {
            FunctionCallOutputPayload::Text(text) if text.is_empty() => {
                json!({"type": "tool_result", "tool_use_id": id})
            }
            FunctionCallOutputPayload::Text(text) => json!({"type": "tool_result", "tool_use_id": id, "content": text}),
            FunctionCallOutputPayload::Parts(parts) => {
                let content: Vec<Value> = parts.iter().filter_map(part).collect();
                json!({"type": "tool_result", "tool_use_id": id, "content": content})
            }
        };
        return Some((USER, vec![block]));
    }
    match typed {
        ResponseItem::Message(message) => Some(message_blocks(message)),
        ResponseItem::Reasoning(reasoning) => Some((MODEL, vec![thought(reasoning, format.opaque(item)?)?])),
        _ => None,
    }
}

fn call_id(id: &str) -> String {
    restricted_name(id, CALL_ID_LENGTH, "_-").into_owned()
}

fn message_blocks(message: &Message) -> (u8, Vec<Value>) {
    let side = if message.role == "assistant" { MODEL } else { USER };
    (side, message.content.iter().filter_map(part).collect())
}

/// A part of a message; an empty text would be rejected.
fn part(part: &ContentItem) -> Option<Value> {
    match part {
        ContentItem::InputImage { image_url } => Some(json!({"type": "image", "source": source(image_url)})),
        part => {
            let text = part.text().filter(|text| !text.trim().is_empty())?;
            Some(json!({"type": "text", "text": &**text}))
        }
    }
}

fn source(url: &str) -> Value {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((kind, data)) => json!({"type": "base64", "media_type": kind, "data": data}),
        None => json!({"type": "url", "url": url}),
    }
}

/// Reasoning as it was received.
fn thought(reasoning: &Reasoning, opaque: &Value) -> Option<Value> {
    if let Some(data) = opaque["redacted"].as_str() {
        return Some(json!({"type": "redacted_thinking", "data": data}));
    }
    let signature = opaque["signature"].as_str().filter(|signature| !signature.is_empty())?;
    let summary = reasoning.summary.iter().map(|ReasoningSummaryText::SummaryText { text }| text.as_str());
    let raw = reasoning.content.iter().flatten().map(ReasoningContent::text);
    let text: String = summary.chain(raw).collect();
    Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
}
