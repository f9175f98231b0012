//! Terminal output and key handling, without a terminal: styled text, rows of a given width, Markdown, diffs, code, the
//! bytes of a terminal as keys, the line editor, pages and pickers.
//!
//! Invariants: nothing here opens, reads or writes a terminal or a file, so everything can be tested by value and drawn by
//! any user interface. Foreign text becomes a [`Span`] only through [`printable`] or [`visible`], which escape control
//! sequences.

#![cfg_attr(test, allow(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots that way"))]

mod brief;
pub mod cluster;
pub mod diff;
pub mod editor;
pub mod highlight;
pub mod input;
pub mod key;
pub mod keymap;
pub mod laid;
pub mod markdown;
pub mod pager;
pub mod picker;
pub mod prompt_text;
pub mod query;
pub mod rich_text;
pub mod selection;
pub mod slash;
mod style;
mod text;
pub mod theme;
pub mod transcript;
pub mod vim;
pub mod wrap;

pub use brief::in_brief;
pub use style::{Ink, Row, Span, Style};
pub use text::{amount, one_line, printable, visible};
