//! Items of the conversation in the form of a request.

use std::sync::Arc;

use codex_wire::conversation_item::ConversationItem;
use codex_wire::response::{Message, ResponseItem};
use serde_json::{Map, Value};

use crate::line::ItemHead;

/// Whether an item is for the model.
pub(crate) fn is_for_model(head: &ItemHead<'_>) -> bool {
    head.kind != "ghost_snapshot"
}

/// The form of an item for requests; `None` if it needs no change.
///
/// Ids of a provider and metadata of a release are left out, because other providers reject them.
pub(crate) fn for_request(item: &str, head: &ItemHead<'_>) -> Option<ConversationItem> {
    if head.id.is_none() && head.passthrough.is_none() {
        return None;
    }
    let mut members: Map<String, Value> = serde_json::from_str(item).ok()?;
    members.shift_remove("id");
    members.shift_remove("internal_chat_message_metadata_passthrough");
    serde_json::value::to_raw_value(&members).ok().map(Into::into)
}

/// A message of the user in the form of a request.
pub(crate) fn user_message(text: &str) -> Option<ConversationItem> {
    ConversationItem::new(&Arc::new(ResponseItem::Message(Message::user(text)))).ok()
}
