//! The queue of events between a connection and the program that reads them.
//!
//! Invariant: a program that does not read costs a bounded amount of memory and misses no end and no question. Deltas
//! that wait are merged, and beyond a bound they are left out; the end of their item carries the whole text.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::event::Event;
use crate::transcript::Message;

/// The most bytes of deltas that wait.
const DELTA_BYTES: usize = 4 * 1024 * 1024;
/// The most events that wait; further ones of no thread are left out.
const MOST_EVENTS: usize = 10_000;
/// The number of queued events that are searched for an earlier delta of the same item.
const LOOK_BACK: usize = 32;

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<Event>,
    delta_bytes: usize,
    left_out: u64,
    is_closed: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Feed(Arc<(Mutex<Queue>, Notify)>);

/// Events in the order in which the server told them.
#[derive(Debug)]
pub struct Events(Feed);

impl Feed {
    pub(crate) fn events(&self) -> Events {
        Events(self.clone())
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, event: Event) {
        self.queue().push(event);
        self.0.1.notify_one();
    }

    pub(crate) fn push_message(&self, message: Message) {
        if let Some(event) = message.event() {
            self.push(event);
        }
    }

    pub(crate) fn close(&self) {
        self.queue().is_closed = true;
        self.0.1.notify_one();
    }
}

impl Queue {
    fn push(&mut self, event: Event) {
        match event {
            Event::Delta(delta) => {
                if self.delta_bytes + delta.text.len() > DELTA_BYTES {
                    self.left_out += 1;
                    return;
                }
                self.delta_bytes += delta.text.len();
                for waiting in self.events.iter_mut().rev().take(LOOK_BACK) {
                    match waiting {
                        Event::Delta(earlier) if earlier.continues_with(&delta) => {
                            earlier.text.push_str(&delta.text);
                            return;
                        }
                        Event::Delta(_) => {}
                        _ => break,
                    }
                }
                self.events.push_back(Event::Delta(delta));
            }
            Event::Other { .. } | Event::Unknown { .. } | Event::Note { .. } if self.events.len() >= MOST_EVENTS => {
                self.left_out += 1;
            }
            Event::RateLimits { .. } | Event::Usage { .. } | Event::Diff { .. } | Event::Plan { .. }
                if self.events.back().is_some_and(|last| last.is_replaced_by(&event)) =>
            {
                self.events.pop_back();
                self.events.push_back(event);
            }
            event => self.events.push_back(event),
        }
    }

    fn pop(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        match &event {
            Some(Event::Delta(delta)) => self.delta_bytes = self.delta_bytes.saturating_sub(delta.text.len()),
            Some(_) => {}
            None if self.left_out > 0 => {
                let left_out = std::mem::take(&mut self.left_out);
                return Some(Event::Note { text: format!("{left_out} events were left out: they were not read") });
            }
            None => {}
        }
        event
    }
}

impl Events {
    /// The next event, if one is there.
    pub fn try_next(&mut self) -> Option<Event> {
        self.0.queue().pop()
    }

    /// Waits for the next event; `None` when the connection is closed and all are read. Cancelling it loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            let waiting = self.0.0.1.notified();
            {
                let mut queue = self.0.queue();
                if let Some(event) = queue.pop() {
                    return Some(event);
                }
                if queue.is_closed {
                    return None;
                }
            }
            waiting.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::event::{Delta, Part, Teller};

    use super::*;

    fn delta(item: &str, text: &str) -> Event {
        let (thread, turn) = ("t".to_owned(), "u".to_owned());
        let (item, text) = (item.to_owned(), text.to_owned());
        Event::Delta(Box::new(Delta { thread, turn, item, part: Part::Message, text, teller: Teller::Items }))
    }

    fn end() -> Event {
        let (status, error) = ("completed".to_owned(), serde_json::Value::Null);
        Event::TurnEnded { thread: "t".to_owned(), turn: "u".to_owned(), status, error, duration_ms: None }
    }

    #[tokio::test]
    async fn deltas_that_wait_are_merged_and_their_order_with_others_stays() {
        let feed = Feed::default();
        for event in [delta("a", "1"), delta("b", "x"), delta("a", "2"), end(), delta("a", "3")] {
            feed.push(event);
        }
        feed.close();
        let mut events = feed.events();
        for expected in [delta("a", "12"), delta("b", "x"), end(), delta("a", "3")] {
            assert_eq!(events.next().await, Some(expected));
        }
        assert_eq!(events.next().await, None);
    }

    #[tokio::test]
    async fn a_program_that_sleeps_costs_little_and_misses_no_end() {
        let feed = Feed::default();
        for _ in 0..200_000 {
            feed.push(delta("a", "some forty bytes of an answer, as it streams"));
        }
        feed.push(end());
        feed.close();
        let mut events = feed.events();
        let Some(Event::Delta(text)) = events.next().await else { panic!("a delta comes first") };
        assert!(text.text.len() <= DELTA_BYTES);
        assert_eq!(events.next().await, Some(end()));
        assert!(matches!(events.next().await, Some(Event::Note { .. })), "and it is told what was left out");
        assert_eq!(events.next().await, None);
    }
}
