//! Chunks of an answer: the data of one server-sent event in, [`ModelEvent`]s out.
//!
//! The API has no items, so they are made here: reasoning, text and calls become one item after the other. A chunk that cannot be read is an error, because an answer with a hole in it may run the wrong command.
//!
//! Invariant: a piece of text costs one pass over its bytes and no tree of JSON values.

use std::collections::VecDeque;
use std::sync::Arc;

use codex_wire::conversation_item::ItemOrigin;
use codex_wire::provider_traits::Thoughts;
use codex_wire::response::{ContentItem, Message, ResponseItem};
use codex_wire::tokens::TokenUsage;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::calls::{Calls, Piece};
use super::frame::{Frame, Framed};
use crate::answer_tools::AnswerTools;
use crate::error_response::{error_of_code, shorten};
use crate::reasoning_item::ReasoningItem;
use crate::{ModelError, ModelEvent};

/// Decodes one answer of the Chat Completions API.
#[derive(Debug)]
pub struct ChatDecoder {
    origin: ItemOrigin,
    tools: AnswerTools,
    thoughts: Thoughts,
    /// Whether tokens are counted. A count that was not requested is ignored, because some servers send wrong ones.
    counts: bool,
    id: String,
    frame: Frame,
    /// The member that the frame was learnt for.
    framed: TextMember,
    open_item: OpenItem,
    calls: Calls,
    refusal: String,
    is_finished: bool,
    /// The last count of tokens, still encoded: some servers send one with every chunk.
    usage: String,
}

/// A member of a chunk with text.
#[derive(Debug, Clone, Copy, Default)]
enum TextMember {
    #[default]
    Content,
    Reasoning,
}

/// The item that is not complete yet.
#[derive(Debug, Default)]
enum OpenItem {
    #[default]
    Nothing,
    Text(String),
    Reasoning(ReasoningItem),
}

impl ChatDecoder {
    /// Creates a decoder for the answer to a request with these tools.
    #[must_use]
    pub fn new(origin: ItemOrigin, tools: AnswerTools, thoughts: Thoughts, counts: bool) -> Self {
        Self {
            origin,
            tools,
            thoughts,
            counts,
            id: String::new(),
            frame: Frame::default(),
            framed: TextMember::default(),
            open_item: OpenItem::Nothing,
            calls: Calls::default(),
            refusal: String::new(),
            is_finished: false,
            usage: String::new(),
        }
    }

