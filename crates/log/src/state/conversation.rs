//! The conversation with the model, folded from events.

use std::collections::HashMap;

use codex_wire::conversation_item::ConversationItem;
use codex_wire::response::Message;

use super::item_role::{self, ItemRole};
use crate::{Compacted, Record, RolledBack, TurnId, request_item};

/// The number of bytes of the user's messages that are kept after a summary that does not record the remaining
/// conversation.
const CARRIED_BYTES: usize = 80_000;

/// The start of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HistoryStart {
    /// The beginning of the thread.
    #[default]
    Start,
    /// The complete result of the last compaction.
    Replacement,
    /// A summary of a release that did not record the remaining conversation: the user's messages and the summary. The
    /// initial messages of a conversation have to be inserted before them.
    Summary,
}

/// The start of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnBegin {
    /// The index of its first item.
    pub item: usize,
    /// Its id, if the log contains it.
    pub id: Option<TurnId>,
}

/// A call of the model without an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenCall<'a> {
    /// The id that its output must have.
    pub call_id: &'a str,
    /// Its index among the items.
    pub item: usize,
}

/// The conversation with the model. Items are only appended, unless a compaction or a rollback replaces them, so each
/// request starts with the bytes of the previous one.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    items: Vec<ConversationItem>,
    begins: HistoryStart,
    /// The number of items before the first input.
    preface: usize,
    /// The number of items that a compaction left.
    replaced: usize,
    /// The indices of the user's messages since then.
    said: Vec<usize>,
    /// Messages of the user without a known item.
    user_texts: Vec<String>,
    /// The starts of the turns since then, including turns without input.
    turns: Vec<TurnBegin>,
    /// The latest message with the role of the user that no event refers to yet.
    unclaimed: Option<usize>,
    /// The number of items when the model was last asked; `None` if it was not asked since they were replaced.
    sent: Option<usize>,
    /// Calls without an output, with their indices.
    open: HashMap<String, usize>,
}

impl Conversation {
    /// All items, for a request.
    #[must_use]
    pub fn items(&self) -> &[ConversationItem] {
        &self.items
    }

    /// The start of the items.
    #[must_use]
    pub fn begins(&self) -> HistoryStart {
        self.begins
    }

    /// The items before the first input.
    #[must_use]
    pub fn preface(&self) -> &[ConversationItem] {
        &self.items[..self.preface]
    }

    /// The number of items that a compaction left.
    #[must_use]
    pub fn replaced(&self) -> usize {
        self.replaced
    }

    /// The indices of the user's messages since then, in turns.
    #[must_use]
    pub fn said(&self) -> &[usize] {
        &self.said
    }

    /// The starts of the turns since then.
    #[must_use]
    pub fn turns(&self) -> &[TurnBegin] {
        &self.turns
    }

