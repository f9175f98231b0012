//! The log of a thread in the dialect of `item/created` and `item/delta`: texts are items, everything else is a
//! `codex/event/*` with members in camelCase.
//!
//! No release has sent this; clients were written from a description. They draw a card for each call that begins, so
//! each one ends here, whatever happens to it; they take the whole text at the end of a message; and they stop at a
//! structured member that is `null`, so members without a value are left out.

mod created;
mod event;

use std::collections::HashSet;

use codex_log::{Body, Event, Item, ItemId, Outcome, Status};
use codex_protocol::v2::notification::ServerNotification;
use codex_wire::event::EventMsg;

use self::created::CreatedItems;
pub use self::event::NamedEvent;
use crate::eq::{self, Vocabulary};

/// A message of the dialect.
#[derive(Debug)]
pub enum ItemsMessage {
    /// `item/created` or `item/delta`.
    Item(Box<ServerNotification>),
    /// A `codex/event/*`.
    Event(NamedEvent),
}

/// One thread as a client of this dialect sees it.
#[derive(Debug, Default)]
pub struct ItemsProjector {
    created: CreatedItems,
    /// The calls whose card is open, oldest first.
    open: Vec<Item>,
    /// The searches that have begun for the client: those whose query was known.
    searches: HashSet<ItemId>,
}

impl ItemsProjector {
    /// Appends the messages of an event.
    pub fn project(&mut self, event: &Event, raw_items: bool, out: &mut Vec<ItemsMessage>) {
        out.extend(self.created.project(event).map(|item| ItemsMessage::Item(Box::new(item))));
        match &event.body {
            // These are items here.
            Body::PlanUpdated(_) | Body::ImageViewed { .. } => {}
            Body::ItemStarted(item) => self.started(event, item, out),
            Body::Answered { answer, item: Some(item), .. } if answer.allows() => self.started(event, item, out),
            Body::ItemCompleted(item) => self.completed(event, item, out),
            Body::ItemInterrupted(item) => self.break_off(event, item, out),
            Body::TurnEnded(outcome) => self.turn_ended(event, outcome, out),
            _ => {
                for msg in queue_events(event, raw_items) {
                    if !is_item(&msg) {
                        out.push(ItemsMessage::Event(NamedEvent::new(event, &msg)));
                    }
                }
            }
        }
    }

    fn started(&mut self, event: &Event, item: &Item, out: &mut Vec<ItemsMessage>) {
        if item.is_served_by_provider() {
            // The query of a search may not be known yet.
            if !item.title().is_empty() {
                self.searches.insert(item.id().clone());
                out.push(ItemsMessage::Event(NamedEvent::search_begin(item)));
            }
            return;
        }
        // A command begins once it may run.
        let is_early = item.command().is_some() && item.status() == Some(Status::AwaitingApproval);
        if item.status().is_some() && !is_early {
            self.open.retain(|open| open.id() != item.id());
            self.open.push(item.clone());
            add_events(event, out);
        }
    }

    fn completed(&mut self, event: &Event, item: &Item, out: &mut Vec<ItemsMessage>) {
        if item.status() == Some(Status::Declined) || is_text(item) {
            return self.break_off(event, item, out);
        }
        if item.is_served_by_provider() && !self.searches.remove(item.id()) {
            out.push(ItemsMessage::Event(NamedEvent::search_begin(item)));
        }
        self.close(item.id());
        add_events(event, out);
    }

    /// Ends the card of a call that has not ended by itself, if it is open, or tells what there is of a text.
    fn break_off(&mut self, event: &Event, item: &Item, out: &mut Vec<ItemsMessage>) {
        if item.is_thought() {
            return out.extend(NamedEvent::thought(&item.title()).map(ItemsMessage::Event));
        }
        let is_told = item.answer().is_some_and(|text| !text.is_empty());
        if is_told || self.searches.remove(item.id()) || self.close(item.id()) {
            end(event, item, out);
        }
    }

    fn close(&mut self, id: &ItemId) -> bool {
        let before = self.open.len();
        self.open.retain(|open| open.id() != id);
        self.open.len() < before
    }

    fn turn_ended(&mut self, event: &Event, outcome: &Outcome, out: &mut Vec<ItemsMessage>) {
        // A terminal may outlive its turn, and ends later.
        let (outlives, over): (Vec<_>, Vec<_>) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|item| item.command().is_some_and(|command| command.terminal.is_some()));
        self.open = outlives;
        self.searches.clear();
        for item in over {
            end(event, &item, out);
        }
        for msg in queue_events(event, false) {
            out.push(ItemsMessage::Event(NamedEvent::turn_ended(event, &msg, outcome)));
        }
    }
}

fn add_events(event: &Event, out: &mut Vec<ItemsMessage>) {
    let events = queue_events(event, false);
    out.extend(events.iter().map(|msg| ItemsMessage::Event(NamedEvent::new(event, msg))));
}

/// The messages of an event on the queue. Commands begin there once they may run, as in releases that had no items;
/// of a compaction the queue of those releases tells in a message, which would be shown as an answer.
fn queue_events(event: &Event, raw_items: bool) -> Vec<EventMsg> {
    let items = matches!(event.body, Body::Compacted(_));
    let mut events = Vec::new();
    eq::project(event, Vocabulary { items, raw_reasoning: false, raw_items }, &mut events);
    events
}

/// Whether `item/created` and `item/delta` carry the same content.
fn is_item(event: &EventMsg) -> bool {
    matches!(
        event,
        EventMsg::AgentMessageDelta(_)
            | EventMsg::AgentReasoningDelta(_)
            | EventMsg::AgentReasoningRawContentDelta(_)
            | EventMsg::AgentReasoningSectionBreak(_)
    )
}

/// Whether the item is a message or a thought of the model.
fn is_text(item: &Item) -> bool {
    item.answer().is_some() || item.is_thought()
}

/// Adds the end of an item that has none of its own.
fn end(event: &Event, item: &Item, out: &mut Vec<ItemsMessage>) {
    let body = Body::ItemCompleted(item.ended());
    let Event { thread, seq, at_ms, turn, .. } = event;
    add_events(&Event { thread: *thread, seq: *seq, at_ms: *at_ms, turn: turn.clone(), body }, out);
}

#[cfg(test)]
mod tests;
