//! One event changes the state.

use serde_json::{Value, json};

use super::{Item, Places, Question, State, Thread, Turn};
use crate::event::{Delta, Event, Members, Part, Teller};

/// The most names of unknown methods, and of errors of a thread, that are kept.
const MOST_NOTED: usize = 100;

/// The most questions of a thread that are kept; the oldest give way.
const MOST_QUESTIONS: usize = 1000;

/// The last items of a turn among which one without a name is looked for.
const LOOK_BACK: usize = 256;

/// The kinds of items that events without a name tell.
const UNNAMED_KINDS: [&str; 3] = ["agentMessage", "reasoning", "userMessage"];

impl State {
    /// Takes an event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Thread { id, value, whole } => self.at(id).open(value, *whole),
            Event::ThreadChanged { thread, member, value } => {
                self.at(thread).members.insert((*member).to_owned(), value.clone());
            }
            Event::TurnStarted { thread, turn } => {
                self.at(thread).start_turn(turn);
            }
            Event::TurnEnded { thread, turn, status, error, .. } => self.at(thread).end_turn(turn, status, error),
            Event::ItemStarted { thread, turn, item, teller, at_ms } => {
                self.at(thread).tell(turn, item, *teller, false, *at_ms);
            }
            Event::ItemCompleted { thread, turn, item, teller, at_ms } => {
                self.at(thread).tell(turn, item, *teller, true, *at_ms);
            }
            Event::Delta(delta) => self.at(&delta.thread).grow(delta),
            Event::Plan { thread, plan, .. } => self.at(thread).plan = plan.clone(),
            Event::Diff { thread, diff, .. } => self.at(thread).diff.clone_from(diff),
            Event::Usage { thread, usage } => self.at(thread).take_usage(usage),
            Event::RateLimits { limits } => self.rate_limits = limits.clone(),
            Event::Error { thread, message, .. } => self.at(thread).note_error(message),
            Event::Asked { thread, id, method, params } => {
                let (id, method, params) = (id.clone(), method.clone(), params.clone());
                let questions = &mut self.at(thread).questions;
                questions.retain(|question| question.id != id);
                questions.drain(..(questions.len() + 1).saturating_sub(MOST_QUESTIONS));
                questions.push(Question { id, method, params });
            }
            Event::Resolved { thread, id } => self.at(thread).questions.retain(|question| question.id != *id),
            Event::Unknown { method, .. } => {
                if self.unknown.len() < MOST_NOTED && !self.unknown.contains(method) {
                    self.unknown.push(method.clone());
                }
            }
            Event::Note { .. } => self.notes += 1,
            // They are asked again.
            Event::Disconnected => self.threads.values_mut().for_each(|thread| thread.questions.clear()),
            Event::Warning { .. } | Event::Other { .. } | Event::Reconnected { .. } => {}
        }
    }

    /// Puts earlier turns of a thread, oldest first, before those that are known; returns how many were new.
    pub fn prepend(&mut self, thread: &str, turns: Vec<Value>) -> usize {
        let known = self.at(thread);
        let is_new = |turn: &Value| turn.get("id").and_then(Value::as_str).is_none_or(|id| known.place(id).is_none());
        let earlier: Vec<Turn> = turns.into_iter().filter(is_new).map(stored_turn).collect();
        let count = earlier.len();
        known.turns.splice(0..0, earlier);
        known.places = places(known.turns.iter().map(Turn::id));
        count
    }

    fn at(&mut self, id: &str) -> &mut Thread {
        self.threads.entry(id.to_owned()).or_default()
    }
}

impl Thread {
    fn open(&mut self, value: &Members, is_whole: bool) {
        for (name, member) in value {
            if name != "turns" {
                self.members.insert(name.clone(), member.clone());
            }
        }
        if is_whole {
            let turns = value.get("turns").and_then(Value::as_array).into_iter().flatten();
            self.turns = turns.cloned().map(stored_turn).collect();
            self.places = places(self.turns.iter().map(Turn::id));
        }
    }

    /// The turn of a name; the last one if it has none.
    fn turn(&mut self, id: &str) -> &mut Turn {
        let place = if id.is_empty() { self.turns.len().checked_sub(1) } else { self.place(id) };
        match place {
            Some(place) => &mut self.turns[place],
            None => self.start_turn(id),
        }
    }

    fn place(&self, id: &str) -> Option<usize> {
        self.places.get(id).copied()
    }

    fn start_turn(&mut self, id: &str) -> &mut Turn {
        let place = self.place(id).unwrap_or_else(|| {
            let (status, error) = ("inProgress".to_owned(), Value::Null);
            self.turns.push(Turn { id: id.to_owned(), status, error, items: Vec::new(), places: Places::new() });
            self.places.insert(id.to_owned(), self.turns.len() - 1);
            self.turns.len() - 1
        });
        &mut self.turns[place]
    }

