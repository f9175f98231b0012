//! The feed of a client that shows deltas at a certain pace.

use std::time::Duration;

use codex_log::Body;
use codex_thread::{Feed, Published};
use tokio::time::{Instant, sleep_until};

/// A feed whose deltas come at intervals, if there is one; those in between are merged.
pub(crate) struct PacedFeed {
    feed: Feed,
    interval: Option<Duration>,
    /// The time before which no further event is waited for.
    until: Option<Instant>,
}

impl PacedFeed {
    pub(crate) fn new(mut feed: Feed, interval: Option<Duration>) -> Self {
        if interval.is_some() {
            feed.merge_early();
        }
        Self { feed, interval, until: None }
    }

    /// Waits for the next event; `None` when the thread has ended and everything was read. Cancel safe.
    pub(crate) async fn next_published(&mut self) -> Option<Published> {
        if let Some(until) = self.until {
            sleep_until(until).await;
            self.until = None;
        }
        let published = self.feed.next_published().await?;
        let interval = self.interval.filter(|_| matches!(published.event.body, Body::ItemDelta { .. }));
        self.until = interval.map(|interval| Instant::now() + interval);
        Some(published)
    }

    /// Takes the next event if one waits.
    pub(crate) fn try_next_published(&mut self) -> Option<Published> {
        self.feed.try_next_published()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use codex_log::{Delta, Event, ItemId, Seq};
    use codex_thread::feed;
    use codex_wire::ids::ThreadId;

    use super::*;

    fn event(seq: u64, body: Body) -> Arc<Event> {
        Arc::new(Event { thread: ThreadId::fresh(), seq: Seq::new(seq), at_ms: 0, turn: None, body })
    }

    fn delta(seq: u64) -> Arc<Event> {
        event(seq, Body::ItemDelta { item: ItemId::new("a"), delta: Delta::Text("x".into()) })
    }

    #[tokio::test(start_paused = true)]
    async fn deltas_between_two_intervals_are_one_and_nothing_else_waits_long() {
        let (writer, feed) = feed();
        let interval = Duration::from_millis(30);
        let mut paced = PacedFeed::new(feed, Some(interval));
        let begin = Instant::now();
        writer.push(&delta(1));
        assert_eq!(paced.next_published().await.map(|published| published.event.seq), Some(Seq::new(1)));
        assert_eq!(begin.elapsed(), Duration::ZERO, "the first one comes at once");
        for seq in 2..10 {
            writer.push(&delta(seq));
        }
        writer.push(&event(10, Body::Warning { message: "w".into() }));
        writer.push(&event(11, Body::Warning { message: "w".into() }));
        for seq in [9, 10, 11] {
            assert_eq!(paced.next_published().await.map(|published| published.event.seq), Some(Seq::new(seq)));
        }
        assert_eq!(begin.elapsed(), interval * 2, "one wait behind each delta");
    }
}