    /// Calls without an output, in order.
    #[must_use]
    pub fn open_calls(&self) -> Vec<OpenCall<'_>> {
        let open = self.open.iter().map(|(call_id, item)| OpenCall { call_id, item: *item });
        let mut calls: Vec<_> = open.collect();
        calls.sort_by_key(|call| call.item);
        calls
    }

    /// The messages with the role of the user, each with its index: those of turns, and those before the first turn.
    #[must_use]
    pub fn said_messages(&self) -> Vec<(usize, Message)> {
        let first_turn = || self.turns.first().map_or(self.items.len(), |turn| turn.item);
        let before_turns = if self.replaced > 0 { self.replaced } else { first_turn() };
        let before = (self.preface..before_turns).filter(|place| !self.said.contains(place));
        let message = |place| Some((place, item_role::user_message(self.items.get(place)?)?));
        let carried = before.filter_map(message);
        carried.chain(self.said.iter().copied().filter_map(message)).collect()
    }

    /// Appends an item, and returns its role; `None` if it is not for the model.
    pub(super) fn append<'a>(&mut self, record: &'a Record) -> Option<ItemRole<'a>> {
        let (role, request) = ItemRole::of(record)?;
        let place = self.items.len();
        if place == self.preface && item_role::is_preface(record, &role) {
            self.preface += 1;
        }
        self.items.push(request.unwrap_or_else(|| record.json.clone()));
        match &role {
            ItemRole::User => self.unclaimed = Some(place),
            ItemRole::Call(id) => drop(self.open.insert(id.clone().into_owned(), place)),
            ItemRole::Output(id) => drop(self.open.remove(&**id)),
            ItemRole::Assistant | ItemRole::Developer | ItemRole::OtherMessage | ItemRole::Other => {}
        }
        Some(role)
    }

    /// Appends an item.
    pub fn record(&mut self, record: &Record) {
        self.append(record);
    }

    /// Records that the latest message with the role of the user was written by the user, and returns its index.
    pub fn claim(&mut self) -> Option<usize> {
        let place = self.unclaimed.take()?;
        self.said.push(place);
        Some(place)
    }

    /// Records a message of the user that no item contains.
    pub(super) fn hear(&mut self, text: String) {
        self.user_texts.push(text);
    }

    /// Marks the start of a turn. Everything before it stays, whatever the end of the turn.
    pub(super) fn begin_turn(&mut self, item: Option<usize>, id: Option<TurnId>) {
        let item = item.unwrap_or(self.items.len());
        self.turns.push(TurnBegin { item, id });
        self.unclaimed = None;
        self.sent = Some(self.items.len());
    }

    /// Records that the model is asked now.
    pub fn mark_sent(&mut self) {
        self.sent = Some(self.items.len());
    }

    /// Records that later items stay, whatever the end of the turn.
    pub(super) fn keep_unsent(&mut self) {
        self.sent = None;
    }

    /// Removes the items since the model was last asked, except messages of the user.
    pub(super) fn forget_unsent(&mut self) {
        let Some(sent) = self.sent.filter(|sent| *sent < self.items.len()) else { return };
        let mut kept = Vec::new();
        for place in self.said.iter_mut().filter(|place| **place >= sent) {
            kept.extend(self.items.get(*place).cloned());
            *place = sent + kept.len() - 1;
        }
        self.items.truncate(sent);
        self.items.append(&mut kept);
        self.open.retain(|_, place| *place < sent);
        self.preface = self.preface.min(sent);
        self.unclaimed = None;
    }

    /// The effect of rolling back the last turns; `None` if fewer turns are known since the last summary.
    #[must_use]
    pub fn last_turns(&self, turns: usize) -> Option<RolledBack> {
        let TurnBegin { item, id } = self.turns.get(self.turns.len().checked_sub(turns)?)?;
        let said = self.said.iter().filter(|place| *place >= item).count();
        Some(RolledBack { turns, said, first: id.clone() })
    }

    /// Removes the last turns: from the one that is named, or from the start of this many of the user's messages.
    pub(super) fn roll_back(&mut self, gone: &RolledBack) {
        let named = |first| self.turns.iter().rposition(|turn| turn.id.as_ref() == Some(first));
        let kept = match (gone.first.as_ref().and_then(named), gone.said) {
            (Some(turn), _) => {
                let begin = self.turns[turn].item;
                self.turns.truncate(turn);
                begin
            }
            (None, 0) => return,
            (None, said) => {
                let kept = self.said.len().checked_sub(said).map_or(self.replaced, |left| self.said[left]);
                self.turns.retain(|turn| turn.item < kept);
                kept
            }
        };
        self.said.retain(|place| *place < kept);
        self.items.truncate(kept);
        self.open.retain(|_, place| *place < kept);
        self.preface = self.preface.min(kept);
        self.unclaimed = None;
        self.mark_sent();
    }

    /// Replaces the conversation by the result of a compaction.
    pub fn compact(&mut self, compacted: &Compacted) {
        if let Some(replacement) = &compacted.replacement {
            return self.replace(replacement);
        }
        let mut room = CARRIED_BYTES;
        let mut texts: Vec<String> = self.said_messages().iter().map(|(_, message)| message.text().into()).collect();
        texts.append(&mut self.user_texts);
        let newest = texts.iter().rev().take_while(|text| {
            let fits = text.len() <= room;
            room = room.saturating_sub(text.len());
            fits
        });
        let carried = newest.count();
        let texts = texts[texts.len() - carried..].iter().map(String::as_str).chain([compacted.summary.as_str()]);
        let items = texts.filter_map(request_item::user_message).collect();
        *self = Self { items, begins: HistoryStart::Summary, ..Self::default() };
        self.replaced = self.items.len();
        self.mark_sent();
    }

    /// Replaces the conversation by other items.
    pub(super) fn replace(&mut self, items: &[ConversationItem]) {
        *self = Self { begins: HistoryStart::Replacement, ..Self::default() };
        for item in items {
            self.record(&Record::stored(item.clone()));
        }
        self.replaced = self.items.len();
        self.unclaimed = None;
        self.mark_sent();
    }

    /// Records that the initial items are there, although the log has none after a summary.
    pub fn complete(&mut self) {
        if self.begins == HistoryStart::Summary {
            self.begins = HistoryStart::Replacement;
        }
    }

    /// Inserts the initial items of a conversation before all others.
    pub fn put_before(&mut self, told: Vec<ConversationItem>) {
        let turns = self.turns.iter_mut().map(|turn| &mut turn.item);
        let places = self.said.iter_mut().chain(turns).chain(self.open.values_mut());
        for place in places.chain(&mut self.unclaimed).chain(&mut self.sent) {
            *place += told.len();
        }
        self.preface += told.len();
        self.replaced += told.len();
        self.items.splice(0..0, told);
    }
}
