//! A subscriber's queue of events.
//!
//! The engine never waits for a client: pushing always succeeds. The memory of a client that does not read is
//! proportional to the thread's own, because deltas of one item at the end of a long queue are merged into one; nothing
//! else is ever merged or dropped.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use codex_log::{Body, Event};

use crate::encodings::Encodings;

/// The number of queued events above which deltas are merged.
const MERGE_ABOVE: usize = 256;
/// The size at which a merged delta is complete and the next one starts, so that messages stay small.
const MERGED_BYTES: usize = 32 * 1024;

/// The read end, held by a client's connection.
#[derive(Debug)]
pub struct Feed {
    shared: Arc<Shared>,
}

/// The write end, held by the session.
#[derive(Debug)]
pub struct FeedWriter {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Notify,
}

#[derive(Debug)]
struct Queue {
    events: VecDeque<Published>,
    closed: bool,
    /// The number of queued events above which deltas are merged.
    merge_above: usize,
}

impl Default for Queue {
    fn default() -> Self {
        Self { events: VecDeque::new(), closed: false, merge_above: MERGE_ABOVE }
    }
}

/// An event as subscribers receive it.
#[derive(Debug, Clone)]
pub struct Published {
    pub event: Arc<Event>,
    /// Its encoded forms; `None` if there is no other subscriber.
    pub encodings: Option<Arc<Encodings>>,
}

impl From<Arc<Event>> for Published {
    fn from(event: Arc<Event>) -> Self {
        Self { event, encodings: None }
    }
}

/// Creates both ends of a queue.
#[must_use]
pub fn feed() -> (FeedWriter, Feed) {
    let shared = Arc::new(Shared::default());
    (FeedWriter { shared: Arc::clone(&shared) }, Feed { shared })
}

impl Feed {
    /// Waits for the next event; `None` when the thread has ended and everything was read.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        self.next_published().await.map(|published| published.event)
    }

    /// Waits for the next event like [`Feed::next`], with its encoded forms.
    pub async fn next_published(&mut self) -> Option<Published> {
        loop {
            // `notify_one` leaves a permit when nobody waits, so an event between the check and the wait is not missed.
            let closed = {
                let mut queue = self.shared.lock();
                if let Some(event) = queue.events.pop_front() {
                    return Some(event);
                }
                queue.closed
            };
            if closed {
                return None;
            }
            self.shared.arrived.notified().await;
        }
    }

    /// Merges deltas from the first one on that waits, for a reader who takes them at intervals.
    pub fn merge_early(&mut self) {
        self.shared.lock().merge_above = 0;
    }

    /// Inserts events at the front of the queue.
    pub fn put_before(&mut self, events: Vec<Arc<Event>>) {
        let mut queue = self.shared.lock();
        for event in events.into_iter().rev() {
            queue.events.push_front(event.into());
        }
        drop(queue);
        self.shared.arrived.notify_one();
    }

    /// Takes the next event, if there is one.
    pub fn try_next(&mut self) -> Option<Arc<Event>> {
        self.try_next_published().map(|published| published.event)
    }

    /// Takes the next event if one waits, with its encoded forms.
    pub fn try_next_published(&mut self) -> Option<Published> {
        self.shared.lock().events.pop_front()
    }
}

impl FeedWriter {
    /// Whether the read end still exists.
    #[must_use]
    pub fn is_read(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }

    /// Queues an event. Returns false if nobody will read it any more.
    #[expect(clippy::must_use_candidate, reason = "a reader who left is also noticed with the next event")]
    pub fn push(&self, event: &Arc<Event>) -> bool {
        self.push_shared(event, None)
    }

    /// Queues an event that other readers get too. Returns false when nobody will read it any more.
    #[expect(clippy::must_use_candidate, reason = "a reader who left is also noticed with the next event")]
    pub fn push_shared(&self, event: &Arc<Event>, encodings: Option<&Arc<Encodings>>) -> bool {
        if !self.is_read() {
            return false;
        }
        let mut queue = self.shared.lock();
        if queue.events.len() < queue.merge_above || !merge(&mut queue.events, event) {
            queue.events.push_back(Published { event: Arc::clone(event), encodings: encodings.cloned() });
        }
        drop(queue);
        self.shared.arrived.notify_one();
        true
    }
}

