//! Turns as they begin: those of children, and reviews.

use codex_protocol::v2::item::{InputItem, ThreadItem};
use codex_protocol::v2::turn::{Turn, TurnStatus};

/// The turn of a review as it begins: with what it is about, as if the user had said that.
#[must_use]
pub fn review_turn(turn: &str, hint: String) -> Turn {
    let content = vec![InputItem::Text { text: hint, text_elements: Vec::new() }];
    let item = ThreadItem::UserMessage { id: turn.to_owned(), client_id: None, content };
    Turn::whole(turn.to_owned(), vec![item], TurnStatus::InProgress)
}

/// A turn as it begins, of a thread that may have begun in a turn of its root.
pub(super) fn begun(turn: &str, root_turn: Option<&str>) -> Turn {
    Turn { root_turn_id: root_turn.unwrap_or(turn).to_owned(), ..Turn::begun(turn.to_owned()) }
}
