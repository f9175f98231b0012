//! Handlers of a program, which see the events of a connection, each on its own.
//!
//! Invariant: a handler that panics or hangs costs a note and is not called again; the others go on. Each has a queue of
//! its own with the bounds of [`Events`].

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;

use crate::event::Event;
use crate::feed::{Events, Feed};

/// The time limit of a handler for one event.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Sees the events of a connection.
pub trait Handler: Send + 'static {
    /// The events that it wants to see. It sees all by default.
    fn wants(&self, event: &Event) -> bool {
        let _ = event;
        true
    }

    /// Takes an event.
    fn handle(&mut self, event: Event) -> impl Future<Output = ()> + Send;
}

/// The handlers of a connection.
#[derive(Debug, Default)]
pub struct Handlers {
    running: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    name: String,
    feed: Feed,
    task: JoinHandle<Result<(), &'static str>>,
}

impl Handlers {
    /// Adds a handler under a name, which appears in notes about it.
    #[must_use]
    pub fn with(self, name: impl Into<String>, handler: impl Handler) -> Self {
        self.within(DEADLINE, name, handler)
    }

    /// Adds a handler with another time limit for one event.
    #[must_use]
    pub fn within(mut self, deadline: Duration, name: impl Into<String>, mut handler: impl Handler) -> Self {
        let feed = Feed::default();
        let mut events = feed.events();
        let task = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let wants = std::panic::catch_unwind(AssertUnwindSafe(|| handler.wants(&event)));
                if wants.map_err(|_| "has panicked")? {
                    timeout(deadline, handler.handle(event)).await.map_err(|_| "is too slow")?;
                }
            }
            Ok(())
        });
        self.running.push(Running { name: name.into(), feed, task });
        self
    }

    /// Passes all events of a connection to the handlers, and waits until they have taken them. The notes about
    /// handlers that failed are returned.
    pub async fn run(mut self, mut events: Events) -> Vec<String> {
        let mut notes = Vec::new();
        while let Some(event) = events.next().await {
            let mut place = 0;
            while place < self.running.len() {
                if self.running[place].task.is_finished() {
                    let text = self.running.remove(place).end().await;
                    self.running.iter().for_each(|other| other.feed.push(Event::Note { text: text.clone() }));
                    notes.push(text);
                } else {
                    self.running[place].feed.push(event.clone());
                    place += 1;
                }
            }
        }
        for running in self.running {
            running.feed.close();
            let name = running.name.clone();
            if let Err(why) = outcome(running.task.await) {
                notes.push(format!("the handler {name} {why}"));
            }
        }
        notes
    }
}

impl Running {
    /// The note about a handler that has ended early.
    async fn end(self) -> String {
        let why = outcome(self.task.await).err().unwrap_or("has ended");
        format!("the handler {} {why}", self.name)
    }
}

fn outcome(ended: Result<Result<(), &'static str>, JoinError>) -> Result<(), &'static str> {
    ended.unwrap_or(Err("has panicked"))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Tells what it has seen; panics or hangs at a warning.
    struct Told(Sender<String>, &'static str);

    impl Handler for Told {
        fn wants(&self, event: &Event) -> bool {
            matches!(event, Event::Warning { .. } | Event::Note { .. })
        }

        async fn handle(&mut self, event: Event) {
            match (event, self.1) {
                (Event::Warning { .. }, "panics") => panic!("a mistake in the program"),
                (Event::Warning { .. }, "hangs") => std::future::pending().await,
                (Event::Warning { message, .. }, _) => drop(self.0.send(message)),
                (Event::Note { text }, "stays") => drop(self.0.send(text)),
                _ => {}
            }
        }
    }

    fn warning(message: &str) -> Event {
        Event::Warning { thread: "t".to_owned(), message: message.to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_handler_that_fails_is_one_note_for_the_others() {
        for (failing, expected) in
            [("panics", "the handler bad has panicked"), ("hangs", "the handler bad is too slow")]
        {
            let (sender, seen) = channel();
            let feed = Feed::default();
            let handlers = Handlers::default()
                .with("bad", Told(sender.clone(), failing))
                .with("good", Told(sender.clone(), "stays"));
            let run = tokio::spawn(handlers.run(feed.events()));
            feed.push(warning("one"));
            tokio::time::sleep(2 * DEADLINE).await;
            feed.push(warning("two"));
            feed.push(warning("three"));
            feed.close();
            drop(sender);
            assert_eq!(run.await.unwrap_or_default(), [expected]);
            let seen: Vec<String> = seen.into_iter().collect();
            assert_eq!(seen, ["one", expected, "two", "three"], "{failing}");
        }
    }

    #[tokio::test]
    async fn handlers_see_what_they_want_in_order() {
        let (sender, seen) = channel();
        let feed = Feed::default();
        for number in 0..100 {
            feed.push(warning(&number.to_string()));
            feed.push(Event::Other { method: "odd".to_owned(), params: serde_json::Value::Null });
        }
        feed.close();
        let notes = Handlers::default().with("all", Told(sender, "stays")).run(feed.events()).await;
        assert!(notes.is_empty(), "{notes:?}");
        let expected: Vec<String> = (0..100).map(|number: i32| number.to_string()).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
    }
}
