//! An answer of the Responses API, whose items are marked with their maker where only that can read them.

use std::collections::VecDeque;
use std::sync::Arc;

use codex_wire::conversation_item::ItemOrigin;
use codex_wire::response::ResponseItem;
use serde_json::json;

use crate::decode::decode;
use crate::{ModelError, ModelEvent};

/// Reads one answer.
#[derive(Debug)]
pub(crate) struct ResponsesDecoder {
    maker: ItemOrigin,
    /// Whether the provider keeps items, which then go by their names.
    stores: bool,
}

impl ResponsesDecoder {
    pub(crate) fn new(maker: ItemOrigin, stores: bool) -> Self {
        Self { maker, stores }
    }

    pub(crate) fn decode(&self, data: &str, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        match decode(data)? {
            Some(ModelEvent::ItemDone(item, _)) => {
                let origin = self.origin(&item);
                events.push_back(ModelEvent::ItemDone(item, origin));
            }
            event => events.extend(event),
        }
        Ok(())
    }

    fn origin(&self, item: &ResponseItem) -> Option<Arc<ItemOrigin>> {
        let opaque = name(item).filter(|name| self.stores && !name.is_empty()).map(|name| json!({"id": name}));
        let is_encrypted = match item {
            ResponseItem::Reasoning(reasoning) => reasoning.encrypted_content.is_some(),
            ResponseItem::Compaction(_) => true,
            _ => false,
        };
        (is_encrypted || opaque.is_some()).then(|| Arc::new(ItemOrigin { opaque, ..self.maker.clone() }))
    }
}

/// The provider's name for an item.
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
