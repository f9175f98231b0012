//! What the model thought.

use codex_wire::event::{AgentReasoningEvent, AgentReasoningRawContentEvent, EventMsg};
use serde::Deserialize;

use super::{Item, ItemId};

/// What the model thought.
#[derive(Debug, Clone, PartialEq)]
pub struct Reasoning {
    /// Its name.
    pub id: ItemId,
    /// The summary, one text a part.
    pub summary: Vec<String>,
    /// The thoughts themselves, where the model shows them.
    pub raw: Vec<String>,
}

impl Reasoning {
    /// Thoughts that have just begun.
    #[must_use]
    pub fn empty(id: ItemId) -> Self {
        Self { id, summary: Vec::new(), raw: Vec::new() }
    }

    pub(super) fn begun(&self) -> Self {
        Self::empty(self.id.clone())
    }

    /// Each part of the summary by itself.
    pub(super) fn parts(self) -> impl Iterator<Item = Self> {
        let Self { id, summary, .. } = self;
        summary.into_iter().map(move |part| Self { id: id.clone(), summary: vec![part], raw: Vec::new() })
    }

    pub(super) fn title(&self) -> String {
        self.summary.join("\n\n")
    }

    pub(super) fn weight(&self) -> usize {
        self.summary.iter().chain(&self.raw).map(String::len).sum()
    }

    pub(super) fn messages(&self, wants_thoughts: bool, out: &mut Vec<EventMsg>) {
        let part = |text: &String| EventMsg::AgentReasoning(AgentReasoningEvent { text: text.clone() });
        out.extend(self.summary.iter().map(part));
        let thought =
            |text: &String| EventMsg::AgentReasoningRawContent(AgentReasoningRawContentEvent { text: text.clone() });
        out.extend(self.raw.iter().filter(|_| wants_thoughts).map(thought));
    }
}

impl From<Reasoning> for Item {
    fn from(item: Reasoning) -> Self {
        Self::Reasoning(item)
    }
}

#[derive(Deserialize)]
pub struct Stored {
    id: String,
    #[serde(default)]
    summary_text: Vec<String>,
    #[serde(default)]
    raw_content: Vec<String>,
}

impl From<Stored> for Reasoning {
    fn from(stored: Stored) -> Self {
        Self { id: ItemId::new(stored.id), summary: stored.summary_text, raw: stored.raw_content }
    }
}
