//! The lines that keep what items have grown by, in both directions.
//!
//! One tells that an item has begun, in the form in which whole items are kept; one for each run that it grows by; and
//! one that it is over. They are appended, so a file that is cut anywhere tells what there was some moments before.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Draft, Drafts, MOST_LINES, RunKind, whole_length};
use crate::TurnId;
use crate::item::{KeptItem, StoredItem};

/// How many bytes a byte of text has in a line at most, and the rest of the line with the names in it.
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

/// A line as it is read back.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum DraftLine {
    Begun { turn: String, position: u64, item: Box<StoredItem> },
    Run { item: String, kind: RunKind, index: i64, text: String },
    Closed { closed: String },
}

impl Drafts {
    /// Whether there is something that no line tells yet.
    #[must_use]
    pub fn has_unsaved(&self) -> bool {
        self.has_unsaved
    }

    /// Whether there are lines though nothing is open that they could tell of. They are to be thrown away then, and are
    /// forgotten here.
    pub fn forget_lines(&mut self) -> bool {
        let is_over = self.line_bytes > 0 && self.open.iter().all(|draft| draft.bytes == 0);
        if is_over {
            (self.closed, self.line_bytes, self.has_unsaved) = (Vec::new(), 0, false);
        }
        is_over
    }

    /// Appends the lines that tell what is new.
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
    /// Appends its lines to so many bytes of others, unless they would be too many.
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
                append(&BegunLine { turn, position: self.position, item: self.item.kept() }, out);
                self.is_kept = true;
            }
            let text = String::from_utf8_lossy(more);
            append(&RunLine { item: self.item.id().as_str(), kind: run.kind, index: run.index, text }, out);
            run.kept = end;
        }
    }
}

/// Appends a line; nothing of one that cannot be encoded, which none is.
fn append(line: &impl Serialize, out: &mut Vec<u8>) {
    let before = out.len();
    match serde_json::to_writer(&mut *out, line) {
        Ok(()) => out.push(b'\n'),
        Err(_) => out.truncate(before),
    }
}
