//! The lines that store the drafts of open items, in both directions.
//!
//! One line records the start of an item, in the stored form of complete items; one line each chunk that it grows by;
//! and one its end. They are appended, so a truncated file contains the state of a moment earlier.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Draft, Drafts, MOST_LINES, RunKind, whole_length};
use crate::TurnId;
use crate::item::{KeptItem, StoredItem};

/// The maximum size of a byte of text in a line, and the size of the rest of the line with its ids.
const ESCAPED: u64 = 6;
const AROUND: u64 = 16 * 1024;

#[derive(Serialize)]
struct BegunLine<'a> {
    turn: &'a str,
    position: u64,
    item: KeptItem<'a>,
}

#[derive(Serialize)]
struct RunLine<'a> {
    item: &'a str,
    kind: RunKind,
    index: i64,
    text: Cow<'a, str>,
}

#[derive(Serialize)]
struct ClosedLine<'a> {
    closed: &'a str,
}

/// A decoded line.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum DraftLine {
    Begun { turn: String, position: u64, item: Box<StoredItem> },
    Run { item: String, kind: RunKind, index: i64, text: String },
    Closed { closed: String },
}

impl Drafts {
    /// Whether some text has no line yet.
    #[must_use]
    pub fn has_unsaved(&self) -> bool {
        self.has_unsaved
    }

    /// Whether there are lines although no item is open. The file should be removed then, and its lines are forgotten
    /// here.
    pub fn forget_lines(&mut self) -> bool {
        let is_over = self.line_bytes > 0 && self.open.iter().all(|draft| draft.bytes == 0);
        if is_over {
            (self.closed, self.line_bytes, self.has_unsaved) = (Vec::new(), 0, false);
        }
        is_over
    }

    /// Appends the lines of new text.
    pub fn write(&mut self, out: &mut Vec<u8>) {
        let before = out.len();
        for id in self.closed.drain(..) {
            append(&ClosedLine { closed: id.as_str() }, out);
        }
        for draft in self.open.iter_mut().filter(|draft| draft.bytes > 0) {
            draft.write(self.line_bytes + (out.len() - before) as u64, out);
        }
        self.line_bytes += (out.len() - before) as u64;
        self.has_unsaved = false;
    }
}

impl Draft {
    /// Appends its lines to this many bytes of others, unless there would be too many.
    fn write(&mut self, before: u64, out: &mut Vec<u8>) {
        let begin = out.len();
        for run in &mut self.runs {
            let end = whole_length(&run.bytes);
            let more = &run.bytes[run.kept.min(end)..end];
            let expected = before + (out.len() - begin) as u64 + more.len() as u64 * ESCAPED + AROUND;
            if more.is_empty() || expected > MOST_LINES {
                continue;
            }
            if !self.is_kept {
                let turn = self.turn.as_ref().map(TurnId::as_str).unwrap_or_default();
                append(&BegunLine { turn, position: self.position, item: self.item.stored_form() }, out);
                self.is_kept = true;
            }
            let text = String::from_utf8_lossy(more);
            append(&RunLine { item: self.item.id().as_str(), kind: run.kind, index: run.index, text }, out);
            run.kept = end;
        }
    }
}

/// Appends a line. One that cannot be encoded, which does not happen, is left out.
fn append(line: &impl Serialize, out: &mut Vec<u8>) {
    let before = out.len();
    match serde_json::to_writer(&mut *out, line) {
        Ok(()) => out.push(b'\n'),
        Err(_) => out.truncate(before),
    }
}
