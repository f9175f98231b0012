//! The latest events of a thread, for subscribers that reconnect.
//!
//! Invariant: memory is bounded. The buffer is an unbroken run up to the last event, so a subscriber that receives the
//! events after its own has missed none.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::open_items::OpenItems;
use crate::{Event, Seq};

/// The latest events of a thread.
#[derive(Debug, Default)]
pub struct ReplayBuffer {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// The items that earlier events left open.
    forgotten: OpenItems,
    /// The number of bytes that are kept; with 0, no event is kept.
    limit: usize,
    /// The number of the event before these, or the position of the log when it was loaded.
    before: Seq,
    /// The number of the last event, or the position of the log when it was loaded.
    last: Seq,
    /// Whether some of the events since the log was loaded were dropped.
    has_forgotten: bool,
}

impl ReplayBuffer {
    /// The buffer of a log that is loaded with this many bytes of lines.
    #[must_use]
    pub fn at(position: u64) -> Self {
        Self { before: Seq::at(position), last: Seq::at(position), ..Self::default() }
    }

    /// The buffer of the same log after it was opened again. Its numbers go on from those that were given here, even if no
    /// line was added.
    #[must_use]
    pub fn after_reopening(self, reopened: Self) -> Self {
        let last = self.last.max(reopened.last);
        Self { before: last, last, ..reopened }
    }

    /// Keeps this many bytes from here on.
    pub fn keep(&mut self, limit: usize) {
        self.limit = limit;
        self.shrink();
    }

    /// Adds a published event.
    pub fn push(&mut self, event: &Arc<Event>) {
        self.last = event.seq;
        if self.limit > 0 {
            self.bytes += event.weight();
            self.events.push_back(Arc::clone(event));
            self.shrink();
        } else {
            self.forget(event);
        }
    }

    /// The number of the event that was published last.
    #[must_use]
    pub fn last(&self) -> Seq {
        self.last
    }

    /// The position of the log when it was loaded, if every event since then is in the buffer.
    #[must_use]
    pub fn whole_since(&self) -> Option<Seq> {
        (!self.has_forgotten).then_some(self.before)
    }

    /// The events after one; `None` if some of them were dropped, or if there was no such event.
    #[must_use]
    pub fn after(&self, seq: Seq) -> Option<impl Iterator<Item = &Arc<Event>>> {
        let is_known = (self.before..=self.last).contains(&seq);
        is_known.then(|| self.events.iter().filter(move |event| event.seq > seq))
    }

    /// The items that were open after an event, or after the last one.
    #[must_use]
    pub fn open_items(&self, after: Option<Seq>) -> Vec<Arc<Event>> {
        let mut open_items = self.forgotten.clone();
        for event in self.events.iter().take_while(|event| after.is_none_or(|after| event.seq <= after)) {
            open_items.take(event);
        }
        open_items.into_events()
    }

    fn shrink(&mut self) {
        while self.bytes > self.limit
            && let Some(event) = self.events.pop_front()
        {
            self.bytes -= event.weight();
            self.forget(&event);
        }
    }

    fn forget(&mut self, event: &Arc<Event>) {
        self.forgotten.take(event);
        self.before = event.seq;
        self.has_forgotten = true;
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
        Arc::new(Event { thread: ThreadId::fresh(), seq: Seq::new(seq), at_ms: 0, turn: None, body })
    }

    fn seqs(recent: &ReplayBuffer, after: u64) -> Option<Vec<u64>> {
        recent.after(Seq::new(after)).map(|events| events.map(|event| event.seq.number()).collect())
    }

    #[test]
    fn the_buffer_is_an_unbroken_run_to_the_last_event() {
        let mut recent = ReplayBuffer::default();
        recent.keep(3 * (EVENT_BYTES + 100));
        for seq in 1..6 {
            recent.push(&warning(seq, 100));
        }
        assert_eq!(recent.last(), Seq::new(5));
        assert_eq!(seqs(&recent, 5), Some(vec![]));
        assert_eq!(seqs(&recent, 3), Some(vec![4, 5]));
        assert_eq!(seqs(&recent, 2), Some(vec![3, 4, 5]));
        assert_eq!(seqs(&recent, 1), None, "event 2 is forgotten");
        assert_eq!(seqs(&recent, 6), None, "there was no such event");
        assert_eq!(recent.whole_since(), None);
    }

    #[test]
    fn numbers_need_not_follow_each_other() {
        let mut recent = ReplayBuffer::at(10);
        recent.keep(2 * (EVENT_BYTES + 100));
        let base = Seq::at(10).number();
        assert_eq!((recent.last(), seqs(&recent, base)), (Seq::at(10), Some(vec![])));
        recent.push(&warning(base + 1, 100));
        recent.push(&warning(Seq::at(90).number(), 100));
        assert_eq!(recent.whole_since(), Some(Seq::at(10)));
        assert_eq!(seqs(&recent, base), Some(vec![base + 1, Seq::at(90).number()]));
        assert_eq!(seqs(&recent, base + 5), Some(vec![Seq::at(90).number()]), "it was never told, and missed nothing");
        assert_eq!(seqs(&recent, base - 1), None, "that was before the log was loaded");
        recent.push(&warning(Seq::at(90).number() + 1, 100));
        assert_eq!((recent.whole_since(), seqs(&recent, base)), (None, None));
    }

    #[test]
    fn an_event_larger_than_the_room_is_not_kept() {
        let mut recent = ReplayBuffer::default();
        recent.keep(EVENT_BYTES + 100);
        recent.push(&warning(1, 10));
        recent.push(&warning(2, 1000));
        assert_eq!(seqs(&recent, 1), None);
        assert_eq!(seqs(&recent, 2), Some(vec![]));
        assert_eq!(recent.bytes, 0);
    }

    #[test]
    fn without_room_only_the_last_number_is_known() {
        let mut recent = ReplayBuffer::default();
        assert_eq!(recent.last(), Seq::default());
        recent.push(&warning(1, 1));
        recent.push(&warning(2, 1));
        assert_eq!((recent.last(), seqs(&recent, 2), seqs(&recent, 1)), (Seq::new(2), Some(vec![]), None));
    }

    #[test]
    fn open_items_are_known_whether_stored_or_not() {
        let began = |seq| {
            let body = Body::TurnStarted { context_window: None };
            Arc::new(Event { thread: ThreadId::fresh(), seq: Seq::new(seq), at_ms: 0, turn: None, body })
        };
        let open_items = |recent: &ReplayBuffer, after: Option<u64>| -> Vec<u64> {
            recent.open_items(after.map(Seq::new)).iter().map(|event| event.seq.number()).collect()
        };
        for limit in [0, EVENT_BYTES, 100 * EVENT_BYTES] {
            let mut recent = ReplayBuffer::default();
            recent.keep(limit);
            recent.push(&began(0));
            recent.push(&warning(1, 1));
            assert_eq!(open_items(&recent, Some(1)), [0], "{limit}");
            recent.push(&began(2));
            assert_eq!(open_items(&recent, None), [2], "{limit}");
        }
        let mut recent = ReplayBuffer::default();
        recent.keep(100 * EVENT_BYTES);
        recent.push(&began(0));
        recent.push(&began(1));
        assert_eq!((open_items(&recent, Some(0)), open_items(&recent, Some(1))), (vec![0], vec![1]));
    }
}
