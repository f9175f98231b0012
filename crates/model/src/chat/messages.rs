//! The conversation as messages.
//!
//! Each item is encoded once, as a fragment: a letter for its kind, and JSON. Fragments are joined for each request,
//! because text, reasoning and calls of one answer have to be one message. An item is joined according to those before it
//! alone, so a request begins with the bytes of the one before.

use std::borrow::Cow;

use codex_wire::conversation_item::ConversationItem;
use codex_wire::response::{ContentItem, FunctionCallOutputPayload, Message, ReasoningSummaryText, ResponseItem};
use serde_json::{Value, json};

use crate::encoding::{RequestFormat, call_parts, json_of, output_parts};
use crate::tool_names::{accepted_name, restricted_name};

/// A complete message.
const MESSAGE: u8 = b'm';
/// The output of a call, and after [`PICTURES`] a message with its images.
const OUTPUT: u8 = b'o';
/// The text of the model as a JSON string.
const SAID: u8 = b's';
/// A call of the model.
const CALL: u8 = b'c';
/// Reasoning of the model as a JSON string.
const THOUGHT: u8 = b't';
/// An item that the API cannot express.
const NOTHING: u8 = b'-';

/// Separates the output of a call from its images; JSON never contains it.
const PICTURES: char = '\u{1}';

/// The longest id of a call; some servers reject longer ones.
const CALL_ID_LENGTH: usize = 64;

/// Adds the conversation to a request.
pub(super) fn write(body: &mut Vec<u8>, items: &[ConversationItem], format: &RequestFormat<'_>) {
    let mut joined = Joined { body, turn: None, pictures: Vec::new() };
    for item in items {
        // A line of a file may not be a valid item; it is left out.
        let Ok(fragment) = item.on_wire(&format.name, |typed| fragment(item, typed, format)) else { continue };
        joined.add(&fragment);
    }
    joined.finish();
}

/// The message of the model that is being written.
#[derive(Default)]
struct Turn {
    has_thought: bool,
    has_text: bool,
    calls: usize,
}

struct Joined<'b> {
    body: &'b mut Vec<u8>,
    turn: Option<Turn>,
    /// Images of the outputs so far, which have to wait until all outputs of an answer are written.
    pictures: Vec<String>,
}

impl Joined<'_> {
    fn add(&mut self, fragment: &str) {
        let (kind, json) = (fragment.as_bytes().first().copied().unwrap_or(NOTHING), fragment.get(1..).unwrap_or(""));
        match kind {
            MESSAGE => {
                self.finish();
                self.push(json);
            }
            OUTPUT => {
                self.end_turn();
                let (output, pictures) = json.split_once(PICTURES).map_or((json, None), |(one, two)| (one, Some(two)));
                self.push(output);
                self.pictures.extend(pictures.map(str::to_owned));
            }
            THOUGHT => {
                if self.turn.as_ref().is_none_or(|turn| turn.has_thought || turn.has_text || turn.calls > 0) {
                    self.begin_turn();
                }
                self.member("reasoning_content", json, |turn| turn.has_thought = true);
            }
            SAID => {
                if self.turn.as_ref().is_none_or(|turn| turn.has_text || turn.calls > 0) {
                    self.begin_turn();
                }
                self.member("content", json, |turn| turn.has_text = true);
            }
            CALL => self.call(json),
            _ => {}
        }
    }

    fn call(&mut self, json: &str) {
        if self.turn.is_none() {
            self.begin_turn();
        }
        let Some(turn) = &mut self.turn else { return };
        let before: &[u8] = match (turn.calls, turn.has_text) {
            (0, true) => br#","tool_calls":["#,
            // Some servers require the member even without a text.
            (0, false) => br#","content":null,"tool_calls":["#,
            _ => b",",
        };
        self.body.extend_from_slice(before);
        self.body.extend_from_slice(json.as_bytes());
        turn.calls += 1;
    }

    fn begin_turn(&mut self) {
        self.finish();
        self.body.extend_from_slice(br#",{"role":"assistant""#);
        self.turn = Some(Turn::default());
    }

    fn member(&mut self, name: &str, json: &str, note: impl FnOnce(&mut Turn)) {
        self.body.extend_from_slice(format!(",\"{name}\":").as_bytes());
        self.body.extend_from_slice(json.as_bytes());
        if let Some(turn) = &mut self.turn {
            note(turn);
        }
    }

    fn push(&mut self, message: &str) {
        self.body.push(b',');
        self.body.extend_from_slice(message.as_bytes());
    }

    fn end_turn(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        let end: &[u8] = match (turn.calls, turn.has_text) {
            (0, false) => br#","content":""}"#,
            (0, true) => b"}",
            _ => b"]}",
        };
        self.body.extend_from_slice(end);
    }

    fn finish(&mut self) {
        self.end_turn();
        for message in std::mem::take(&mut self.pictures) {
            self.push(&message);
        }
    }
}

