//! What a thread has said last, for readers that were cut off and come back.
//!
//! Invariant: memory is bounded. What is kept is an unbroken run up to the last event, so whoever is told "these are
//! the events after yours" has missed none.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::Event;
use crate::open_items::OpenItems;

/// The last events of a thread.
#[derive(Debug, Default)]
pub struct ReplayBuffer {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// What the events before these have left open.
    forgotten: OpenItems,
    /// How many bytes are kept; none of it if 0.
    limit: usize,
    /// The number of the next event.
    next: u64,
}

impl ReplayBuffer {
    /// Keeps so many bytes from here on.
    pub fn keep(&mut self, limit: usize) {
        self.limit = limit;
        self.shrink();
    }

    /// Adds an event that was published.
    pub fn push(&mut self, event: &Arc<Event>) {
        self.next = event.seq + 1;
        if self.limit > 0 {
            self.bytes += event.weight();
            self.events.push_back(Arc::clone(event));
            self.shrink();
        } else {
            self.forgotten.take(event);
        }
    }

    /// The number of the event that was published last.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        self.next.checked_sub(1)
    }

    /// The events after one; none if some of them are forgotten, or if there was no such event.
    #[must_use]
    pub fn after(&self, seq: u64) -> Option<impl Iterator<Item = &Arc<Event>>> {
        let first = self.events.front().map_or(self.next, |event| event.seq);
        let is_known = seq < self.next && seq + 1 >= first;
        is_known.then(|| self.events.iter().filter(move |event| event.seq > seq))
    }

    /// What was open after an event, or after the last one.
    #[must_use]
    pub fn standing(&self, after: Option<u64>) -> Vec<Arc<Event>> {
        let mut standing = self.forgotten.clone();
        for event in self.events.iter().take_while(|event| after.is_none_or(|after| event.seq <= after)) {
            standing.take(event);
        }
        standing.into_events()
    }

    fn shrink(&mut self) {
        while self.bytes > self.limit
            && let Some(event) = self.events.pop_front()
        {
            self.bytes -= event.weight();
            self.forgotten.take(&event);
        }
    }
}

#[cfg(test)]
mod tests {
    use codex_wire::ids::ThreadId;

    use super::*;
    use crate::Body;
    use crate::weight::EVENT_BYTES;

    fn warning(seq: u64, bytes: usize) -> Arc<Event> {
        let text = "x".repeat(bytes);
        let body = Body::DiffChanged(text.into());
        Arc::new(Event { thread: ThreadId::fresh(), seq, at_ms: 0, turn: None, body })
    }

    fn seqs(recent: &ReplayBuffer, after: u64) -> Option<Vec<u64>> {
        recent.after(after).map(|events| events.map(|event| event.seq).collect())
    }

    #[test]
    fn what_is_kept_is_an_unbroken_run_to_the_last_event() {
        let mut recent = ReplayBuffer::default();
        recent.keep(3 * (EVENT_BYTES + 100));
        for seq in 0..5 {
            recent.push(&warning(seq, 100));
        }
        assert_eq!(recent.last(), Some(4));
        assert_eq!(seqs(&recent, 4), Some(vec![]));
        assert_eq!(seqs(&recent, 2), Some(vec![3, 4]));
        assert_eq!(seqs(&recent, 1), Some(vec![2, 3, 4]));
        assert_eq!(seqs(&recent, 0), None, "event 1 is forgotten");
        assert_eq!(seqs(&recent, 5), None, "there was no such event");
    }

    #[test]
    fn an_event_larger_than_the_room_is_not_kept() {
        let mut recent = ReplayBuffer::default();
        recent.keep(EVENT_BYTES + 100);
        recent.push(&warning(0, 10));
        recent.push(&warning(1, 1000));
        assert_eq!(seqs(&recent, 0), None);
        assert_eq!(seqs(&recent, 1), Some(vec![]));
        assert_eq!(recent.bytes, 0);
    }

    #[test]
    fn without_room_only_the_last_number_is_known() {
        let mut recent = ReplayBuffer::default();
        assert_eq!(recent.last(), None);
        recent.push(&warning(0, 1));
        recent.push(&warning(1, 1));
        assert_eq!((recent.last(), seqs(&recent, 1), seqs(&recent, 0)), (Some(1), Some(vec![]), None));
    }

    #[test]
    fn what_was_open_is_known_whether_its_event_is_kept_or_not() {
        let began = |seq| {
            let body = Body::TurnStarted { context_window: None };
            Arc::new(Event { thread: ThreadId::fresh(), seq, at_ms: 0, turn: None, body })
        };
        let standing = |recent: &ReplayBuffer, after| -> Vec<u64> {
            recent.standing(after).iter().map(|event| event.seq).collect()
        };
        for limit in [0, EVENT_BYTES, 100 * EVENT_BYTES] {
            let mut recent = ReplayBuffer::default();
            recent.keep(limit);
            recent.push(&began(0));
            recent.push(&warning(1, 1));
            assert_eq!(standing(&recent, Some(1)), [0], "{limit}");
            recent.push(&began(2));
            assert_eq!(standing(&recent, None), [2], "{limit}");
        }
        let mut recent = ReplayBuffer::default();
        recent.keep(100 * EVENT_BYTES);
        recent.push(&began(0));
        recent.push(&began(1));
        assert_eq!((standing(&recent, Some(0)), standing(&recent, Some(1))), (vec![0], vec![1]));
    }
}
