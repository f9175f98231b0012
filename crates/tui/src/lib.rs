//! The chat in a terminal: line by line ([`chat`]), and on the whole screen ([`full`]). Both use the same connection; keys
//! and questions come from `codex-dialogue`, and text from `codex-terminal`.
//!
//! Invariants: outside of [`chat`] and the runner of [`full`], nothing here opens, reads or writes a terminal; no file is
//! opened anywhere.

#![cfg_attr(test, allow(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots that way"))]

pub mod chat;
pub mod full;
mod reply;

pub(crate) use codex_dialogue::question;
pub(crate) use codex_terminal::{Ink, Row, Span, Style, amount, in_brief, one_line, printable, visible};
pub(crate) use codex_terminal::{
    diff, editor, input, key, keymap, laid, markdown, picker, query, rich_text, slash, theme, transcript, vim, wrap,
};
