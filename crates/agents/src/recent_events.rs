//! The newest events of an agent, for `subagent_logs`.
//!
//! They are kept while its thread runs. After a restart, those before it are read from the log when they are first wanted.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use codex_dialects::eq::{self, Vocabulary};
use codex_log::{Body, Event};
use codex_wire::event::EventMsg;
use serde_json::{Value, json};

/// The number of events that are kept.
pub(crate) const KEPT: usize = 200;
/// The largest event that is shown; the text of a larger one is in the agent's own log.
const SHOWN_BYTES: usize = 64 * 1024;

/// The newest events of an agent.
#[derive(Debug, Default)]
pub(crate) struct RecentEvents {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    events: VecDeque<Event>,
    /// Whether earlier events, if there are any, are here as well.
    has_earlier: bool,
}

/// The events that a call asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventRange {
    pub(crate) limit: usize,
    pub(crate) max_bytes: Option<usize>,
    pub(crate) since_ms: Option<i64>,
    pub(crate) before_ms: Option<i64>,
}

impl RecentEvents {
    /// Keeps an event. Deltas are not kept: the items that they lead to are.
    pub(crate) fn push(&self, event: &Event) {
        if matches!(event.body, Body::ItemDelta { .. } | Body::Recorded(_) | Body::ModelAsked(_)) {
            return;
        }
        let mut kept = self.lock();
        if let Body::ThreadStarted(started) = &event.body {
            kept.has_earlier |= !started.is_resumed;
        }
        if kept.events.len() == KEPT {
            kept.events.pop_front();
        }
        kept.events.push_back(event.clone());
    }

    /// Whether earlier events may be in the log of the thread.
    pub(crate) fn lacks_earlier(&self) -> bool {
        let kept = self.lock();
        !kept.has_earlier && kept.events.len() < KEPT
    }

