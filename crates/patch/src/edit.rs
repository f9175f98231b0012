//! Turns placed chunks into edits of a text, and edits into its new bytes.
//!
//! Invariant: lines that no chunk removes keep their bytes, except that the last line gains or loses its ending when
//! the end of the file moves. A line that a patch adds is a whole line, even at the end of a file without a final
//! newline; otherwise the file keeps its final newline or the lack of it, unless the patch says otherwise.

use std::ops::Range;

use crate::grammar::{Line, LineKind};
use crate::place::Placed;
use crate::text::{BOM, Ending, Text};

/// Lines of a text and their replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) old: Range<usize>,
    /// The replacement lines, with their endings.
    pub(crate) new: Vec<Vec<u8>>,
}

/// The edits for placed chunks, from the top of the text to its end.
pub(crate) fn edits(text: &Text, placed: &[Placed]) -> Vec<Edit> {
    let mut edits = Vec::new();
    for placed in placed {
        let mut at = placed.at;
        let (mut removed, mut added) = (0, Vec::new());
        for line in placed.lines {
            match line.kind {
                LineKind::Context => {
                    edits.extend(edit(text, at - removed..at, &added));
                    (removed, added) = (0, Vec::new());
                    at += 1;
                }
                LineKind::Remove => {
                    removed += 1;
                    at += 1;
                }
                LineKind::Add => added.push(line),
            }
        }
        edits.extend(edit(text, at - removed..at, &added));
    }
    let said = placed.iter().rev().find_map(|placed| placed.chunk.final_newline);
    let is_added = edits.last().is_some_and(|edit: &Edit| edit.old.end == text.len() && !edit.new.is_empty());
    settle_end(text, &mut edits, said.unwrap_or_else(|| is_added || text.ends_with_newline()));
    edits
}

fn edit(text: &Text, old: Range<usize>, added: &[&Line]) -> Option<Edit> {
    let near = if old.is_empty() { old.start.saturating_sub(1) } else { old.end - 1 };
    let mut new = Vec::with_capacity(added.len());
    for (offset, line) in added.iter().enumerate() {
        let replaced = old.start + offset;
        let ending = if line.carriage_return {
            Ending::CrLf
        } else {
            text.ending_near(if replaced < old.end { replaced } else { near })
        };
        let mut body = line.text.as_bytes();
        if text.has_bom() && replaced == 0 {
            body = body.strip_prefix(BOM).unwrap_or(body);
        }
        new.push([body, ending.bytes()].concat());
    }
    (!old.is_empty() || !new.is_empty()).then_some(Edit { old, new })
}

/// Ensures that all lines but the last have an ending, and the last as requested.
fn settle_end(text: &Text, edits: &mut Vec<Edit>, newline: bool) {
    let end = text.len();
    let Some(mut last) = edits.pop_if(|edit| edit.old.end == end) else {
        if end > 0 && text.ends_with_newline() != newline {
            edits.push(Edit { old: end - 1..end, new: vec![last_line(text, end - 1, newline)] });
        }
        return;
    };
    // Adjacent edits are merged, so that the line before this one is unchanged.
    while let Some(before) = edits.pop_if(|edit| edit.old.end == last.old.start) {
        last = Edit { old: before.old.start..end, new: [before.new, last.new].concat() };
    }
    if last.old.start > 0 {
        let kept = last.old.start - 1;
        let needs_ending = !last.new.is_empty() && text.ending(kept) == Ending::None;
        let loses_ending = last.new.is_empty() && !newline;
        if needs_ending || loses_ending {
            last.old.start = kept;
            last.new.insert(0, last_line(text, kept, needs_ending));
        }
    }
    if let Some(line) = last.new.last_mut().filter(|_| !newline) {
        let ending = Text::with_bom_inside(line).ending_near(0);
        if line.ends_with(ending.bytes()) {
            line.truncate(line.len() - ending.bytes().len());
        }
    }
    edits.push(last);
}

/// A line of the text with or without an ending.
fn last_line(text: &Text, line: usize, newline: bool) -> Vec<u8> {
    let ending = if newline { text.ending_near(line) } else { Ending::None };
    [text.body(line), ending.bytes()].concat()
}

/// The text after the edits.
pub(crate) fn edited(text: &Text, edits: &[Edit]) -> Vec<u8> {
    let mut bytes = text.prefix().to_vec();
    let mut at = 0;
    for edit in edits {
        bytes.extend_from_slice(text.piece(at..edit.old.start));
        edit.new.iter().for_each(|line| bytes.extend_from_slice(line));
        at = edit.old.end;
    }
    bytes.extend_from_slice(text.piece(at..text.len()));
    bytes
}
