//! The items of a thread in the order in which they came, filtered and searched.
//!
//! Invariant: pure. Nothing is copied but what was found.

use std::ops::Range;

use serde_json::Value;

use crate::state::{Item, Thread, Turn};

/// The items that are wanted. An empty filter wants all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Their kinds, such as `commandExecution`; empty for all.
    pub kinds: Vec<String>,
    /// The only turn.
    pub turn: Option<String>,
    /// Their states, such as `failed`; empty for all.
    pub statuses: Vec<String>,
    /// The time from which on they began, in milliseconds of Unix time.
    pub since_ms: Option<i64>,
    /// The time before which they began.
    pub until_ms: Option<i64>,
    /// A text that they contain, in any case.
    pub text: Option<String>,
}

/// An item with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<'a> {
    pub turn: &'a Turn,
    pub item: &'a Item,
    /// The time of its beginning, if the server told it.
    pub at_ms: Option<i64>,
    pub status: &'a str,
    /// The first place with the text of the filter.
    pub found: Option<Found<'a>>,
}

/// A place in the text of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<'a> {
    pub text: &'a str,
    /// The bytes of the match.
    pub range: Range<usize>,
}

impl Thread {
    /// The items that a filter wants, oldest first.
    pub fn timeline<'a>(&'a self, filter: &'a Filter) -> impl Iterator<Item = Entry<'a>> {
        let needle = filter.text.as_deref().map(folded).filter(|needle| !needle.is_empty());
        let turns = self.turns().iter().filter(|turn| filter.turn.as_deref().is_none_or(|wanted| turn.id() == wanted));
        let items = turns.flat_map(|turn| turn.items().iter().map(move |item| (turn, item)));
        items.filter_map(move |(turn, item)| {
            let entry = Entry { turn, item, at_ms: item.began_ms(), status: item.status(), found: None };
            if !filter.wants(&entry) {
                return None;
            }
            let Some(needle) = &needle else { return Some(entry) };
            let found = item.texts().into_iter().find_map(|text| Some(Found { text, range: find(text, needle)? }))?;
            Some(Entry { found: Some(found), ..entry })
        })
    }
}

impl Filter {
    fn wants(&self, entry: &Entry<'_>) -> bool {
        let is_among = |list: &[String], word: &str| list.is_empty() || list.iter().any(|wanted| wanted == word);
        let is_in_time = |bound: Option<i64>, holds: fn(i64, i64) -> bool| {
            bound.is_none_or(|bound| entry.at_ms.is_some_and(|at_ms| holds(at_ms, bound)))
        };
        is_among(&self.kinds, entry.item.kind())
            && is_among(&self.statuses, entry.status)
            && is_in_time(self.since_ms, |at_ms, since| at_ms >= since)
            && is_in_time(self.until_ms, |at_ms, until| at_ms < until)
    }
}

impl Item {
    /// Its status: as the server told it, or whether it is complete.
    #[must_use]
    pub fn status(&self) -> &str {
        let told = self.members().get("status").and_then(Value::as_str);
        told.unwrap_or(if self.is_complete() { "completed" } else { "inProgress" })
    }

    /// Its texts for people.
    #[must_use]
    pub fn texts(&self) -> Vec<&str> {
        const MEMBERS: [&str; 12] = [
            "text",
            "content",
            "summary",
            "command",
            "aggregatedOutput",
            "changes",
            "server",
            "tool",
            "arguments",
            "result",
            "error",
            "query",
        ];
        let mut texts = Vec::new();
        for name in MEMBERS.into_iter().chain(["path", "review", "prompt"]) {
            if let Some(member) = self.members().get(name) {
                collect(member, &mut texts, 0);
            }
        }
        texts
    }
}

/// The deepest value that is searched.
const MOST_DEPTH: usize = 8;

