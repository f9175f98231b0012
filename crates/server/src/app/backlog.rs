//! Messages of a thread that are kept until its client adds a listener.
//!
//! Clients of v1 open a conversation, send a message and add a listener, in any order, and expect every message from
//! the beginning. The backlog is bounded: the oldest messages are dropped, with a warning to the client.

use std::collections::VecDeque;
use std::sync::Arc;

use codex_log::{Body, Event, QuestionId};

/// The maximum number of events that are kept.
const MOST_EVENTS: usize = 4096;
/// The approximate number of bytes that are kept.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// Events that wait for a listener.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    lost: u64,
}

impl Backlog {
    /// Adds an event, and drops the oldest ones if there are too many.
    pub(crate) fn push(&mut self, event: Arc<Event>) {
        self.bytes += event.weight();
        self.events.push_back(event);
        while self.events.len() > MOST_EVENTS || (self.bytes > MOST_BYTES && self.events.len() > 1) {
            self.next();
            self.lost += 1;
        }
    }

    /// The oldest event.
    pub(crate) fn next(&mut self) -> Option<Arc<Event>> {
        let event = self.events.pop_front()?;
        self.bytes = self.bytes.saturating_sub(event.weight());
        Some(event)
    }

    /// The number of events that were dropped since the last call.
    pub(crate) fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    /// Whether a question about a call was answered, or is no longer open.
    pub(crate) fn is_settled(&self, question: &QuestionId) -> bool {
        self.events.iter().any(|event| match &event.body {
            Body::Answered { question: answered, .. } => answered == question,
            Body::TurnEnded(_) => true,
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use codex_log::{Delta, ItemId};
    use codex_wire::ids::ThreadId;

    use super::*;

    fn text(text: &str) -> Arc<Event> {
        let delta = Delta::Text(text.into());
        let body = Body::ItemDelta { item: ItemId::new("a"), delta };
        Arc::new(Event { thread: ThreadId::fresh(), seq: codex_log::Seq::default(), at_ms: 0, turn: None, body })
    }

    #[test]
    fn the_oldest_goes_when_there_is_too_much() {
        let mut backlog = Backlog::default();
        for _ in 0..MOST_EVENTS + 3 {
            backlog.push(text("x"));
        }
        assert_eq!((backlog.events.len(), backlog.take_lost(), backlog.take_lost()), (MOST_EVENTS, 3, 0));
        let much = "x".repeat(MOST_BYTES);
        backlog.push(text(&much));
        backlog.push(text(&much));
        assert_eq!(backlog.events.len(), 1, "the newest stays, however large it is");
        assert!(backlog.next().is_some() && backlog.next().is_none());
        assert_eq!(backlog.bytes, 0);
    }
}
