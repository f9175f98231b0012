//! The numbers of events: the last one of each thread that was seen, and the log that it counts in.
//!
//! Invariant: a number that is not higher than the last one of its log was reported already. A turn that was seen to
//! start has an end, also if its server was killed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::event::Event;

/// The last numbers of threads. Clones share them: a registry reads what its connection has seen.
#[derive(Debug, Clone, Default)]
pub struct Numbers(Arc<Mutex<BTreeMap<String, Position>>>);

#[derive(Debug, Default)]
struct Position {
    /// The last number that was seen, and its log.
    log: Option<String>,
    after: Option<u64>,
    /// The log that the numbers of this connection count in, and the last of them.
    current: Option<String>,
    last: Option<u64>,
    /// The turn that was seen to start, and not to end.
    running: Option<String>,
    /// The last number when the server answered the last subscription, if it ran no turn then.
    idle_at: Option<u64>,
    /// The turn that had started by then, and was not seen to end.
    cut: Option<String>,
}

impl Position {
    /// Everything up to the number in `thread/caughtUp` is complete.
    fn caught_up(&mut self, params: &Value) {
        let seq = params.get("seq").and_then(Value::as_u64).filter(|seq| self.last.is_none_or(|last| last < *seq));
        let log = params.get("logId").and_then(Value::as_str).filter(|log| self.current.as_deref() == Some(*log));
        if let (Some(seq), Some(log)) = (seq, log) {
            (self.last, self.after, self.log) = (Some(seq), Some(seq), Some(log.to_owned()));
        }
    }
}

impl Numbers {
    fn positions(&self) -> MutexGuard<'_, BTreeMap<String, Position>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the answer to `thread/subscribe`. Unless it replaces everything, events up to its number are still to come.
    pub fn subscribed(&self, thread: &str, answer: &Value) {
        let Some(log) = answer.get("logId").and_then(Value::as_str) else { return };
        let is_reset = answer.get("reset").and_then(Value::as_bool).unwrap_or_default();
        let mut positions = self.positions();
        let position = positions.entry(thread.to_owned()).or_default();
        if position.current.as_deref() != Some(log) || is_reset {
            (position.current, position.last) = (Some(log.to_owned()), None);
        }
        // A thread that replaces everything tells the end of each turn itself.
        let is_idle = !is_reset && answer.pointer("/thread/status/type").is_some_and(|status| status == "idle");
        position.idle_at = answer.get("seq").and_then(Value::as_u64).filter(|_| is_idle);
        position.cut = position.running.clone().filter(|_| is_idle);
        if is_reset {
            (position.log, position.after) = (Some(log.to_owned()), answer.get("seq").and_then(Value::as_u64));
            let last = answer.pointer("/thread/turns").and_then(Value::as_array).and_then(|turns| turns.last());
            let running = last.filter(|turn| turn.get("status").is_some_and(|status| status == "inProgress"));
            position.running = running.and_then(|turn| turn.get("id")?.as_str()).map(str::to_owned);
        }
    }

    /// Takes an event with its number. Once everything that was missed is told, a turn that runs nowhere any more has
    /// ended: its end is returned, because nothing else tells it.
    pub(crate) fn note(&self, event: &Event, seq: Option<u64>) -> Option<Event> {
        let mut positions = self.positions();
        if let Event::TurnStarted { thread, turn } = event {
            let position = positions.entry(thread.clone()).or_default();
            position.running = Some(turn.clone());
            // One that started later runs; the server may say that it has caught up only after its start.
            if position.idle_at.zip(seq).is_some_and(|(idle_at, seq)| seq <= idle_at) {
                position.cut = Some(turn.clone());
            }
        } else if let Event::TurnEnded { thread, turn, .. } = event {
            let position = positions.get_mut(thread)?;
            position.running.take_if(|running| running == turn);
            position.cut.take_if(|cut| cut == turn);
        } else if let Event::Other { method, params } = event
            && method == "thread/caughtUp"
        {
            let thread = params.get("threadId")?.as_str()?;
            let position = positions.get_mut(thread)?;
            position.caught_up(params);
            let (turn, status) = (position.cut.take()?, "interrupted".to_owned());
            position.running.take_if(|running| *running == turn);
            let (thread, error) = (thread.to_owned(), Value::Null);
            return Some(Event::TurnEnded { thread, turn, status, error, duration_ms: None });
        }
        None
    }

    /// Forgets a thread.
    pub(crate) fn forget(&self, thread: &str) {
        self.positions().remove(thread);
    }

    /// The server has no numbers for a thread: from now on each of its events counts.
    pub(crate) fn unnumbered(&self, thread: &str) {
        if let Some(position) = self.positions().get_mut(thread) {
            position.current = None;
        }
    }

