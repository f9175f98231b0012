//! Terminal output and key handling, without a terminal: styled text, rows of a given width, Markdown, diffs, the line
//! editor, pages and pickers; and the chat, which uses them.
//!
//! Invariants: outside of [`chat`], nothing here opens, reads or writes a terminal, so everything can be tested by value
//! and drawn by any user interface; no file is opened anywhere. Foreign text becomes a [`Span`] only through [`printable`] or [`visible`], which escape
//! control sequences.

#![cfg_attr(test, allow(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots that way"))]

mod brief;
pub mod chat;
pub mod diff;
pub mod editor;
pub mod input;
pub mod key;
pub mod markdown;
pub mod pager;
pub mod picker;
pub mod question;
pub mod slash;
mod style;
mod text;
pub mod transcript;
pub mod wrap;

pub use brief::in_brief;
pub use style::{Ink, Row, Span, Style};
pub use text::{amount, one_line, printable, visible};
