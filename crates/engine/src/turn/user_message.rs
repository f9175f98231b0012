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
    /// Messages that the model gets before it, and clients never see.
    pub(crate) context: Vec<Message>,
}

impl UserMessage {
    /// The events that put it into the conversation.
    pub(crate) fn bodies(self) -> Vec<Body> {
        let item = Item::UserMessage(codex_log::UserMessage { id: self.id, key: self.key, content: self.content });
        let messages = self.context.into_iter().chain([self.message]);
        let records = messages.filter_map(|message| Record::new(ResponseItem::Message(message)).ok());
        let echoed = self.is_echoed.then(|| [Body::ItemStarted(item.clone()), Body::ItemCompleted(item)]);
        records.map(Body::Recorded).chain(echoed.into_iter().flatten()).collect()
    }
}