/// The texts in a value. The words that only tell its form are left out.
fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>, depth: usize) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(parts) if depth < MOST_DEPTH => parts.iter().for_each(|part| collect(part, texts, depth + 1)),
        Value::Object(members) if depth < MOST_DEPTH => {
            let told = members.iter().filter(|(name, _)| *name != "type" && *name != "kind");
            told.for_each(|(_, member)| collect(member, texts, depth + 1));
        }
        _ => {}
    }
}

fn folded(text: &str) -> Vec<char> {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// The first place of a text, in any case.
fn find(text: &str, needle: &[char]) -> Option<Range<usize>> {
    let first = needle.first()?;
    text.char_indices().find_map(|(start, letter)| {
        if letter.to_lowercase().next() != Some(*first) {
            return None;
        }
        let (mut wanted, mut end) = (needle, start);
        for letter in text[start..].chars() {
            if wanted.is_empty() {
                break;
            }
            for lower in letter.to_lowercase() {
                wanted = wanted.strip_prefix(&[lower])?;
            }
            end += letter.len_utf8();
        }
        wanted.is_empty().then_some(start..end)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::{Event, Teller};
    use crate::state::State;

    fn state() -> State {
        let mut state = State::default();
        for (place, (turn, item)) in [
            ("1", json!({"type": "userMessage", "id": "a", "content": [{"type": "text", "text": "Baue das ÄRGERNIS"}]})),
            ("1", json!({"type": "commandExecution", "id": "b", "command": "make", "status": "failed", "aggregatedOutput": "no rule"})),
            ("2", json!({"type": "fileChange", "id": "c", "status": "completed", "changes": [{"path": "src/lib.rs", "kind": {"type": "add"}, "diff": "fn main"}]})),
            ("2", json!({"type": "agentMessage", "id": "d", "text": "Made it."})),
        ]
        .into_iter()
        .enumerate()
        {
            let (thread, turn, at_ms) = ("t".to_owned(), turn.to_owned(), i64::try_from(place).ok().map(|place| place * 10));
            let item = item.as_object().cloned().unwrap_or_default();
            state.apply(&Event::ItemCompleted { thread, turn, item, teller: Teller::Items, at_ms });
        }
        state
    }

    fn names(filter: &Filter) -> String {
        let state = state();
        let entries = state.thread("t").map(|thread| thread.timeline(filter).map(|entry| entry.item.id()).collect());
        entries.unwrap_or_default()
    }

    #[test]
    fn a_filter_wants_what_it_names() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        for (filter, expected) in [
            (Filter::default(), "abcd"),
            (Filter { kinds: words(&["fileChange", "agentMessage"]), ..Filter::default() }, "cd"),
            (Filter { turn: Some("1".to_owned()), ..Filter::default() }, "ab"),
            (Filter { statuses: words(&["failed"]), ..Filter::default() }, "b"),
            (Filter { since_ms: Some(10), until_ms: Some(30), ..Filter::default() }, "bc"),
            (Filter { text: Some("LIB.rs".to_owned()), ..Filter::default() }, "c"),
            (Filter { text: Some("update".to_owned()), ..Filter::default() }, ""),
            (Filter { text: Some("make".to_owned()), turn: Some("2".to_owned()), ..Filter::default() }, ""),
        ] {
            assert_eq!(names(&filter), expected, "{filter:?}");
        }
    }

    #[test]
    fn a_match_is_shown_where_it_is() {
        let (state, filter) = (state(), Filter { text: Some("ärger".to_owned()), ..Filter::default() });
        let found = state.thread("t").and_then(|thread| thread.timeline(&filter).next()?.found);
        assert_eq!(found.map(|found| &found.text[found.range]), Some("ÄRGER"));
        assert_eq!(find("aab", &['a', 'b']), Some(1..3), "a match may begin within one that failed");
        assert_eq!(find("İx", &['i', '\u{307}', 'x']), Some(0..3), "a letter may have a longer lower case");
        assert_eq!(find("ab", &['a', 'b', 'c']), None);
    }
}
