//! A message of the model.

use codex_wire::event::{AgentMessageEvent, EventMsg};
use codex_wire::text::Text;
use serde::{Deserialize, Serialize};

use super::{Item, ItemId};
use crate::draft::{Run, RunKind};

/// A message of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentMessage {
    pub id: ItemId,
    /// The text so far.
    pub text: Text,
}

impl AgentMessage {
    /// A message that has just begun.
    #[must_use]
    pub fn empty(id: ItemId) -> Self {
        Self { id, text: Text::default() }
    }

    pub(super) fn begun(&self) -> Self {
        Self::empty(self.id.clone())
    }

    pub(super) fn broken_off(&self, runs: &[Run]) -> Self {
        let text: String = Run::texts(runs, RunKind::Text).concat();
        Self { id: self.id.clone(), text: text.into() }
    }

    pub(super) fn stored_form(&self) -> StoredForm<'_> {
        StoredForm { id: self.id.as_str(), content: [StoredPart::Text { text: &self.text }] }
    }

    pub(super) fn message(&self) -> EventMsg {
        EventMsg::AgentMessage(AgentMessageEvent { message: self.text.clone() })
    }
}

impl From<AgentMessage> for Item {
    fn from(item: AgentMessage) -> Self {
        Self::AgentMessage(item)
    }
}

#[derive(Serialize)]
pub(crate) struct StoredForm<'a> {
    id: &'a str,
    content: [StoredPart<'a>; 1],
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum StoredPart<'a> {
    Text { text: &'a str },
}

#[derive(Deserialize)]
pub struct Stored {
    id: String,
    content: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: Option<String>,
}

impl From<Stored> for AgentMessage {
    fn from(stored: Stored) -> Self {
        let text = stored.content.into_iter().filter_map(|part| part.text).collect::<String>();
        Self { id: ItemId::new(stored.id), text: text.into() }
    }
}
