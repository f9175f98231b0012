//! The timeline: every item of a thread on a line, by kind and text.

use std::path::Path;

use chrono::{DateTime, Local};
use codex_client::state::{Item, Thread};
use codex_client::timeline::Filter;
use serde_json::{Value, json};

use crate::{Span, Style, diff, rich_text};
use codex_views::board::Entry;
use codex_views::timeline::{MOST_CHARS, brief, label, start, state};

/// The most files that a line names.
const MOST_PATHS: usize = 20;

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
pub(super) fn entries(thread: &Thread, only: Only, cwd: &Path) -> Vec<Entry> {
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
        let (text, more) = texts(found.item, cwd);
        let line = vec![
            Span::new(Style::Hang, format!("{:>4}  {time:<8}  {:<10} ", turn.0, label(found.item.kind()))),
            Span::new(style, state(found.status, found.turn.status() == "inProgress")),
            Span::new(Style::Plain, text),
            Span::new(Style::Dim, if more.is_empty() { more } else { format!("  {more}") }),
        ];
        entries.push(Entry::new(json!({"item": found.item.id()}), vec![line]));
    }
    entries
}

/// The text of an item on one line: what it is about, and the start of the rest.
fn texts(item: &Item, cwd: &Path) -> (String, String) {
    let text = |name: &str| item.members().get(name).and_then(Value::as_str).unwrap_or_default();
    let members = item.members();
    match item.kind() {
        "commandExecution" => {
            let command = crate::chat::command_text(text("command"));
            (brief(&command), brief(text("aggregatedOutput")))
        }
        "fileChange" => {
            let changes = members.get("changes").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let part = |change: &Value, name: &str| change[name].as_str().unwrap_or_default().to_owned();
            let paths = changes.iter().map(|change| diff::relative(Path::new(&part(change, "path")), cwd));
            let first = changes.first().map(|change| part(change, "diff")).unwrap_or_default();
            (brief(&paths.take(MOST_PATHS).collect::<Vec<_>>().join(", ")), brief(&first))
        }
        "agentMessage" | "reasoning" | "plan" | "exitedReviewMode" => {
            let text = item.texts().into_iter().next().unwrap_or_default();
            let lines = rich_text::lines(start(text), MOST_CHARS);
            let words = lines.iter().map(|line| line.iter().map(|span| span.text.as_str()).collect::<String>());
            (brief(&words.collect::<Vec<_>>().join(" ")), String::new())
        }
        _ => (brief(&item.texts().into_iter().map(start).collect::<Vec<_>>().join(" ")), String::new()),
    }
}
