//! What a terminal shows and what keys do, without a terminal: styled text, rows of a width, Markdown, diffs, the line
//! that is being typed, pages and pickers.
//!
//! Invariants: nothing here reads or writes anything, so everything can be tested by its values and drawn by any user
//! interface. Text of others becomes a [`Span`] only through [`printable`] or [`visible`], so that a terminal obeys
//! none of it.

pub mod diff;
pub mod editor;
pub mod key;
pub mod markdown;
pub mod pages;
pub mod picker;
mod style;
mod text;
pub mod wrap;

pub use style::{Ink, Row, Span, Style};
pub use text::{printable, visible};
