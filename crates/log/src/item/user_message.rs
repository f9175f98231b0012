//! A message of the user.

use std::sync::Arc;

use codex_wire::event::{EventMsg, UserMessageEvent};
use codex_wire::input::UserInput;
use serde::{Deserialize, Serialize};

use super::{Item, ItemId};

/// A message of the user.
#[derive(Debug, Clone, PartialEq)]
pub struct UserMessage {
    pub id: ItemId,
    /// The client's id for it.
    pub key: Option<Arc<str>>,
    /// The content, as it was sent.
    pub content: Vec<UserInput>,
}

impl UserMessage {
    /// The message of the user in an event of the queue.
    #[must_use]
    pub fn of(id: ItemId, key: Option<Arc<str>>, said: UserMessageEvent) -> Self {
        let UserMessageEvent { message, images, text_elements } = said;
        let images = images.into_iter().flatten().map(|image_url| UserInput::Image { image_url });
        let text = UserInput::Text { text: message, text_elements };
        Self { id, key, content: std::iter::once(text).chain(images).collect() }
    }

    /// The texts of its content.
    #[must_use]
    pub fn texts(&self) -> Vec<&str> {
        let texts = self.content.iter().filter_map(|input| match input {
            UserInput::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    pub(super) fn message(&self) -> EventMsg {
        EventMsg::UserMessage(UserInput::said(&self.content))
    }

    pub(super) fn stored_form(&self) -> StoredForm<'_> {
        StoredForm { id: self.id.as_str(), content: &self.content }
    }

    pub(super) fn title(&self) -> String {
        UserInput::said(&self.content).message
    }

    pub(super) fn weight(&self) -> usize {
        let piece = |input: &UserInput| match input {
            UserInput::Text { text, .. } => text.len(),
            UserInput::Image { image_url } => image_url.len(),
            _ => 0,
        };
        self.content.iter().map(piece).sum()
    }
}

impl From<UserMessage> for Item {
    fn from(item: UserMessage) -> Self {
        Self::UserMessage(item)
    }
}

#[derive(Serialize)]
pub(crate) struct StoredForm<'a> {
    id: &'a str,
    content: &'a [UserInput],
}

#[derive(Deserialize)]
pub struct Stored {
    id: String,
    content: Vec<UserInput>,
}

impl From<Stored> for UserMessage {
    fn from(stored: Stored) -> Self {
        Self { id: ItemId::new(stored.id), key: None, content: stored.content }
    }
}