    /// The end that was told first holds: a turn that was interrupted is told to be complete as well.
    fn end_turn(&mut self, id: &str, status: &str, error: &Value) {
        let turn = self.turn(id);
        if turn.status == "inProgress" || status == "failed" && turn.status == "completed" {
            status.clone_into(&mut turn.status);
        }
        if !error.is_null() {
            turn.error = error.clone();
        }
    }

    fn take_usage(&mut self, usage: &Value) {
        // The queue tells less than the second dialect, which tells the same again.
        let knows_more = self.usage.pointer("/total/cacheWriteInputTokens").is_some();
        let is_same = self.usage.pointer("/total/totalTokens") == usage.pointer("/total/totalTokens");
        if !(knows_more && is_same) {
            self.usage = usage.clone();
        }
    }

    fn note_error(&mut self, message: &str) {
        if self.errors.len() < MOST_NOTED && self.errors.last().is_none_or(|last| last != message) {
            self.errors.push(message.to_owned());
        }
    }

    fn tell(&mut self, turn: &str, members: &Members, teller: Teller, is_complete: bool, at_ms: Option<i64>) {
        let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
        let id = members.get("id").and_then(Value::as_str).unwrap_or_default();
        let unnamed = UNNAMED_KINDS.into_iter().find(|unnamed| *unnamed == kind);
        if teller == Teller::OldQueue {
            if self.named.contains(&kind) {
                return;
            }
        } else if let Some(unnamed) = unnamed
            && !self.named.contains(&unnamed)
        {
            self.named.push(unnamed);
            let turn = self.turn(turn);
            turn.items.retain(|item| item.teller != Teller::OldQueue || item.kind() != unnamed);
            turn.places = places(turn.items.iter().map(Item::id));
        }
        let turn = self.turn(turn);
        turn.tell(id, members, teller, is_complete);
        if let (Some(at_ms), Some(place)) = (at_ms, turn.position(id)) {
            turn.items[place].began_ms.get_or_insert(at_ms);
        }
    }

    fn grow(&mut self, delta: &Delta) {
        let kind = delta.part.kind();
        if delta.teller == Teller::OldQueue && self.named.contains(&kind) {
            return;
        }
        self.turn(&delta.turn).grow(delta);
    }
}

impl Turn {
    fn position(&self, id: &str) -> Option<usize> {
        self.places.get(id).copied()
    }

    fn add(&mut self, item: Item) -> usize {
        let place = self.items.len();
        self.places.insert(item.id.clone(), place);
        self.items.push(item);
        place
    }

    /// The last open item of a dialect that fits.
    fn last_open(&self, teller: Teller, fits: impl Fn(&Item) -> bool) -> Option<usize> {
        let last = self.items.iter().enumerate().rev().take(LOOK_BACK);
        let mut open = last.filter(|(_, item)| !item.is_complete && item.teller == teller);
        open.find(|(_, item)| fits(item)).map(|(place, _)| place)
    }

    /// The open item of a kind that a dialect tells without a name.
    fn open_item(&self, kind: &str, teller: Teller) -> Option<usize> {
        self.last_open(teller, |item| item.kind() == kind)
    }

    fn tell(&mut self, id: &str, members: &Members, teller: Teller, is_complete: bool) {
        let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
        let place = if id.is_empty() { self.open_item(kind, teller) } else { self.position(id) };
        let Some(place) = place else {
            let mut members = members.clone();
            let id = if id.is_empty() { format!("{}-{}", kind, self.items.len() + 1) } else { id.to_owned() };
            members.insert("id".to_owned(), json!(id));
            self.add(Item { id, members, is_complete, teller, deltas: None, began_ms: None });
            return;
        };
        let item = &mut self.items[place];
        if teller < item.teller {
            return;
        }
        if teller > item.teller || teller == Teller::Items {
            if is_complete || item.deltas.is_none() {
                item.members.clone_from(members);
            }
        } else {
            let told = members.iter().filter(|(name, _)| *name != "id");
            item.members.extend(told.map(|(name, member)| (name.clone(), member.clone())));
        }
        item.teller = teller;
        item.is_complete |= is_complete;
    }

    fn grow(&mut self, delta: &Delta) {
        let place = if delta.item.is_empty() {
            self.open_item(delta.part.kind(), delta.teller).or_else(|| self.last_open(delta.teller, |_| true))
        } else {
            self.position(&delta.item)
        };
        let place = place.unwrap_or_else(|| {
            let kind = delta.part.kind();
            let id =
                if delta.item.is_empty() { format!("{}-{}", kind, self.items.len() + 1) } else { delta.item.clone() };
            let mut members = Members::new();
            members.insert("type".to_owned(), json!(kind));
            members.insert("id".to_owned(), json!(id));
            self.add(Item { id, members, is_complete: false, teller: delta.teller, deltas: None, began_ms: None })
        });
        let item = &mut self.items[place];
        if item.is_complete || *item.deltas.get_or_insert(delta.teller) != delta.teller {
            return;
        }
        item.append(delta.part, &delta.text);
    }
}

