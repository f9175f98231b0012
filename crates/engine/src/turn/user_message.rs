//! A message of the user on its way into the conversation.

use std::sync::Arc;

use codex_log::{Body, Item, ItemId, Record};
use codex_wire::input::UserInput;
use codex_wire::response::{Message, ResponseItem};

/// A message of the user, with its images already read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UserMessage {
    /// The name of the item.
    pub(crate) id: ItemId,
    /// The client's own name for it.
    pub(crate) key: Option<Arc<str>>,
    /// As it came, for clients.
    pub(crate) content: Vec<UserInput>,
    /// As the model gets it.
    pub(crate) message: Message,
    /// Whether clients see it.
    pub(crate) is_echoed: bool,
}

impl UserMessage {
    /// The events that put it into the conversation.
    pub(crate) fn bodies(self) -> Vec<Body> {
        let item = Item::UserMessage(codex_log::UserMessage { id: self.id, key: self.key, content: self.content });
        let record = Record::new(ResponseItem::Message(self.message)).ok().map(Body::Recorded);
        let echoed = self.is_echoed.then(|| [Body::ItemStarted(item.clone()), Body::ItemCompleted(item)]);
        record.into_iter().chain(echoed.into_iter().flatten()).collect()
    }
}
