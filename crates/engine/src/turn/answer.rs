//! The items of one answer while they grow: a client sees each start before it grows, and complete at most once. If the
//! answer breaks off, they never complete.
//!
//! Invariant: every answer ends, whatever the model sends: it fails when it has more items or bytes than any real one.

use std::hash::{DefaultHasher, Hash, Hasher};

use codex_log::{AgentMessage, Body, Delta, Failure, Item, ItemId, Reasoning, TurnId, WebSearch};
use codex_model::ModelEvent;
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::response::{ReasoningSummaryText, ResponseItem, WebSearchAction, WebSearchCall};

use super::Effect;

/// The maximum number of items of an answer.
pub(super) const MOST_ITEMS: usize = 4096;

/// The maximum number of bytes of an answer, including all deltas. A single event has at most 16 MiB.
const MOST_BYTES: usize = 128 * 1024 * 1024;

/// The size of an event without its text, so that the number of empty events is limited too.
const EVENT_BYTES: usize = 64;

/// The items of an answer that have started and are not complete.
#[derive(Debug)]
pub(super) struct AnswerItems {
    turn: TurnId,
    open: Vec<ItemId>,
    /// The number of items without an id of the provider; their ids are derived from the turn and this number.
    unnamed: u32,
    /// The number of items that were announced, and of those that are complete.
    counted: [usize; 2],
    /// The number of bytes received.
    bytes: usize,
}

impl AnswerItems {
    pub(super) fn new(turn: &TurnId) -> Self {
        Self { turn: turn.clone(), open: Vec::new(), unnamed: 0, counted: [0; 2], bytes: 0 }
    }

    /// Discards open items, because the answer is over.
    pub(super) fn close(&mut self) {
        self.open.clear();
        (self.counted, self.bytes) = ([0; 2], 0);
    }

    /// Counts an event of the answer. Returns an error if the answer has become too large.
    pub(super) fn count(&mut self, event: &ModelEvent) -> Option<Failure> {
        let text = match event {
            ModelEvent::ItemAdded(_) => {
                self.counted[0] += 1;
                0
            }
            ModelEvent::ItemDone(..) => {
                self.counted[1] += 1;
                0
            }
            ModelEvent::TextDelta { delta, .. }
            | ModelEvent::ReasoningSummaryDelta { delta, .. }
            | ModelEvent::ReasoningDelta { delta, .. } => delta.len(),
            ModelEvent::Opened { .. }
            | ModelEvent::Notice(_)
            | ModelEvent::ReasoningPartAdded { .. }
            | ModelEvent::Completed { .. } => 0,
        };
        self.weigh(text + EVENT_BYTES);
        let too_much = if self.counted.iter().any(|count| *count > MOST_ITEMS) {
            format!("{MOST_ITEMS} items")
        } else if self.bytes > MOST_BYTES {
            format!("{MOST_BYTES} bytes")
        } else {
            return None;
        };
        let message = format!("the model's answer has more than {too_much}");
        Some(Failure { message, hint: None, info: CodexErrorInfo::Other })
    }

