//! The timeline: every item of a thread on a line, by kind and text.

use chrono::{DateTime, Local};
use codex_client::state::Thread;
use codex_client::timeline::Filter;
use serde_json::{Value, json};

use crate::{Span, Style, printable};
use codex_views::board::{Action, Entry, Needs};

pub(super) const ACTIONS: &[Action] = &[Action { key: 'f', label: "other kinds", needs: Needs::Nothing }];

/// The longest text of a line.
const MOST_CHARS: usize = 300;

/// The items that are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::full) enum Only {
    #[default]
    Everything,
    Messages,
    Commands,
    Changes,
    Tools,
    Failures,
}

impl Only {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Everything => Self::Messages,
            Self::Messages => Self::Commands,
            Self::Commands => Self::Changes,
            Self::Changes => Self::Tools,
            Self::Tools => Self::Failures,
            Self::Failures => Self::Everything,
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Everything => "Timeline",
            Self::Messages => "Timeline: messages",
            Self::Commands => "Timeline: commands",
            Self::Changes => "Timeline: changes of files",
            Self::Tools => "Timeline: tools and agents",
            Self::Failures => "Timeline: failures",
        }
    }

    fn filter(self) -> Filter {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let kinds = match self {
            Self::Everything | Self::Failures => Vec::new(),
            Self::Messages => words(&["userMessage", "agentMessage"]),
            Self::Commands => words(&["commandExecution"]),
            Self::Changes => words(&["fileChange"]),
            Self::Tools => words(&["mcpToolCall", "dynamicToolCall", "collabAgentToolCall", "webSearch"]),
        };
        let statuses = if self == Self::Failures { words(&["failed", "declined"]) } else { Vec::new() };
        Filter { kinds, statuses, ..Filter::default() }
    }
}

/// One entry for each item, oldest first.
pub(super) fn entries(thread: &Thread, only: Only) -> Vec<Entry> {
    let filter = only.filter();
    let mut entries = Vec::new();
    let mut turn = (0, "");
    for found in thread.timeline(&filter) {
        if turn.1 != found.turn.id() {
            let number = thread.turns().iter().position(|turn| turn.id() == found.turn.id()).unwrap_or(0);
            turn = (number + 1, found.turn.id());
        }
        let time = found.at_ms.and_then(DateTime::from_timestamp_millis);
        let time = time.map_or_else(String::new, |time| time.with_timezone(&Local).format("%H:%M:%S").to_string());
        let style = match found.status {
            "failed" => Style::Red,
            "declined" => Style::Yellow,
            _ => Style::Dim,
        };
        let text: String = found.item.texts().join(" ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text: String = printable(&text).chars().take(MOST_CHARS).collect();
        let line = vec![
            Span::new(Style::Hang, format!("{:>4}  {time:<8}  {:<10} ", turn.0, label(found.item.kind()))),
            Span::new(style, if found.status == "completed" { String::new() } else { format!("{} ", found.status) }),
            Span::new(Style::Plain, text),
        ];
        entries.push(Entry::new(json!({"item": found.item.id()}), vec![line]));
    }
    entries
}

/// A short name of a kind.
fn label(kind: &str) -> String {
    let known = [
        ("userMessage", "you"),
        ("agentMessage", "answer"),
        ("reasoning", "reasoning"),
        ("commandExecution", "command"),
        ("fileChange", "change"),
        ("mcpToolCall", "tool"),
        ("dynamicToolCall", "tool"),
        ("collabAgentToolCall", "agent"),
        ("webSearch", "search"),
        ("contextCompaction", "summary"),
        ("enteredReviewMode", "review"),
        ("exitedReviewMode", "review"),
        ("imageView", "picture"),
    ];
    let found = known.iter().find(|(name, _)| *name == kind).map(|(_, label)| (*label).to_owned());
    found.unwrap_or_else(|| printable(kind).chars().take(10).collect())
}

/// The item of an entry.
pub(super) fn item(value: &Value) -> Option<&str> {
    value["item"].as_str().or_else(|| value["itemId"].as_str())
}
