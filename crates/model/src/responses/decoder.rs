//! An answer of the Responses API. Items are marked with their provider if only that can read them.

use std::collections::VecDeque;
use std::sync::Arc;

use codex_wire::conversation_item::ItemOrigin;
use codex_wire::response::ResponseItem;
use serde_json::json;

use crate::answer_tools::{AnswerTools, invalid_answer};
use crate::decode::decode;
use crate::error_response::shorten;
use crate::{ModelError, ModelEvent};

/// The maximum number of calls of one answer.
const MOST_CALLS: usize = 512;

/// Decodes one answer of the Responses API.
#[derive(Debug)]
pub struct ResponsesDecoder {
    origin: ItemOrigin,
    /// Whether the provider stores items, so that requests can refer to them by id.
    stores: bool,
    /// The calls that are not complete yet: id and tool.
    open: Vec<(String, String)>,
    /// The ids of complete calls.
    whole: Vec<String>,
    /// The tools that the provider knows by other names.
    tools: AnswerTools,
}

impl ResponsesDecoder {
    /// Creates a decoder for one answer.
    #[must_use]
    pub fn new(origin: ItemOrigin, stores: bool) -> Self {
        Self { origin, stores, open: Vec::new(), whole: Vec::new(), tools: AnswerTools::default() }
    }

    /// The same, for a provider that has no namespaces.
    #[must_use]
    pub(crate) fn without_namespaces(self, tools: AnswerTools) -> Self {
        Self { tools, ..self }
    }

    /// Decodes one event.
    ///
    /// # Errors
    /// When it is invalid, reports that the answer failed, or makes a call ambiguous.
    pub fn decode(&mut self, data: &str, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        match decode(data)? {
            Some(ModelEvent::ItemAdded(item)) => {
                self.begin_call(&item)?;
                events.push_back(ModelEvent::ItemAdded(item));
            }
            Some(ModelEvent::ItemDone(mut item, _)) => {
                self.end_call(&item)?;
                if let ResponseItem::FunctionCall(call) = &mut item {
                    self.tools.named(call);
                }
                let origin = self.origin(&item);
                events.push_back(ModelEvent::ItemDone(item, origin));
            }
            Some(completed @ ModelEvent::Completed { .. }) => {
                // An answer that lost a call is not complete, and the model would wait for an output that never comes.
                if let Some((_, tool)) = self.open.first() {
                    return Err(invalid_answer(format!("the call of {} never closes", shorten(tool, 80))));
                }
                events.push_back(completed);
            }
            event => events.extend(event),
        }
        Ok(())
    }

    fn begin_call(&mut self, item: &ResponseItem) -> Result<(), ModelError> {
        let Some((id, tool)) = call(item) else { return Ok(()) };
        if self.open.len() == MOST_CALLS {
            return Err(invalid_answer(format!("the model made more than {MOST_CALLS} calls at once")));
        }
        self.open.push((id.to_owned(), tool.to_owned()));
        Ok(())
    }

    fn end_call(&mut self, item: &ResponseItem) -> Result<(), ModelError> {
        let Some((id, _)) = call(item) else { return Ok(()) };
        if self.whole.iter().any(|known| known == id) {
            return Err(invalid_answer(format!("the id {:?} is used for two calls", shorten(id, 80))));
        }
        if self.whole.len() == MOST_CALLS {
            return Err(invalid_answer(format!("the model made more than {MOST_CALLS} calls at once")));
        }
        // Not every provider announces a call with its final id.
        let place = self.open.iter().position(|(open, _)| open == id);
        if let Some(place) = place.or_else(|| self.open.len().checked_sub(1)) {
            self.open.remove(place);
        }
        self.whole.push(id.to_owned());
        Ok(())
    }

    fn origin(&self, item: &ResponseItem) -> Option<Arc<ItemOrigin>> {
        let opaque = name(item).filter(|name| self.stores && !name.is_empty()).map(|name| json!({"id": name}));
        let is_encrypted = match item {
            ResponseItem::Reasoning(reasoning) => reasoning.encrypted_content.is_some(),
            ResponseItem::Compaction(_) => true,
            _ => false,
        };
        (is_encrypted || opaque.is_some()).then(|| Arc::new(ItemOrigin { opaque, ..self.origin.clone() }))
    }
}

/// The id and the tool of a call that this program answers.
fn call(item: &ResponseItem) -> Option<(&str, &str)> {
    match item {
        ResponseItem::FunctionCall(call) => Some((&call.call_id, &call.name)),
        ResponseItem::CustomToolCall(call) => Some((&call.call_id, &call.name)),
        _ => None,
    }
}

/// The provider's id of an item.
fn name(item: &ResponseItem) -> Option<&str> {
    match item {
        ResponseItem::Message(message) => message.id.as_deref(),
        ResponseItem::Reasoning(reasoning) => Some(&reasoning.id),
        ResponseItem::LocalShellCall(call) => call.id.as_deref(),
        ResponseItem::FunctionCall(call) => call.id.as_deref(),
        ResponseItem::CustomToolCall(call) => call.id.as_deref(),
        ResponseItem::WebSearchCall(call) => call.id.as_deref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