    /// Decodes one event.
    ///
    /// # Errors
    /// When it is invalid, or reports that the answer failed.
    pub fn decode(&mut self, data: &str, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        let data = data.trim();
        if data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            self.is_finished |= self.calls.is_empty();
            return self.end(events);
        }
        if let Some(Framed { text, usage }) = self.frame.read(data) {
            match self.framed {
                TextMember::Content => self.append_text(text, events),
                TextMember::Reasoning => self.append_reasoning(text, events),
            }
            self.count(usage);
            return Ok(());
        }
        let malformed = |source| ModelError::Malformed { event: format!("{:?}", shorten(data, 80)), source };
        let chunk = serde_json::from_str::<Chunk<'_>>(data).map_err(malformed)?;
        if let Some(error) = chunk.error.filter(|error| error.get() != "null") {
            return Err(failed(error));
        }
        if self.id.is_empty()
            && let Some(id) = chunk.id
        {
            self.id = serde_json::from_str(id.get()).unwrap_or_default();
        }
        let only_text = chunk.only_text();
        for choice in chunk.choices.into_iter().flatten().filter(|choice| choice.index.unwrap_or(0) == 0) {
            if let Some(delta) = choice.delta.or(choice.message) {
                self.append(delta, events).map_err(|error| error.unwrap_or_else(malformed))?;
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finish(&reason)?;
            }
        }
        self.count(chunk.usage.map(RawValue::get));
        if let Some((member, text)) = only_text {
            self.framed = member;
            self.frame.learn(data, text.get());
        }
        Ok(())
    }

    /// Whether a call is not complete yet.
    pub(crate) fn has_open_call(&self) -> bool {
        !self.calls.is_empty()
    }

    fn count(&mut self, usage: Option<&str>) {
        if let Some(usage) = usage.filter(|_| self.counts) {
            self.usage.clear();
            self.usage.push_str(usage);
        }
    }

    /// The stream is over.
    ///
    /// # Errors
    /// When the answer is not complete.
    pub fn end(&mut self, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        if !self.is_finished {
            return Err(ModelError::Disconnected { source: None });
        }
        self.close(events);
        for (item, extra) in self.calls.finish(&self.tools)? {
            let origin = extra.map(|extra| {
                let opaque = Some(json!({"extra_content": extra}));
                Arc::new(ItemOrigin { opaque, ..self.origin.clone() })
            });
            events.push_back(ModelEvent::ItemDone(item, origin));
        }
        // A count that cannot be read is none.
        let usage = serde_json::from_str::<Usage>(&std::mem::take(&mut self.usage)).ok().map(TokenUsage::from);
        let response_id = std::mem::take(&mut self.id);
        events.push_back(ModelEvent::Completed { response_id, usage, follows_schema: false });
        Ok(())
    }

    fn append(&mut self, delta: Delta<'_>, events: &mut VecDeque<ModelEvent>) -> Result<(), PieceError> {
        for thought in [delta.reasoning_content, delta.reasoning].into_iter().flatten() {
            self.append_reasoning(text(thought)?, events);
        }
        if let Some(content) = delta.content {
            self.append_text(text(content)?, events);
        }
        if let Some(refusal) = delta.refusal {
            self.refusal.push_str(&text(refusal)?);
        }
        for piece in delta.tool_calls.into_iter().flatten() {
            if self.calls.is_empty() {
                self.close(events);
            }
            self.calls.add(piece).map_err(PieceError::Answer)?;
        }
        Ok(())
    }

    fn append_text(&mut self, delta: String, events: &mut VecDeque<ModelEvent>) {
        if delta.is_empty() {
            return;
        }
        if let OpenItem::Text(text) = &mut self.open_item {
            text.push_str(&delta);
        } else {
            self.close(events);
            self.open_item = OpenItem::Text(delta.clone());
            events.push_back(ModelEvent::ItemAdded(message(Vec::new())));
        }
        events.push_back(ModelEvent::TextDelta { item_id: String::new(), delta });
    }

    fn append_reasoning(&mut self, delta: String, events: &mut VecDeque<ModelEvent>) {
        if delta.is_empty() {
            return;
        }
        if !matches!(self.open_item, OpenItem::Reasoning(_)) {
            self.close(events);
            self.open_item = OpenItem::Reasoning(ReasoningItem::begin(self.thoughts, events));
        }
        if let OpenItem::Reasoning(thinking) = &mut self.open_item {
            thinking.append(delta, events);
        }
    }

    /// Completes the open item.
    fn close(&mut self, events: &mut VecDeque<ModelEvent>) {
        match std::mem::take(&mut self.open_item) {
            OpenItem::Nothing => {}
            OpenItem::Text(text) => {
                let content = vec![ContentItem::OutputText { text: text.into() }];
                events.push_back(ModelEvent::ItemDone(message(content), None));
            }
            OpenItem::Reasoning(thinking) => events.push_back(ModelEvent::ItemDone(thinking.end(), None)),
        }
        if !self.refusal.is_empty() && self.is_finished {
            let content = vec![ContentItem::Refusal { refusal: std::mem::take(&mut self.refusal).into() }];
            events.push_back(ModelEvent::ItemDone(message(content), None));
        }
    }

    fn finish(&mut self, reason: &str) -> Result<(), ModelError> {
        match reason {
            "length" => Err(ModelError::Incomplete { reason: "max_output_tokens".to_owned() }),
            "content_filter" => Err(ModelError::Incomplete { reason: reason.to_owned() }),
            "error" => Err(error_of_code("", "")),
            _ => {
                self.is_finished = true;
                Ok(())
            }
        }
    }
}

