//! What a terminal shows and what keys do, without a terminal: styled text, rows of a width, Markdown, diffs, the line
//! that is being typed, pages and pickers.
//!
//! Invariants: nothing here opens, reads or writes a terminal or a file, so everything can be tested by its values and drawn by any user
//! interface. Text of others becomes a [`Span`] only through [`printable`] or [`visible`], so that a terminal obeys
//! none of it.

#![cfg_attr(test, allow(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots that way"))]

pub mod diff;
pub mod editor;
pub mod key;
pub mod markdown;
pub mod page;
pub mod pages;
pub mod picker;
pub mod question;
pub mod slash;
mod style;
mod text;
pub mod wrap;

pub use style::{Ink, Row, Span, Style};
pub use text::{printable, visible};
