//! Events of the Messages API: the data of one server-sent event in, [`ModelEvent`]s out.
//!
//! An event of an unknown kind is skipped. An invalid event of a known kind, a block that starts twice or never ends, and
//! a delta of a block that has not started are errors, because an answer with a gap may run the wrong command.
//!
//! Invariant: a text delta costs one pass over its bytes and no tree of JSON values.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use codex_wire::conversation_item::ItemOrigin;
use codex_wire::provider_traits::Thoughts;
use codex_wire::response::{ContentItem, Message, ResponseItem};
use codex_wire::tokens::TokenUsage;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::answer_tools::{AnswerTools, invalid_answer};
use crate::error_response::{error_of_code, shorten};
use crate::reasoning_item::ReasoningItem;
use crate::{ModelError, ModelEvent};

/// The maximum number of bytes of the arguments of one call, and of a signature.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// Decodes one answer of the Messages API.
#[derive(Debug)]
pub struct AnthropicDecoder {
    origin: ItemOrigin,
    tools: AnswerTools,
    thoughts: Thoughts,
    id: String,
    block: Option<(u64, Block)>,
    /// The ids of calls so far.
    calls: Vec<String>,
    stop_reason: Option<String>,
    usage: Option<Usage>,
}

/// A block that is not complete yet.
#[derive(Debug)]
enum Block {
    Text(String),
    Thinking {
        thinking: ReasoningItem,
        signature: String,
    },
    Redacted(String),
    Call {
        id: String,
        name: String,
        given: Option<Value>,
        arguments: String,
    },
    /// A block of an unknown kind.
    Other,
}

impl AnthropicDecoder {
    /// Creates a decoder for the answer to a request with these tools.
    #[must_use]
    pub fn new(origin: ItemOrigin, tools: AnswerTools, thoughts: Thoughts) -> Self {
        let (id, calls) = (String::new(), Vec::new());
        Self { origin, tools, thoughts, id, block: None, calls, stop_reason: None, usage: None }
    }

    /// Decodes one event.
    ///
    /// # Errors
    /// When it is invalid, or reports that the answer failed.
    pub fn decode(&mut self, data: &str, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        let data = data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let event = serde_json::from_str::<Event<'_>>(data)
            .map_err(|source| ModelError::Malformed { event: format!("{:?}", shorten(data, 80)), source })?;
        let malformed = |source| ModelError::Malformed { event: event.kind.clone().into_owned(), source };
        match &*event.kind {
            "content_block_delta" => self.append(&event, read(event.delta).map_err(malformed)?, events),
            "content_block_start" => self.begin(&event, read(event.content_block).map_err(malformed)?, events),
            "content_block_stop" => self.stop(&event, events),
            "message_start" => {
                let start: Start = read(event.message).map_err(malformed)?;
                (self.id, self.usage) = (start.id.unwrap_or_default(), start.usage);
                Ok(())
            }
            "message_delta" => {
                let end: End = read(event.delta).map_err(malformed)?;
                self.stop_reason = end.stop_reason.or(self.stop_reason.take());
                self.count(event.usage);
                Ok(())
            }
            "message_stop" => self.end(events),
            "error" => Err(failed(event.error)),
            _ if event.error.is_some() => Err(failed(event.error)),
            _ => Ok(()),
        }
    }

    /// Whether a call is not complete yet.
    pub(crate) fn has_open_call(&self) -> bool {
        matches!(self.block, Some((_, Block::Call { .. })))
    }

    /// The stream is over.
    ///
    /// # Errors
    /// When the answer is not complete.
    pub fn end(&mut self, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        let Some(reason) = self.stop_reason.take() else { return Err(ModelError::Disconnected { source: None }) };
        if let Some((_, block)) = self.block.take() {
            return Err(invalid_answer(format!("{} never closes", block.name())));
        }
        match reason.as_str() {
            "max_tokens" => return Err(ModelError::Incomplete { reason: "max_output_tokens".to_owned() }),
            "refusal" => return Err(ModelError::Incomplete { reason: "content_filter".to_owned() }),
            "model_context_window_exceeded" => return Err(error_of_code("context_length_exceeded", &reason)),
            "pause_turn" => return Err(ModelError::Incomplete { reason }),
            _ => {}
        }
        let (response_id, usage) = (std::mem::take(&mut self.id), self.usage.take().map(TokenUsage::from));
        events.push_back(ModelEvent::Completed { response_id, usage, follows_schema: false });
        Ok(())
    }