/// The reason why a chunk is invalid.
enum PieceError {
    Text(serde_json::Error),
    Answer(ModelError),
}

impl PieceError {
    fn unwrap_or_else(self, malformed: impl FnOnce(serde_json::Error) -> ModelError) -> ModelError {
        match self {
            Self::Text(error) => malformed(error),
            Self::Answer(error) => error,
        }
    }
}

fn message(content: Vec<ContentItem>) -> ResponseItem {
    ResponseItem::Message(Message { id: None, role: "assistant".to_owned(), content })
}

/// A string, or the texts of a list of parts.
fn text(raw: &RawValue) -> Result<String, PieceError> {
    match raw.get().as_bytes().first() {
        Some(b'"') => serde_json::from_str(raw.get()).map_err(PieceError::Text),
        Some(b'[') => {
            let parts: Vec<Value> = serde_json::from_str(raw.get()).map_err(PieceError::Text)?;
            Ok(parts.iter().filter_map(|part| part["text"].as_str()).collect())
        }
        _ => Ok(String::new()),
    }
}

/// An error within the stream: an object, or a string.
fn failed(error: &RawValue) -> ModelError {
    let error: Value = serde_json::from_str(error.get()).unwrap_or_default();
    let code = [&error["code"], &error["type"]].into_iter().find_map(Value::as_str).unwrap_or_default();
    let message = [&error["message"], &error].into_iter().find_map(Value::as_str).unwrap_or_default();
    error_of_code(code, message)
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl<'a> Chunk<'a> {
    /// The text of a chunk that says nothing else, except for a count of tokens.
    fn only_text(&self) -> Option<(TextMember, &'a RawValue)> {
        let is_null = |raw: Option<&RawValue>| raw.is_none_or(|raw| raw.get() == "null");
        let [Choice { index: None | Some(0), delta: Some(delta), message: None, finish_reason: None }] =
            self.choices.as_deref()?
        else {
            return None;
        };
        if delta.tool_calls.is_some() || !is_null(delta.refusal) {
            return None;
        }
        let texts = [
            (TextMember::Content, delta.content),
            (TextMember::Reasoning, delta.reasoning_content),
            (TextMember::Reasoning, delta.reasoning),
        ];
        let mut texts = texts.into_iter().filter(|(_, text)| !is_null(*text));
        let (Some((member, text)), None) = (texts.next(), texts.next()) else { return None };
        text.filter(|text| text.get().starts_with('"')).map(|text| (member, text))
    }
}

#[derive(Deserialize)]
struct Choice<'a> {
    index: Option<i64>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    /// Some servers end with the complete message in place of a delta.
    #[serde(borrow)]
    message: Option<Delta<'a>>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Piece<'a>>>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    prompt_tokens: i64,
    #[serde(default)]
    completion_tokens: i64,
    total_tokens: Option<i64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<i64>,
    cache_write_tokens: Option<i64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<i64>,
}

impl From<Usage> for TokenUsage {
    fn from(usage: Usage) -> Self {
        let Usage { prompt_tokens: input_tokens, completion_tokens: output_tokens, total_tokens, .. } = usage;
        let prompt = usage.prompt_tokens_details;
        Self {
            input_tokens,
            cached_input_tokens: prompt.as_ref().and_then(|details| details.cached_tokens).unwrap_or(0),
            cache_write_input_tokens: prompt.and_then(|details| details.cache_write_tokens).unwrap_or(0),
            output_tokens,
            reasoning_output_tokens: usage.completion_tokens_details.and_then(|of| of.reasoning_tokens).unwrap_or(0),
            total_tokens: total_tokens.unwrap_or_else(|| input_tokens.saturating_add(output_tokens)),
        }
    }
}

#[cfg(test)]
mod tests;