    /// Takes the number of an event; `false` if it was reported already.
    #[must_use]
    pub fn saw(&self, thread: &str, seq: u64) -> bool {
        let mut positions = self.positions();
        let Some(position) = positions.get_mut(thread).filter(|position| position.current.is_some()) else {
            return true;
        };
        if position.last.is_some_and(|last| seq <= last) {
            return false;
        }
        (position.last, position.after) = (Some(seq), Some(seq));
        position.log.clone_from(&position.current);
        true
    }

    /// The last number of a thread, and its log, to subscribe from.
    #[must_use]
    pub fn last(&self, thread: &str) -> (Option<String>, Option<u64>) {
        self.positions().get(thread).map(|position| (position.log.clone(), position.after)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_that_goes_back_was_reported_already() {
        let numbers = Numbers::default();
        assert!(numbers.saw("t", 7), "without a log there is nothing to compare");
        numbers.subscribed("t", &json!({"logId": "one", "seq": 5, "reset": true}));
        assert_eq!(numbers.last("t"), (Some("one".to_owned()), Some(5)));
        assert_eq!([6, 6, 2, 7].map(|seq| numbers.saw("t", seq)), [true, false, false, true]);
        assert_eq!(numbers.last("t"), (Some("one".to_owned()), Some(7)));
    }

    #[test]
    fn a_turn_that_runs_nowhere_any_more_has_ended() {
        let numbers = Numbers::default();
        let ended = |turn: &str| {
            let (status, error) = ("completed".to_owned(), Value::Null);
            Event::TurnEnded { thread: "t".to_owned(), turn: turn.to_owned(), status, error, duration_ms: None }
        };
        let caught_up = Event::Other { method: "thread/caughtUp".to_owned(), params: json!({"threadId": "t"}) };
        let answer = |status: &str, is_reset: bool| {
            let thread = json!({"status": {"type": status}});
            json!({"logId": "one", "seq": 5, "reset": is_reset, "thread": thread})
        };
        let started = |turn: &str| Event::TurnStarted { thread: "t".to_owned(), turn: turn.to_owned() };
        let is_end_of =
            |end: Option<Event>, of: &str| matches!(&end, Some(Event::TurnEnded { turn, .. }) if turn == of);
        assert_eq!(numbers.note(&started("u"), Some(3)), None);
        numbers.subscribed("t", &answer("active", false));
        assert_eq!(numbers.note(&caught_up, None), None, "it runs");
        numbers.subscribed("t", &answer("idle", false));
        assert!(is_end_of(numbers.note(&caught_up, None), "u"));
        assert_eq!(numbers.note(&caught_up, None), None, "it ends once");
        numbers.subscribed("t", &answer("idle", false));
        assert_eq!(numbers.note(&started("v"), Some(5)), None);
        assert!(is_end_of(numbers.note(&caught_up, None), "v"), "its start was missed, and it does not run");
        for is_reset in [false, true] {
            numbers.subscribed("t", &answer("idle", is_reset));
            assert_eq!(numbers.note(&started("w"), Some(6)), None);
            assert_eq!(numbers.note(&caught_up, None), None, "it has started since, and runs");
            numbers.note(&ended("w"), Some(7));
        }
    }

    #[test]
    fn the_number_of_being_caught_up_counts() {
        let numbers = Numbers::default();
        numbers.subscribed("t", &json!({"logId": "one", "seq": 5, "reset": false}));
        let caught_up = |log: &str, seq: u64| {
            let params = json!({"threadId": "t", "logId": log, "seq": seq});
            numbers.note(&Event::Other { method: "thread/caughtUp".to_owned(), params }, None);
            numbers.last("t")
        };
        assert_eq!(caught_up("two", 5), (None, None), "it counts in another log");
        assert_eq!(caught_up("one", 5), (Some("one".to_owned()), Some(5)));
        assert_eq!(caught_up("one", 4), (Some("one".to_owned()), Some(5)), "it does not go back");
        assert_eq!([5, 6].map(|seq| numbers.saw("t", seq)), [false, true]);
    }

    #[test]
    fn events_up_to_the_number_of_a_subscription_are_still_to_come() {
        let numbers = Numbers::default();
        numbers.subscribed("t", &json!({"logId": "one", "seq": 5, "reset": true}));
        assert!(numbers.saw("t", 7));
        numbers.subscribed("t", &json!({"logId": "two", "seq": 9, "reset": false}));
        assert_eq!(numbers.last("t"), (Some("one".to_owned()), Some(7)), "nothing of the other log was seen yet");
        assert_eq!([3, 4, 4].map(|seq| numbers.saw("t", seq)), [true, true, false]);
        numbers.subscribed("t", &json!({"logId": "two", "seq": 9, "reset": false}));
        assert_eq!(numbers.last("t"), (Some("two".to_owned()), Some(4)));
        assert!(!numbers.saw("t", 4));
    }
}