impl Drop for FeedWriter {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.arrived.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        // A panic cannot have left the queue inconsistent: each change is one push or pop.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Appends a delta to the last queued event if that is a delta of the same kind, part and item.
fn merge(events: &mut VecDeque<Published>, event: &Arc<Event>) -> bool {
    let Body::ItemDelta { item, delta } = &event.body else { return false };
    let Some(last) = events.back_mut() else { return false };
    match &last.event.body {
        Body::ItemDelta { item: last_item, delta: last_delta } if last_item == item && last_delta.continues(delta) => {}
        _ => return false,
    }
    let is_full = last.event.weight() >= MERGED_BYTES;
    // From here on it is this reader's own.
    last.encodings = None;
    let last = Arc::make_mut(&mut last.event);
    let Body::ItemDelta { delta: last_delta, .. } = &mut last.body else { return false };
    if is_full {
        last_delta.shrink_to_fit();
    } else {
        last.seq = event.seq;
        last_delta.append(delta);
    }
    !is_full
}

#[cfg(test)]
mod tests {
    use codex_wire::ids::ThreadId;

    use codex_log::Seq;

    use super::*;
    use codex_log::{Delta, ItemId};

    fn event(seq: u64, body: Body) -> Arc<Event> {
        Arc::new(Event { thread: ThreadId::fresh(), seq: Seq::new(seq), at_ms: 0, turn: None, body })
    }

    fn delta(seq: u64, item: &str, text: &str) -> Arc<Event> {
        event(seq, Body::ItemDelta { item: ItemId::new(item), delta: Delta::Text(text.into()) })
    }

    fn drain(feed: &mut Feed) -> Vec<Arc<Event>> {
        std::iter::from_fn(|| feed.try_next()).collect()
    }

    #[test]
    fn a_client_that_does_not_read_gets_merged_deltas_and_every_other_event() {
        let (writer, mut feed) = feed();
        for seq in 0..10_000 {
            assert!(writer.push(&delta(seq, "a", "x")));
        }
        writer.push(&event(10_000, Body::Warning { message: "w".into() }));
        writer.push(&delta(10_001, "b", "y"));
        let events = drain(&mut feed);
        assert_eq!(events.len(), MERGE_ABOVE + 2);
        let text: usize = events
            .iter()
            .map(|event| match &event.body {
                Body::ItemDelta { delta: Delta::Text(text), .. } => text.len(),
                _ => 0,
            })
            .sum();
        assert_eq!(text, 10_001);
        assert_eq!(events.last().map(|event| event.seq), Some(Seq::new(10_001)));
    }

    #[test]
    fn a_reader_at_intervals_gets_one_delta_for_each() {
        let (writer, mut feed) = feed();
        feed.merge_early();
        for seq in 0..3 {
            writer.push(&delta(seq, "a", "x"));
        }
        writer.push(&event(3, Body::Warning { message: "w".into() }));
        writer.push(&delta(4, "a", "y"));
        let numbers: Vec<Seq> = drain(&mut feed).iter().map(|event| event.seq).collect();
        assert_eq!(numbers, [2, 3, 4].map(Seq::new));
    }

    #[test]
    fn merged_deltas_are_no_large_messages() {
        let (writer, mut feed) = feed();
        let piece = "word ".repeat(200);
        for seq in 0..2000 {
            writer.push(&delta(seq, "a", &piece));
        }
        let events = drain(&mut feed);
        assert!(events.len() < MERGE_ABOVE + 100, "{}", events.len());
        assert!(events.iter().all(|event| event.weight() < MERGED_BYTES + 2 * piece.len()));
        let texts = events.iter().map(|event| match &event.body {
            Body::ItemDelta { delta: Delta::Text(text), .. } => text.as_str(),
            other => panic!("expected a delta, got {other:?}"),
        });
        assert!(texts.collect::<String>() == piece.repeat(2000), "nothing is lost");
    }

    #[test]
    fn a_dropped_reader_is_noticed() {
        let (writer, feed) = feed();
        drop(feed);
        assert!(!writer.push(&delta(0, "a", "x")));
    }

    #[tokio::test]
    async fn the_feed_ends_after_its_last_event() {
        let (writer, mut feed) = feed();
        writer.push(&delta(0, "a", "x"));
        drop(writer);
        assert!(feed.next().await.is_some());
        assert!(feed.next().await.is_none());
    }
}
