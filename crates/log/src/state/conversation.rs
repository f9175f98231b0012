//! The conversation with the model, as events tell it.

use std::collections::HashMap;

use codex_wire::conversation_item::ConversationItem;
use codex_wire::response::Message;

use super::item_role::{self, ItemRole};
use crate::{Compacted, Record, RolledBack, TurnId, request_item};

/// How many bytes of what the user said are carried over a summary that does not tell what remains.
const CARRIED_BYTES: usize = 80_000;

/// The start of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HistoryStart {
    /// The beginning of the thread.
    #[default]
    Start,
    /// The complete result of the last compaction.
    Replacement,
    /// A summary by a release that did not record what else it left: the user's messages and the summary. The initial
    /// messages of a conversation have to be put in front.
    Summary,
}

/// Where a turn begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnBegin {
    /// The place of its first item.
    pub item: usize,
    /// Its name, where the log gives it.
    pub id: Option<TurnId>,
}

/// A call of the model that got no output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenCall<'a> {
    /// The name that its output must bear.
    pub call_id: &'a str,
    /// Its place among the items.
    pub item: usize,
}

/// The conversation with the model. Items are only ever appended, unless something takes the place of all of them or
/// turns are taken back, so that each request starts with the bytes of the one before.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    items: Vec<ConversationItem>,
    begins: HistoryStart,
    /// How many items were there before anything was said.
    preface: usize,
    /// How many items a compaction put there.
    replaced: usize,
    /// The places of what the user said since then.
    said: Vec<usize>,
    /// Messages of the user without a known item.
    user_texts: Vec<String>,
    /// Where the turns since then begin, those included in which nobody said anything.
    turns: Vec<TurnBegin>,
    /// The newest message in the user's name that no event has claimed yet.
    unclaimed: Option<usize>,
    /// How many items there were when the model was asked last; none if it was not since something took their place.
    sent: Option<usize>,
    /// Calls without output, with their places.
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

    /// The items that were there before anything was said.
    #[must_use]
    pub fn preface(&self) -> &[ConversationItem] {
        &self.items[..self.preface]
    }

    /// How many items a compaction put there.
    #[must_use]
    pub fn replaced(&self) -> usize {
        self.replaced
    }

    /// The places of what the user said since then, in turns.
    #[must_use]
    pub fn said(&self) -> &[usize] {
        &self.said
    }

    /// Where the turns since then begin.
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

    /// The messages in the user's name, each with its place: what was said in turns, and what was there before them.
    #[must_use]
    pub fn said_messages(&self) -> Vec<(usize, Message)> {
        let first_turn = || self.turns.first().map_or(self.items.len(), |turn| turn.item);
        let before_turns = if self.replaced > 0 { self.replaced } else { first_turn() };
        let before = (self.preface..before_turns).filter(|place| !self.said.contains(place));
        let message = |place| Some((place, item_role::user_message(self.items.get(place)?)?));
        let carried = before.filter_map(message);
        carried.chain(self.said.iter().copied().filter_map(message)).collect()
    }

    /// Appends an item, and returns what it is; none if it is not for the model.
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

    /// Notes that the newest message in the user's name is what the user said, and returns its place.
    pub fn claim(&mut self) -> Option<usize> {
        let place = self.unclaimed.take()?;
        self.said.push(place);
        Some(place)
    }

    /// Notes what the user said though no item holds it.
    pub(super) fn hear(&mut self, text: String) {
        self.user_texts.push(text);
    }

    /// Marks the start of a turn. Everything before it stays, however the turn ends.
    pub(super) fn begin_turn(&mut self, item: Option<usize>, id: Option<TurnId>) {
        let item = item.unwrap_or(self.items.len());
        self.turns.push(TurnBegin { item, id });
        self.unclaimed = None;
        self.sent = Some(self.items.len());
    }

    /// Notes that the model is asked now.
    pub fn mark_sent(&mut self) {
        self.sent = Some(self.items.len());
    }

    /// Notes that what comes now stays, however the turn ends.
    pub(super) fn keep_unsent(&mut self) {
        self.sent = None;
    }

    /// Forgets what came after the model was asked last, all but what the user said.
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

    /// The effect of rolling back the last turns; none if fewer turns are known since the last summary.
    #[must_use]
    pub fn last_turns(&self, turns: usize) -> Option<RolledBack> {
        let TurnBegin { item, id } = self.turns.get(self.turns.len().checked_sub(turns)?)?;
        let said = self.said.iter().filter(|place| *place >= item).count();
        Some(RolledBack { turns, said, first: id.clone() })
    }

    /// Forgets the last turns: from the one that is named, or from the last so many things that the user said.
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

    /// Starts over from what a compaction left.
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

    /// Starts over from other items.
    pub(super) fn replace(&mut self, items: &[ConversationItem]) {
        *self = Self { begins: HistoryStart::Replacement, ..Self::default() };
        for item in items {
            self.record(&Record::stored(item.clone()));
        }
        self.replaced = self.items.len();
        self.unclaimed = None;
        self.mark_sent();
    }

    /// Puts items before all others, which a conversation begins with before anything is said.
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
