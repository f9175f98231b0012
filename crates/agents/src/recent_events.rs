//! The newest events of an agent, for `subagent_logs`.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use codex_dialects::eq::{self, Vocabulary};
use codex_log::{Body, Event};
use codex_wire::event::EventMsg;
use serde_json::{Value, json};

/// The number of events that are kept.
const KEPT: usize = 200;
/// The largest event that is shown; the text of a larger one is in the agent's own log.
const SHOWN_BYTES: usize = 64 * 1024;

/// The newest events of an agent.
#[derive(Debug, Default)]
pub(crate) struct RecentEvents {
    events: Mutex<VecDeque<Event>>,
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
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() == KEPT {
            events.pop_front();
        }
        events.push_back(event.clone());
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

    fn messages(&self) -> Vec<(i64, String, EventMsg)> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let vocabulary = Vocabulary { items: false, raw_reasoning: false, raw_items: false };
        let mut all = Vec::new();
        let mut messages = Vec::new();
        for event in events.iter() {
            eq::project(event, vocabulary, &mut messages);
            let turn = event.turn.as_ref().map(|turn| turn.as_str().to_owned()).unwrap_or_default();
            all.extend(messages.drain(..).map(|message| (event.at_ms, turn.clone(), message)));
        }
        all
    }
}

fn shortened(message: &EventMsg) -> Value {
    let value = serde_json::to_value(message).unwrap_or_default();
    let length = value.to_string().len();
    if length <= SHOWN_BYTES { value } else { json!({"type": value["type"], "omitted_bytes": length}) }
}