impl Item {
    fn append(&mut self, part: Part, text: &str) {
        // An item of another kind than its delta thinks has its text where its kind has it.
        let part = match (self.kind(), part) {
            ("reasoning", Part::Message) => Part::Summary(0),
            (_, part) => part,
        };
        match part {
            Part::Message | Part::Plan => append(self.members.entry("text").or_insert(Value::Null), text),
            Part::Output => append(self.members.entry("aggregatedOutput").or_insert(Value::Null), text),
            Part::Summary(index) => append_at(self.members.entry("summary").or_insert(Value::Null), index, text),
            Part::Reasoning(index) => append_at(self.members.entry("content").or_insert(Value::Null), index, text),
        }
    }
}

fn append(member: &mut Value, text: &str) {
    match member {
        Value::String(known) => known.push_str(text),
        other => *other = Value::from(text),
    }
}

/// The most parts of an item, so that an odd index costs little.
const MOST_PARTS: usize = 10_000;

fn append_at(member: &mut Value, index: usize, text: &str) {
    if !member.is_array() {
        *member = json!([]);
    }
    let Some(parts) = member.as_array_mut().filter(|_| index < MOST_PARTS) else { return };
    while parts.len() <= index {
        parts.push(json!(""));
    }
    append(&mut parts[index], text);
}

/// The status of a stored turn. One that began and has no end was interrupted by the end of its server.
fn end_of(turn: &Value) -> &str {
    let status = turn.get("status").and_then(Value::as_str).unwrap_or_default();
    let is_cut = turn.get("startedAt").is_some_and(Value::is_i64) && turn.get("completedAt") == Some(&Value::Null);
    if is_cut && status == "completed" { "interrupted" } else { status }
}

fn stored_turn(mut turn: Value) -> Turn {
    let items = turn.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
    let text = |name: &str| turn.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let items: Vec<Item> = items.into_iter().filter_map(stored_item).collect();
    Turn {
        id: text("id"),
        status: end_of(&turn).to_owned(),
        error: turn.get("error").cloned().unwrap_or_default(),
        places: places(items.iter().map(Item::id)),
        items,
    }
}

fn places<'a>(ids: impl Iterator<Item = &'a str>) -> Places {
    ids.enumerate().map(|(place, id)| (id.to_owned(), place)).collect()
}

/// An item of a stored turn; none if it is no object.
fn stored_item(item: Value) -> Option<Item> {
    let Value::Object(members) = item else { return None };
    Some(Item {
        id: members.get("id").and_then(Value::as_str).unwrap_or_default().to_owned(),
        is_complete: members.get("status").and_then(Value::as_str) != Some("inProgress"),
        began_ms: members.get("startedAtMs").and_then(Value::as_i64),
        members,
        teller: Teller::Items,
        deltas: None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Each event used to be compared with all items of its turn: 20,000 took half a minute.
    #[test]
    fn a_turn_may_have_many_items_and_a_thread_many_turns() {
        const MANY: usize = 20_000;
        let (began, mut state) = (Instant::now(), State::default());
        let (thread, turn, teller) = ("t".to_owned(), "u".to_owned(), Teller::Items);
        for at in 0..MANY {
            let id = format!("i{at}");
            let item = Members::from_iter([("type".to_owned(), json!("agentMessage")), ("id".to_owned(), json!(id))]);
            let (thread, turn) = (thread.clone(), turn.clone());
            state.apply(&Event::ItemCompleted { thread: thread.clone(), turn, item, teller, at_ms: Some(1) });
            let unnamed = Delta {
                thread: thread.clone(),
                turn: "u".to_owned(),
                item: String::new(),
                part: Part::Summary(0),
                text: "y".to_owned(),
                teller: Teller::OldQueue,
            };
            state.apply(&Event::Delta(Box::new(unnamed)));
            let (id, method) = (codex_wire::ids::RequestId::String(id), "m".to_owned());
            state.apply(&Event::Asked { thread, id, method, params: Value::Null });
        }
        for at in 0..MANY {
            state.apply(&Event::TurnStarted { thread: thread.clone(), turn: format!("v{at}") });
        }
        let known = state.thread("t").unwrap();
        assert_eq!(known.turns().len(), MANY + 1);
        assert_eq!(known.turns()[0].items().iter().filter(|item| item.kind() == "agentMessage").count(), MANY);
        assert_eq!(known.questions().len(), MOST_QUESTIONS);
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}
