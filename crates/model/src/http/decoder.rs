//! Decodes an answer of any API, whatever comes in between.
//!
//! An event that cannot be read is skipped with a note, unless it may be a part of a call: a call with a gap may run the
//! wrong command. An event that would take too much memory counts as one that cannot be read.

use std::collections::VecDeque;

use codex_wire::foreign_json::{MAX_TREE_BYTES, fits};
use codex_wire::response::ResponseItem;
use serde::de::IgnoredAny;

use crate::answer_tools::invalid_answer;
use crate::encoding::RequestFormat;
use crate::{AnswerTools, AnthropicDecoder, ChatDecoder, ModelError, ModelEvent, Prompt, ResponsesDecoder, WireKind};

/// The maximum number of bytes of the texts and items of one answer.
const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// The warning about events that were skipped. It does not quote them, because they may contain a key.
const SKIPPED: &str = "an event in the model's answer could not be read and was skipped";

/// Decodes an answer.
#[derive(Debug)]
pub(super) struct Decoder {
    wire: Wire,
    /// Whether the user knows that events were skipped.
    has_warned: bool,
    /// The bytes of texts and items so far.
    kept: usize,
    /// Those of texts whose items are not complete.
    open: usize,
}

#[derive(Debug)]
enum Wire {
    Responses(Box<ResponsesDecoder>),
    Chat(Box<ChatDecoder>),
    Anthropic(Box<AnthropicDecoder>),
}

impl Decoder {
    pub(super) fn new(wire: WireKind, prompt: &Prompt, format: &RequestFormat<'_>) -> Self {
        let (origin, traits) = (format.origin.clone(), format.traits);
        // The ids of items tell which answer a later request continues.
        let keeps_ids = traits.store || format.is_message;
        let tools = || AnswerTools::new(&prompt.tools, traits);
        let wire = match wire {
            WireKind::Responses if traits.hosted_tools => {
                Wire::Responses(Box::new(ResponsesDecoder::new(origin, keeps_ids)))
            }
            WireKind::Responses => {
                Wire::Responses(Box::new(ResponsesDecoder::new(origin, keeps_ids).without_namespaces(tools())))
            }
            WireKind::Chat => {
                Wire::Chat(Box::new(ChatDecoder::new(origin, tools(), traits.thoughts, traits.stream_usage)))
            }
            WireKind::Anthropic => Wire::Anthropic(Box::new(AnthropicDecoder::new(origin, tools(), traits.thoughts))),
        };
        Self { wire, has_warned: false, kept: 0, open: 0 }
    }

    /// Decodes one event.
    pub(super) fn decode(&mut self, data: &str, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        if !fits(data, MAX_TREE_BYTES) {
            let too_large = || invalid_answer("an event of a call takes too much memory".to_owned());
            return self.skip(data, events).ok_or_else(too_large);
        }
        let begin = events.len();
        let result = match &mut self.wire {
            Wire::Responses(decoder) => decoder.decode(data, events),
            Wire::Chat(decoder) => decoder.decode(data, events),
            Wire::Anthropic(decoder) => decoder.decode(data, events),
        };
        match result {
            Ok(()) => self.count(data, events.range(begin..)),
            Err(ModelError::Malformed { .. }) if !is_object(data) => self.skip(data, events).map_or(result, Ok),
            Err(error) => Err(error),
        }
    }

    /// Skips an event with a warning; `None` if it may be a part of a call.
    fn skip(&mut self, data: &str, events: &mut VecDeque<ModelEvent>) -> Option<()> {
        let has_open_call = match &self.wire {
            // Its calls come whole.
            Wire::Responses(_) => false,
            Wire::Chat(decoder) => decoder.has_open_call(),
            Wire::Anthropic(decoder) => decoder.has_open_call(),
        };
        if has_open_call && data.trim_start().starts_with('{') {
            return None;
        }
        if !std::mem::replace(&mut self.has_warned, true) {
            events.push_back(ModelEvent::Notice(SKIPPED.to_owned()));
        }
        Some(())
    }

    /// Counts the bytes that an event adds to the answer.
    fn count<'a>(&mut self, data: &str, added: impl Iterator<Item = &'a ModelEvent>) -> Result<(), ModelError> {
        for event in added {
            match event {
                ModelEvent::TextDelta { delta, .. }
                | ModelEvent::ReasoningSummaryDelta { delta, .. }
                | ModelEvent::ReasoningDelta { delta, .. } => self.open += delta.len(),
                // The items of this API repeat their texts; those of the others are made of them.
                ModelEvent::ItemDone(..) if matches!(self.wire, Wire::Responses(_)) => {
                    self.kept += data.len();
                    self.open = 0;
                }
                ModelEvent::ItemDone(item, _) => self.kept += std::mem::take(&mut self.open) + call_bytes(item),
                ModelEvent::Opened { .. }
                | ModelEvent::ItemAdded(_)
                | ModelEvent::ReasoningPartAdded { .. }
                | ModelEvent::Notice(_)
                | ModelEvent::Completed { .. } => {}
            }
        }
        if self.kept + self.open > MAX_ANSWER_BYTES {
            return Err(invalid_answer(format!("the answer has more than {MAX_ANSWER_BYTES} bytes")));
        }
        Ok(())
    }

    /// The stream ended without a last event.
    pub(super) fn end(&mut self, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        match &mut self.wire {
            Wire::Responses(_) => Err(ModelError::Disconnected { source: None }),
            Wire::Chat(decoder) => decoder.end(events),
            Wire::Anthropic(decoder) => decoder.end(events),
        }
    }
}

/// The length of the arguments of a call.
fn call_bytes(item: &ResponseItem) -> usize {
    match item {
        ResponseItem::FunctionCall(call) => call.arguments.len(),
        ResponseItem::CustomToolCall(call) => call.input.len(),
        _ => 0,
    }
}

/// Whether an event is an object of JSON.
fn is_object(data: &str) -> bool {
    data.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(data).is_ok()
}
