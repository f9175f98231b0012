//! Items of the conversation, as they go into a request.

use std::sync::Arc;

use codex_wire::response::{Message, ResponseItem};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::line::ItemHead;

/// An item as it goes into a request; none if it is not for the model.
///
/// Names that a provider gave and notes that a release made for itself are left out: other providers refuse them.
pub fn for_request(item: &RawValue, head: &ItemHead<'_>) -> Option<Arc<RawValue>> {
    if head.kind == "ghost_snapshot" {
        return None;
    }
    if head.id.is_none() && head.passthrough.is_none() {
        return Some(Arc::from(item.to_owned()));
    }
    let mut members: Map<String, Value> = serde_json::from_str(item.get()).ok()?;
    members.shift_remove("id");
    members.shift_remove("internal_chat_message_metadata_passthrough");
    serde_json::value::to_raw_value(&members).ok().map(Arc::from)
}

/// A message in the user's name, as it goes into a request.
pub fn user_message(text: &str) -> Option<Arc<RawValue>> {
    serde_json::value::to_raw_value(&ResponseItem::Message(Message::user(text))).ok().map(Arc::from)
}
