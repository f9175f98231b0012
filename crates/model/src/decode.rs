//! Events of the Responses API: the data of one server-sent event in, a [`ModelEvent`] out.
//!
//! An event of an unknown kind is skipped. An invalid event of a known kind is an error, because an answer with a gap may
//! run the wrong command; only previews and token counts may be invalid. A call that has a name but is invalid is kept
//! verbatim, so that the error can be reported to the model.
//!
//! Invariant: a text delta costs one pass over its bytes and no tree of JSON values.

use std::borrow::Cow;

use codex_wire::{response::ResponseItem, tokens::TokenUsage};
use serde::{Deserialize, de::Error as _};
use serde_json::{Value, value::RawValue};

use crate::{
    ModelError, ModelEvent,
    error_response::{error_of_code, shorten},
};

/// Decodes one event; `None` if it is not relevant.
pub fn decode(data: &str) -> Result<Option<ModelEvent>, ModelError> {
    let data = data.trim();
    if data.is_empty() || data == "[DONE]" {
        return Ok(None);
    }
    let envelope = serde_json::from_str::<Envelope<'_>>(data)
        .map_err(|source| ModelError::Malformed { event: format!("{:?}", shorten(data, 80)), source })?;
    let malformed = |source| ModelError::Malformed { event: envelope.kind.clone().into_owned(), source };
    let event = match &*envelope.kind {
        "response.output_text.delta" => envelope.text_delta().map_err(malformed)?,
        "response.reasoning_summary_text.delta" => envelope.summary_delta().map_err(malformed)?,
        "response.reasoning_text.delta" => envelope.reasoning_delta().map_err(malformed)?,
        "response.reasoning_summary_part.added" => envelope.part_added().map_err(malformed)?,
        "response.output_item.added" => ModelEvent::ItemAdded(envelope.preview().map_err(malformed)?),
        "response.output_item.done" => ModelEvent::ItemDone(envelope.whole_item().map_err(malformed)?, None),
        "response.completed" => envelope.completed(),
        "response.failed" => return Err(envelope.failed()),
        "response.incomplete" => return Err(envelope.incomplete()),
        "error" => return Err(envelope.error_event()),
        "" if envelope.error.is_some() => return Err(envelope.error_event()),
        _ => return Ok(None),
    };
    Ok(Some(event))
}

/// The members that matter, still encoded: their types depend on the type of the event.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    item_id: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    summary_index: Option<&'a RawValue>,
    #[serde(borrow)]
    content_index: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

impl Envelope<'_> {
    fn text_delta(&self) -> Result<ModelEvent, serde_json::Error> {
        Ok(ModelEvent::TextDelta { item_id: self.item_id()?, delta: read("delta", self.delta)? })
    }

    fn summary_delta(&self) -> Result<ModelEvent, serde_json::Error> {
        let (item_id, index) = (self.item_id()?, read_index(self.summary_index)?);
        Ok(ModelEvent::ReasoningSummaryDelta { item_id, index, delta: read("delta", self.delta)? })
    }

    fn reasoning_delta(&self) -> Result<ModelEvent, serde_json::Error> {
        let (item_id, index) = (self.item_id()?, read_index(self.content_index)?);
        Ok(ModelEvent::ReasoningDelta { item_id, index, delta: read("delta", self.delta)? })
    }

    fn part_added(&self) -> Result<ModelEvent, serde_json::Error> {
        Ok(ModelEvent::ReasoningPartAdded { item_id: self.item_id()?, index: read_index(self.summary_index)? })
    }

    /// Some providers omit the item's id in deltas.
    fn item_id(&self) -> Result<String, serde_json::Error> {
        self.item_id.map_or_else(|| Ok(String::new()), |raw| serde_json::from_str(raw.get()))
    }

    /// An item that has just begun may lack members that it will have in the end; it is then kept unchanged.
    fn preview(&self) -> Result<ResponseItem, serde_json::Error> {
        read("item", self.item).or_else(|_| read("item", self.item).map(ResponseItem::Other))
    }

    /// A complete item. Repeating the request because of an invalid call would only get the same call again.
    fn whole_item(&self) -> Result<ResponseItem, serde_json::Error> {
        read("item", self.item).or_else(|error| {
            let item = loose(self.item);
            let is_named_call = text(&item["type"]).ends_with("_call") && !text(&item["call_id"]).is_empty();
            if is_named_call { Ok(ResponseItem::Other(item)) } else { Err(error) }
        })
    }

    /// The answer is complete, even if the event has invalid counts: repeating the request would be worse.
    fn completed(&self) -> ModelEvent {
        let response = self.response.and_then(|raw| serde_json::from_str::<Completed>(raw.get()).ok());
        let Completed { id, usage, text } = response.unwrap_or_default();
        let follows_schema = text.is_some_and(|text| text["format"]["type"] == "json_schema");
        let usage = usage.and_then(|usage| serde_json::from_value::<Usage>(usage).ok()).map(TokenUsage::from);
        ModelEvent::Completed { response_id: id.unwrap_or_default(), usage, follows_schema }
    }

    fn failed(&self) -> ModelError {
        let response = loose(self.response);
        error_of_code(text(&response["error"]["code"]), text(&response["error"]["message"]))
    }

    fn incomplete(&self) -> ModelError {
        let reason = match loose(self.response)["incomplete_details"]["reason"].as_str() {
            None | Some("") => "no reason given".to_owned(),
            Some(reason) => shorten(reason, 200).to_owned(),
        };
        ModelError::Incomplete { reason }
    }

    /// An `error` event has its code and message as members, or in a separate object.
    fn error_event(&self) -> ModelError {
        let (code, message, error) = (loose(self.code), loose(self.message), loose(self.error));
        let pick = |outer: &Value, inner: &str| [text(outer), text(&error[inner])].concat();
        error_of_code(&pick(&code, "code"), &pick(&message, "message"))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Completed {
    id: Option<String>,
    usage: Option<Value>,
    text: Option<Value>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: i64,
    input_tokens_details: Option<InputDetails>,
    #[serde(default)]
    output_tokens: i64,
    output_tokens_details: Option<OutputDetails>,
    total_tokens: Option<i64>,
}

#[derive(Deserialize)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: i64,
    #[serde(default)]
    cache_write_tokens: i64,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(default)]
    reasoning_tokens: i64,
}

impl From<Usage> for TokenUsage {
    fn from(usage: Usage) -> Self {
        let input = usage.input_tokens_details.as_ref();
        Self {
            input_tokens: usage.input_tokens,
            cached_input_tokens: input.map_or(0, |details| details.cached_tokens),
            cache_write_input_tokens: input.map_or(0, |details| details.cache_write_tokens),
            output_tokens: usage.output_tokens,
            reasoning_output_tokens: usage.output_tokens_details.map_or(0, |details| details.reasoning_tokens),
            total_tokens: usage.total_tokens.unwrap_or_else(|| usage.input_tokens.saturating_add(usage.output_tokens)),
        }
    }
}

fn read<'a, T: Deserialize<'a>>(name: &'static str, raw: Option<&'a RawValue>) -> Result<T, serde_json::Error> {
    serde_json::from_str(raw.ok_or_else(|| serde_json::Error::missing_field(name))?.get())
}

fn read_index(raw: Option<&RawValue>) -> Result<i64, serde_json::Error> {
    raw.map_or(Ok(0), |raw| serde_json::from_str(raw.get()))
}

/// A value that may be missing; of errors, only the text matters.
fn loose(raw: Option<&RawValue>) -> Value {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
