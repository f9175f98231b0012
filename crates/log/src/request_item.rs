//! Items of the conversation, as they go into a request.

use std::sync::Arc;

use codex_wire::conversation_item::ConversationItem;
use codex_wire::response::{Message, ResponseItem};
use serde_json::{Map, Value};

use crate::line::ItemHead;

/// The form of an item for requests, none within if it is as it should be; none at all if it is not for the model.
///
/// Names that a provider gave and notes that a release made for itself are left out: other providers refuse them.
pub(crate) fn for_request(item: &str, head: &ItemHead<'_>) -> Option<Option<ConversationItem>> {
    if head.kind == "ghost_snapshot" {
        return None;
    }
    if head.id.is_none() && head.passthrough.is_none() {
        return Some(None);
    }
    let mut members: Map<String, Value> = serde_json::from_str(item).ok()?;
    members.shift_remove("id");
    members.shift_remove("internal_chat_message_metadata_passthrough");
    let json = serde_json::value::to_raw_value(&members).ok()?;
    Some(Some(json.into()))
}

/// A message in the user's name, as it goes into a request.
pub(crate) fn user_message(text: &str) -> Option<ConversationItem> {
    ConversationItem::new(&Arc::new(ResponseItem::Message(Message::user(text)))).ok()
}
