//! The words of a timeline: kinds and states of items, and the start of their texts.

use serde_json::Value;

use crate::board::{Action, Needs};
use codex_terminal::printable;

pub const ACTIONS: &[Action] = &[Action { key: 'f', label: "other kinds", needs: Needs::Nothing }];

/// The longest text of a line.
pub const MOST_CHARS: usize = 300;

/// The state of an item in words, if it is worth any.
#[must_use]
pub fn state(status: &str, is_turn_running: bool) -> String {
    match status {
        "completed" => String::new(),
        "inProgress" if is_turn_running => "running ".to_owned(),
        "inProgress" => "stopped ".to_owned(),
        status => format!("{status} "),
    }
}

/// The start of a text, which is enough for a line.
#[must_use]
pub fn start(text: &str) -> &str {
    let end = text.char_indices().nth(MOST_CHARS).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// The start of a text on one line.
#[must_use]
pub fn brief(text: &str) -> String {
    printable(&start(text).split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

/// A short name of a kind.
#[must_use]
pub fn label(kind: &str) -> String {
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
#[must_use]
pub fn item(value: &Value) -> Option<&str> {
    value["item"].as_str().or_else(|| value["itemId"].as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_words_for_people() {
        assert_eq!((label("userMessage"), label("from the future")), ("you".to_owned(), "from the f".to_owned()));
        assert_eq!(["completed", "failed"].map(|status| state(status, true)), ["", "failed "]);
        assert_eq!([true, false].map(|is_running| state("inProgress", is_running)), ["running ", "stopped "]);
        assert_eq!(brief(" a\n\n b\u{1b} "), "a b\u{fffd}");
        assert_eq!(brief(&"日".repeat(400)).chars().count(), MOST_CHARS);
    }
}
