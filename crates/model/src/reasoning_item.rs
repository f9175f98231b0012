//! A reasoning item that grows delta by delta, for APIs without items.

use std::collections::VecDeque;

use codex_wire::provider_traits::Thoughts;
use codex_wire::response::{Reasoning, ReasoningContent, ReasoningSummaryText, ResponseItem};

use crate::ModelEvent;

/// A reasoning item that is not complete yet.
#[derive(Debug)]
pub(crate) struct ReasoningItem {
    form: Thoughts,
    text: String,
}

impl ReasoningItem {
    /// Begins an item.
    pub(crate) fn begin(form: Thoughts, events: &mut VecDeque<ModelEvent>) -> Self {
        events.push_back(ModelEvent::ItemAdded(item(Vec::new(), None)));
        if form == Thoughts::Summary {
            events.push_back(ModelEvent::ReasoningPartAdded { item_id: String::new(), index: 0 });
        }
        Self { form, text: String::new() }
    }

    /// Appends a delta.
    pub(crate) fn append(&mut self, delta: String, events: &mut VecDeque<ModelEvent>) {
        self.text.push_str(&delta);
        let (item_id, index) = (String::new(), 0);
        events.push_back(match self.form {
            Thoughts::Summary => ModelEvent::ReasoningSummaryDelta { item_id, index, delta },
            Thoughts::Raw => ModelEvent::ReasoningDelta { item_id, index, delta },
        });
    }

    /// The complete item.
    pub(crate) fn end(self) -> ResponseItem {
        match self.form {
            _ if self.text.is_empty() => item(Vec::new(), None),
            Thoughts::Summary => item(vec![ReasoningSummaryText::SummaryText { text: self.text }], None),
            Thoughts::Raw => item(Vec::new(), Some(vec![ReasoningContent::ReasoningText { text: self.text }])),
        }
    }
}

fn item(summary: Vec<ReasoningSummaryText>, content: Option<Vec<ReasoningContent>>) -> ResponseItem {
    ResponseItem::Reasoning(Reasoning { id: String::new(), summary, content, encrypted_content: None })
}
