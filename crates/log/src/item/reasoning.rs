//! Reasoning of the model.

use std::borrow::Cow;

use codex_wire::event::{AgentReasoningEvent, AgentReasoningRawContentEvent, EventMsg};
use serde::{Deserialize, Serialize};

use super::{Item, ItemId};
use crate::draft::{Run, RunKind};

/// Reasoning of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Reasoning {
    pub id: ItemId,
    /// The summary, one text per part.
    pub summary: Vec<String>,
    /// The raw reasoning, if the model shows it.
    pub raw: Vec<String>,
}

impl Reasoning {
    /// Reasoning that has just begun.
    #[must_use]
    pub fn empty(id: ItemId) -> Self {
        Self { id, summary: Vec::new(), raw: Vec::new() }
    }

    pub(super) fn begun(&self) -> Self {
        Self::empty(self.id.clone())
    }

    pub(super) fn broken_off(&self, runs: &[Run]) -> Self {
        let parts = |kind| Run::texts(runs, kind).into_iter().map(Cow::into_owned).collect();
        Self { id: self.id.clone(), summary: parts(RunKind::Summary), raw: parts(RunKind::Raw) }
    }

    pub(super) fn stored_form(&self) -> StoredForm<'_> {
        StoredForm { id: self.id.as_str(), summary_text: &self.summary, raw_content: &self.raw }
    }

    /// Each part of the summary as a separate item.
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

#[derive(Serialize)]
pub(crate) struct StoredForm<'a> {
    id: &'a str,
    summary_text: &'a [String],
    raw_content: &'a [String],
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