    /// Puts events of the log before those that are here. Later ones are here already.
    pub(crate) fn put_before(&self, stored: Vec<Event>) {
        let mut kept = self.lock();
        if std::mem::replace(&mut kept.has_earlier, true) {
            return;
        }
        let first = kept.events.front().map(|event| event.seq);
        let earlier = stored.into_iter().filter(|event| first.is_none_or(|first| event.seq < first));
        let earlier: Vec<Event> = earlier.collect();
        for event in earlier.into_iter().rev() {
            if kept.events.len() == KEPT {
                break;
            }
            kept.events.push_front(event);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest events that are asked for, as a result of `subagent_logs` without its first member.
    pub(crate) fn show(&self, slice: EventRange) -> Value {
        let all = self.messages();
        let is_wanted = |at_ms: i64| {
            slice.since_ms.is_none_or(|since| at_ms > since) && slice.before_ms.is_none_or(|before| at_ms < before)
        };
        let wanted: Vec<_> = all.into_iter().filter(|(at_ms, ..)| is_wanted(*at_ms)).collect();
        let total = wanted.len();
        let mut bytes = 2;
        let mut shown = VecDeque::new();
        for (at_ms, id, message) in wanted.into_iter().rev().take(slice.limit.max(1)) {
            let event = json!({"timestamp_ms": at_ms, "event": {"id": id, "msg": shortened(&message)}});
            let more = event.to_string().len() + usize::from(!shown.is_empty());
            if slice.max_bytes.is_some_and(|most| bytes + more > most) {
                break;
            }
            bytes += more;
            shown.push_front((at_ms, event));
        }
        let (earliest, latest) = (shown.front().map(|(at, _)| *at), shown.back().map(|(at, _)| *at));
        json!({
            "returned": shown.len(),
            "total_available": total,
            "more_available": shown.len() < total,
            "earliest_ms": earliest,
            "latest_ms": latest,
            "events": shown.into_iter().map(|(_, event)| event).collect::<Vec<_>>(),
        })
    }

    /// The newest messages, oldest first. One event of the log can be several of them.
    fn messages(&self) -> Vec<(i64, String, EventMsg)> {
        let kept = self.lock();
        let vocabulary = Vocabulary { items: false, raw_reasoning: false, raw_items: false };
        let mut all = Vec::new();
        let mut messages = Vec::new();
        for event in &kept.events {
            eq::project(event, vocabulary, &mut messages);
            let turn = event.turn.as_ref().map(|turn| turn.as_str().to_owned()).unwrap_or_default();
            all.extend(messages.drain(..).map(|message| (event.at_ms, turn.clone(), message)));
        }
        all.drain(..all.len().saturating_sub(KEPT));
        all
    }
}

fn shortened(message: &EventMsg) -> Value {
    let value = serde_json::to_value(message).unwrap_or_default();
    let length = value.to_string().len();
    if length <= SHOWN_BYTES { value } else { json!({"type": value["type"], "omitted_bytes": length}) }
}

#[cfg(test)]
mod tests {
    use codex_log::{Seq, TurnId};
    use codex_wire::ids::ThreadId;

    use super::*;

    /// Warnings with the numbers from 1 on, each at the millisecond of its number.
    fn warnings(count: u64) -> RecentEvents {
        let (events, thread) = (RecentEvents::default(), ThreadId::fresh());
        for number in 1..=count {
            let body = Body::Warning { message: format!("warning {number}") };
            let (seq, at_ms) = (Seq::new(number), i64::try_from(number).unwrap());
            events.push(&Event { thread, seq, at_ms, turn: Some(TurnId::new("1")), body });
        }
        events
    }

    const ALL: EventRange = EventRange { limit: 1000, max_bytes: None, since_ms: None, before_ms: None };

    fn times(shown: &Value) -> Vec<i64> {
        shown["events"].as_array().unwrap().iter().map(|event| event["timestamp_ms"].as_i64().unwrap()).collect()
    }

    #[test]
    fn the_newest_200_events_are_kept() {
        let shown = warnings(250).show(ALL);
        assert_eq!(times(&shown), (51..=250).collect::<Vec<_>>());
        assert_eq!(
            (&shown["returned"], &shown["total_available"], &shown["more_available"]),
            (&json!(200), &json!(200), &json!(false))
        );
        assert_eq!((&shown["earliest_ms"], &shown["latest_ms"]), (&json!(51), &json!(250)));
        let none = RecentEvents::default().show(ALL);
        assert_eq!((&none["returned"], &none["earliest_ms"], &none["events"]), (&json!(0), &json!(null), &json!([])));
    }

    #[test]
    fn a_limit_takes_the_newest_and_at_least_one() {
        let events = warnings(9);
        for (limit, expected) in [(3, vec![7, 8, 9]), (1, vec![9]), (0, vec![9])] {
            let shown = events.show(EventRange { limit, ..ALL });
            assert_eq!(times(&shown), expected);
            assert_eq!((&shown["total_available"], &shown["more_available"]), (&json!(9), &json!(true)));
        }
    }

    #[test]
    fn times_are_limits_that_are_not_included() {
        let events = warnings(9);
        let shown = events.show(EventRange { since_ms: Some(3), before_ms: Some(7), ..ALL });
        assert_eq!((times(&shown), &shown["total_available"]), (vec![4, 5, 6], &json!(3)));
        let newest = events.show(EventRange { since_ms: Some(3), before_ms: Some(7), limit: 1, ..ALL });
        assert_eq!((times(&newest), &newest["more_available"]), (vec![6], &json!(true)));
        assert_eq!(times(&events.show(EventRange { since_ms: Some(9), ..ALL })), Vec::<i64>::new());
    }

    #[test]
    fn the_events_have_no_more_bytes_than_allowed() {
        let events = warnings(9);
        let bytes = |shown: &Value| shown["events"].to_string().len();
        let all = bytes(&events.show(ALL));
        for most in 0..=all {
            let shown = events.show(EventRange { max_bytes: Some(most), ..ALL });
            assert!(bytes(&shown) <= most.max(2), "{most}: {shown}");
            assert_eq!(shown["more_available"], json!(most < all), "{most}");
            let newest: Vec<i64> = (1..=9).rev().take(times(&shown).len()).collect();
            assert_eq!(times(&shown).into_iter().rev().collect::<Vec<_>>(), newest, "the newest ones, without gaps");
        }
    }
}
