//! Events that a projection needs when it joins a running turn.
//!
//! A subscriber that joins or reconnects receives the few events that later ones refer to: the start of the turn, the
//! open items, and the last messages. A projection processes them without output.
//!
//! Invariant: memory is bounded by the number of open items. Completed items of a turn are dropped.

use std::sync::Arc;

use crate::{Body, Delta, Event, ItemId};

/// The maximum number of chunks of output that are kept for the beginning of one character.
const MOST_PIECES: usize = 3;

/// The events of a running turn that later ones refer to, oldest first.
#[derive(Debug, Clone, Default)]
pub struct OpenItems {
    events: Vec<Arc<Event>>,
}

impl OpenItems {
    /// Processes one event.
    pub fn take(&mut self, event: &Arc<Event>) {
        match &event.body {
            Body::TurnStarted { .. } => self.events = vec![Arc::clone(event)],
            Body::TurnEnded(_) => self.events = Vec::new(),
            Body::ItemStarted(_) | Body::Answered { .. } => self.events.push(Arc::clone(event)),
            Body::ItemDelta { item, delta: Delta::Output { bytes, .. } } => self.printed(event, item, bytes),
            // The first delta shows that an item has grown at all.
            Body::ItemDelta { item, .. } if !self.events.iter().any(|event| is_piece_of(event, item)) => {
                self.events.push(Arc::clone(event));
            }
            Body::ItemCompleted(item) => {
                let is_said = item.answer().is_some();
                let is_over = |event: &Event| is_about(event, item.id()) || (is_said && is_message(event));
                self.events.retain(|event| !is_over(event));
                if is_said {
                    self.events.push(Arc::clone(event));
                }
            }
            _ => {}
        }
    }

    #[must_use]
    pub fn into_events(self) -> Vec<Arc<Event>> {
        self.events
    }

    /// Keeps the output of a command if it ends within a character, because the rest is still to come.
    fn printed(&mut self, event: &Arc<Event>, item: &ItemId, bytes: &[u8]) {
        let kept = self.events.iter().filter(|event| is_piece_of(event, item)).count();
        let goes_on = (1..MOST_PIECES).contains(&kept) && bytes.iter().all(|byte| is_continuation(*byte));
        if !goes_on {
            self.events.retain(|event| !is_piece_of(event, item));
        }
        if goes_on || ends_within_character(bytes) {
            self.events.push(Arc::clone(event));
        }
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

fn ends_within_character(bytes: &[u8]) -> bool {
    let Some(lead) = bytes.iter().rposition(|byte| !is_continuation(*byte)) else { return false };
    std::str::from_utf8(&bytes[lead..]).is_err_and(|error| error.error_len().is_none())
}

fn is_piece_of(event: &Event, id: &ItemId) -> bool {
    matches!(&event.body, Body::ItemDelta { item, .. } if item == id)
}

fn is_about(event: &Event, id: &ItemId) -> bool {
    match &event.body {
        Body::ItemStarted(item) => item.id() == id,
        Body::Answered { question, .. } => question.item() == id,
        _ => is_piece_of(event, id),
    }
}

/// Whether it is a complete message; the last one of a turn is repeated at the turn's end.
fn is_message(event: &Event) -> bool {
    matches!(&event.body, Body::ItemCompleted(_))
}

#[cfg(test)]
mod tests {
    use codex_wire::event::ExecOutputStream;
    use codex_wire::ids::ThreadId;

    use super::*;
    use crate::{AgentMessage, Item, Outcome, Seq};

    fn open_items(bodies: Vec<Body>) -> Vec<u64> {
        let mut open_items = OpenItems::default();
        for (seq, body) in (0..).zip(bodies) {
            open_items.take(&Arc::new(Event {
                thread: ThreadId::fresh(),
                seq: Seq::new(seq),
                at_ms: 0,
                turn: None,
                body,
            }));
        }
        open_items.into_events().iter().map(|event| event.seq.number()).collect()
    }

    fn message(id: &str) -> Item {
        Item::AgentMessage(AgentMessage::empty(ItemId::new(id)))
    }

    fn piece(id: &str) -> Body {
        Body::ItemDelta { item: ItemId::new(id), delta: Delta::Text("x".into()) }
    }

    fn printed(bytes: &[u8]) -> Body {
        let delta = Delta::Output { stream: ExecOutputStream::Stdout, bytes: bytes.to_vec() };
        Body::ItemDelta { item: ItemId::new("command"), delta }
    }

    #[test]
    fn only_open_items_and_the_last_message_are_kept() {
        let began = || Body::TurnStarted { context_window: None };
        let started = |id| Body::ItemStarted(message(id));
        let completed = |id| Body::ItemCompleted(message(id));
        assert_eq!(open_items(vec![began(), started("a"), piece("a"), piece("a")]), [0, 1, 2]);
        assert_eq!(open_items(vec![began(), started("a"), piece("a"), completed("a")]), [0, 3]);
        assert_eq!(open_items(vec![began(), completed("a"), started("b"), completed("b")]), [0, 3]);
        let ended = Body::TurnEnded(Outcome::Completed { last_message: None, bookmark: None });
        assert_eq!(open_items(vec![began(), started("a"), ended]), [0; 0]);
    }

    #[test]
    fn output_is_kept_until_its_last_character_is_complete() {
        assert_eq!(open_items(vec![printed(b"a\xe2\x82")]), [0]);
        assert_eq!(open_items(vec![printed(b"a\xe2"), printed(b"\x82")]), [0, 1]);
        assert_eq!(open_items(vec![printed(b"a\xe2\x82"), printed(b"\xacb")]), [0; 0]);
        assert_eq!(open_items(vec![printed(b"a\xe2\x82"), printed(b"\xacb\xe2")]), [1]);
        assert_eq!(open_items(vec![printed(b"whole")]), [0; 0]);
        let garbage = (0..100).map(|_| printed(b"\x80"));
        assert!(open_items(std::iter::once(printed(b"\xf0")).chain(garbage).collect()).len() <= MOST_PIECES);
    }
}
