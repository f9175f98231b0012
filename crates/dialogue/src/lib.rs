//! A dialogue with a person in a terminal: the keys they press, the questions they answer, the prompts they have sent, and
//! a screen that appends lines. It does not know what the dialogue is about.
//!
//! Invariants: outside of [`keys`], [`paint`] and [`screen`], nothing here opens, reads or writes a terminal; no file is opened
//! anywhere. A key answers a question only if it was pressed after the choices were shown.

#![cfg_attr(test, allow(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots that way"))]

mod ask;
pub mod clipboard;
pub mod draft;
pub mod first_run;
pub mod form;
mod history;
pub mod keys;
pub mod message;
pub mod paint;
mod program;
pub mod question;
pub mod screen;
pub mod status_program;

pub use ask::{ChatEnd, Dialogue, StopSignal, ask};
pub use history::{History, SavedPrompts};

pub(crate) use codex_terminal::{Ink, Row, Span, Style, one_line, printable, visible};
pub(crate) use codex_terminal::{editor, input, key, pager, transcript, wrap};