    /// Counts the bytes of an item.
    pub(super) fn weigh(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Starts the item, if it is of a kind that clients see grow.
    pub(super) fn start(&mut self, item: &ResponseItem, effects: &mut Vec<Effect>) {
        let item = match item {
            ResponseItem::Message(message) if message.role == "assistant" => {
                Item::AgentMessage(AgentMessage::empty(self.name(message.id.as_deref())))
            }
            ResponseItem::Reasoning(reasoning) => Item::Reasoning(Reasoning::empty(self.name(Some(&reasoning.id)))),
            _ => return,
        };
        self.open.push(item.id().clone());
        effects.push(Effect::Emit(Body::ItemStarted(item)));
    }

    /// Finds the item that a delta belongs to, and starts it if the provider did not.
    pub(super) fn grow(&mut self, id: String, delta: &Delta, effects: &mut Vec<Effect>) -> ItemId {
        if let Some(open) = self.open.iter().find(|open| open.as_str() == id).or_else(|| self.only_open(&id)) {
            return open.clone();
        }
        let id = self.name(Some(&id));
        let item = match delta {
            Delta::Text(_) | Delta::Output { .. } => Item::AgentMessage(AgentMessage::empty(id.clone())),
            Delta::SummaryPart { .. } | Delta::Summary { .. } | Delta::Raw { .. } => {
                Item::Reasoning(Reasoning::empty(id.clone()))
            }
        };
        self.open.push(id.clone());
        effects.push(Effect::Emit(Body::ItemStarted(item)));
        id
    }

    /// Completes the item, and starts it first if the provider sent it complete.
    pub(super) fn complete(&mut self, item: &ResponseItem, effects: &mut Vec<Effect>) {
        let given = match item {
            ResponseItem::Message(message) => message.id.clone().unwrap_or_default(),
            ResponseItem::Reasoning(reasoning) => reasoning.id.clone(),
            _ => return,
        };
        let place = self.open.iter().position(|open| open.as_str() == given || given.is_empty());
        let id = if let Some(place) = place {
            self.open.remove(place)
        } else {
            self.start(item, effects);
            self.open.pop().unwrap_or_else(|| ItemId::new(given))
        };
        let item = match item {
            ResponseItem::Message(message) => Item::AgentMessage(AgentMessage { id, text: message.text() }),
            ResponseItem::Reasoning(reasoning) => Item::Reasoning(Reasoning {
                id,
                summary: reasoning
                    .summary
                    .iter()
                    .map(|ReasoningSummaryText::SummaryText { text }| text.clone())
                    .collect(),
                raw: reasoning.content.iter().flatten().map(|part| part.text().to_owned()).collect(),
            }),
            _ => return,
        };
        effects.push(Effect::Emit(Body::ItemCompleted(item)));
    }

    /// Shows a search. The search text is known only at its end.
    pub(super) fn search(&mut self, search: &WebSearchCall, effects: &mut Vec<Effect>) {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let query = match &search.action {
            Some(WebSearchAction::Search(query)) => text(&query.query),
            Some(WebSearchAction::OpenPage(page)) => text(&page.url),
            Some(WebSearchAction::FindInPage(find)) => text(&find.pattern),
            Some(WebSearchAction::Other(_)) | None => String::new(),
        };
        let item = Item::WebSearch(WebSearch { id: self.name(search.id.as_deref()), query });
        effects.push(Effect::Emit(Body::ItemStarted(item.clone())));
        effects.push(Effect::Emit(Body::ItemCompleted(item)));
    }

    /// A delta without an id belongs to the one open item.
    fn only_open(&self, id: &str) -> Option<&ItemId> {
        if id.is_empty() { self.open.last() } else { None }
    }

    fn name(&mut self, given: Option<&str>) -> ItemId {
        match given {
            Some(given) if !given.is_empty() => ItemId::new(given),
            _ => {
                self.unnamed += 1;
                ItemId::new(derived_id(self.turn.as_str(), self.unnamed))
            }
        }
    }
}

/// An id in the form of a UUID, which clients of earlier releases expect for items that the provider sent without one.
/// The same turn always derives the same ids.
fn derived_id(turn: &str, number: u32) -> String {
    let half = |part: u8| {
        let mut hasher = DefaultHasher::new();
        (turn, number, part).hash(&mut hasher);
        hasher.finish()
    };
    // Version 8 and the common variant: a UUID with application-defined bits.
    let (high, low) = (half(0) & !0xf000 | 0x8000, half(1) >> 2 | 1 << 63);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_ids_are_uuids_that_differ() {
        let ids = [derived_id("t1", 1), derived_id("t1", 2), derived_id("t2", 1)];
        for id in &ids {
            let groups: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(groups, [8, 4, 4, 4, 12], "{id}");
            assert!(id[14..].starts_with('8') && "89ab".contains(&id[19..20]), "{id}");
        }
        assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
        assert_eq!(ids[0], derived_id("t1", 1));
    }
}