fn fragment(item: &ConversationItem, typed: &ResponseItem, format: &RequestFormat<'_>) -> String {
    let (kind, json) = piece(item, typed, format).unwrap_or((NOTHING, String::new()));
    format!("{}{json}", char::from(kind))
}

fn piece(item: &ConversationItem, typed: &ResponseItem, format: &RequestFormat<'_>) -> Option<(u8, String)> {
    if let Some((id, name, arguments)) = call_parts(typed) {
        let function = json!({"name": accepted_name(&name, format.traits), "arguments": arguments});
        let mut call = json!({"id": call_id(&id), "type": "function", "function": function});
        if let Some(extra) = format.opaque(item).and_then(|opaque| opaque.get("extra_content")) {
            call["extra_content"] = extra.clone();
        }
        return Some((CALL, call.to_string()));
    }
    if let Some((id, output)) = output_parts(typed) {
        return Some((OUTPUT, output_message(&call_id(id), output)));
    }
    match typed {
        ResponseItem::Message(message) if message.role == "assistant" => {
            let text = message.text();
            (!text.is_empty()).then(|| (SAID, json_of(&&*text)))
        }
        ResponseItem::Message(message) => {
            let role = if message.role == "user" { "user" } else { "system" };
            Some((MESSAGE, json!({"role": role, "content": content(message)}).to_string()))
        }
        ResponseItem::Reasoning(reasoning) if format.traits.returns_thoughts && !format.is_foreign(item) => {
            let raw = reasoning.content.iter().flatten().map(codex_wire::response::ReasoningContent::text);
            let summary = reasoning.summary.iter().map(|ReasoningSummaryText::SummaryText { text }| text.as_str());
            let thought: String = raw.chain(summary).collect();
            (!thought.is_empty()).then(|| (THOUGHT, json_of(&thought)))
        }
        _ => None,
    }
}

fn call_id(id: &str) -> Cow<'_, str> {
    restricted_name(id, CALL_ID_LENGTH, "_-")
}

/// Text alone is a string, because not every server accepts parts.
fn content(message: &Message) -> Value {
    if message.content.iter().all(|part| part.text().is_some()) {
        return (&*message.text()).into();
    }
    message.content.iter().filter_map(part).collect()
}

fn part(part: &ContentItem) -> Option<Value> {
    match part {
        ContentItem::InputImage { image_url } => Some(json!({"type": "image_url", "image_url": {"url": image_url}})),
        ContentItem::Other(_) => None,
        part => part.text().map(|text| json!({"type": "text", "text": &**text})),
    }
}

fn output_message(id: &str, output: &FunctionCallOutputPayload) -> String {
    let tool = |text: &str| json!({"role": "tool", "tool_call_id": id, "content": text}).to_string();
    let parts = match output {
        FunctionCallOutputPayload::Text(text) => return tool(text),
        FunctionCallOutputPayload::Parts(parts) => parts,
    };
    let text: String = parts.iter().filter_map(ContentItem::text).map(|text| &**text).collect();
    let pictures: Vec<Value> =
        parts.iter().filter(|part| matches!(part, ContentItem::InputImage { .. })).filter_map(part).collect();
    if pictures.is_empty() {
        return tool(&text);
    }
    let text = if text.is_empty() { "The picture is in the next message." } else { &text };
    format!("{}{PICTURES}{}", tool(text), json!({"role": "user", "content": pictures}))
}