    fn begin(&mut self, event: &Event<'_>, block: Start, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        if let Some((_, open)) = &self.block {
            return Err(invalid_answer(format!("{} never closes", open.name())));
        }
        let begun = match block.kind.as_deref() {
            Some("text") => {
                events.push_back(ModelEvent::ItemAdded(message(Vec::new())));
                Block::Text(String::new())
            }
            Some("thinking") => {
                let thinking = ReasoningItem::begin(self.thoughts, events);
                Block::Thinking { thinking, signature: block.signature.unwrap_or_default() }
            }
            Some("redacted_thinking") => Block::Redacted(block.data.unwrap_or_default()),
            Some("tool_use") => {
                let id = block
                    .id
                    .filter(|id| !id.is_empty())
                    .ok_or_else(|| invalid_answer("a call has no id".to_owned()))?;
                if self.calls.contains(&id) {
                    return Err(invalid_answer(format!("the id {:?} is used for two calls", shorten(&id, 80))));
                }
                self.calls.push(id.clone());
                Block::Call { id, name: block.name.unwrap_or_default(), given: block.input, arguments: String::new() }
            }
            _ => Block::Other,
        };
        self.block = Some((event.index, begun));
        // A block may begin with some of its text.
        for (kind, text) in [("text_delta", block.text), ("thinking_delta", block.thinking)] {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                self.append(event, Delta::of(kind, text), events)?;
            }
        }
        Ok(())
    }

    fn append(
        &mut self,
        event: &Event<'_>,
        delta: Delta<'_>,
        events: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ModelError> {
        let Some((_, block)) = self.block.as_mut().filter(|(index, _)| *index == event.index) else {
            return Err(invalid_answer(format!("a delta of block {} arrived before its start", event.index)));
        };
        match (block, &*delta.kind) {
            (Block::Text(text), "text_delta") => {
                let delta = delta.text.unwrap_or_default();
                text.push_str(&delta);
                events.push_back(ModelEvent::TextDelta { item_id: String::new(), delta });
            }
            (Block::Thinking { thinking, .. }, "thinking_delta") => {
                thinking.append(delta.thinking.unwrap_or_default(), events);
            }
            (Block::Thinking { signature, .. }, "signature_delta") => {
                signature.push_str(delta.signature.as_deref().unwrap_or_default());
                if signature.len() > MOST_BYTES {
                    return Err(invalid_answer(format!("a signature has more than {MOST_BYTES} bytes")));
                }
            }
            (Block::Call { name, arguments, .. }, "input_json_delta") => {
                arguments.push_str(delta.partial_json.as_deref().unwrap_or_default());
                if arguments.len() > MOST_BYTES {
                    return Err(invalid_answer(format!(
                        "the call of {name} never closes: it has more than {MOST_BYTES} bytes"
                    )));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn stop(&mut self, event: &Event<'_>, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        let Some((_, block)) = self.block.take_if(|(index, _)| *index == event.index) else {
            return Err(invalid_answer(format!("block {} ended before its start", event.index)));
        };
        let origin = |opaque| Some(Arc::new(ItemOrigin { opaque: Some(opaque), ..self.origin.clone() }));
        let (item, origin) = match block {
            Block::Text(text) => (message(vec![ContentItem::OutputText { text: text.into() }]), None),
            Block::Thinking { thinking, signature } => (thinking.end(), origin(json!({"signature": signature}))),
            Block::Redacted(data) => {
                let thinking = ReasoningItem::begin(self.thoughts, &mut VecDeque::new());
                (thinking.end(), origin(json!({"redacted": data})))
            }
            Block::Call { id, name, given, arguments } => {
                // Input that does not arrive in deltas is in the start event.
                let given = given.filter(|given| given.as_object().is_some_and(|members| !members.is_empty()));
                let arguments = given.filter(|_| arguments.is_empty()).map_or(arguments, |given| given.to_string());
                (self.tools.call(id, &name, arguments)?, None)
            }
            Block::Other => return Ok(()),
        };
        events.push_back(ModelEvent::ItemDone(item, origin));
        Ok(())
    }

    /// Counts tokens. Each event has the numbers that changed since the one before.
    fn count(&mut self, usage: Option<&RawValue>) {
        let Some(newer) = usage.and_then(|raw| serde_json::from_str::<Usage>(raw.get()).ok()) else { return };
        let known = self.usage.get_or_insert_default();
        known.fresh = newer.fresh.or(known.fresh);
        known.cache_written = newer.cache_written.or(known.cache_written);
        known.cache_read = newer.cache_read.or(known.cache_read);
        known.output = newer.output.or(known.output);
        known.details = newer.details.or(known.details.take());
    }
}

impl Block {
    fn name(&self) -> String {
        match self {
            Self::Call { name, .. } => format!("the call of {}", shorten(name, 80)),
            Self::Text(_) => "a text".to_owned(),
            Self::Thinking { .. } | Self::Redacted(_) => "a thought".to_owned(),
            Self::Other => "a block".to_owned(),
        }
    }
}

fn message(content: Vec<ContentItem>) -> ResponseItem {
    ResponseItem::Message(Message { id: None, role: "assistant".to_owned(), content })
}

/// An error within the stream.
fn failed(error: Option<&RawValue>) -> ModelError {
    let error: Value = error.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let text = |name: &str| error[name].as_str().unwrap_or_default();
    error_of_code(text("type"), text("message"))
}

fn read<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Result<T, serde_json::Error> {
    serde_json::from_str(raw.map_or("null", RawValue::get))
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// The start of a message, or of a block.
#[derive(Deserialize)]
struct Start {
    #[serde(rename = "type")]
    kind: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Value>,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    data: Option<String>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    text: Option<String>,
    thinking: Option<String>,
    #[serde(borrow)]
    partial_json: Option<Cow<'a, str>>,
    #[serde(borrow)]
    signature: Option<Cow<'a, str>>,
}

impl Delta<'_> {
    fn of(kind: &'static str, text: String) -> Self {
        let (text, thinking) = if kind == "text_delta" { (Some(text), None) } else { (None, Some(text)) };
        Self { kind: Cow::Borrowed(kind), text, thinking, partial_json: None, signature: None }
    }
}

#[derive(Deserialize)]
struct End {
    stop_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Usage {
    #[serde(rename = "input_tokens")]
    fresh: Option<i64>,
    #[serde(rename = "cache_creation_input_tokens")]
    cache_written: Option<i64>,
    #[serde(rename = "cache_read_input_tokens")]
    cache_read: Option<i64>,
    #[serde(rename = "output_tokens")]
    output: Option<i64>,
    #[serde(rename = "output_tokens_details")]
    details: Option<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
struct OutputDetails {
    thinking_tokens: Option<i64>,
}

/// This API counts cached tokens separately; ours include them.
impl From<Usage> for TokenUsage {
    fn from(usage: Usage) -> Self {
        let cached_input_tokens = usage.cache_read.unwrap_or(0);
        let cache_write_input_tokens = usage.cache_written.unwrap_or(0);
        let fresh = usage.fresh.unwrap_or(0);
        let input_tokens = fresh.saturating_add(cached_input_tokens).saturating_add(cache_write_input_tokens);
        let output_tokens = usage.output.unwrap_or(0);
        Self {
            input_tokens,
            cached_input_tokens,
            cache_write_input_tokens,
            output_tokens,
            reasoning_output_tokens: usage.details.and_then(|details| details.thinking_tokens).unwrap_or(0),
            total_tokens: input_tokens.saturating_add(output_tokens),
        }
    }
}

#[cfg(test)]
mod tests;
