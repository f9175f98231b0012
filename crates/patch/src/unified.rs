//! Formats edits as a unified diff.
//!
//! Invariant: the work is proportional to the edits, not to the file.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use crate::edit::Edit;
use crate::text::{BOM, Text};

/// The number of unchanged lines around a change.
const CONTEXT: usize = 3;
/// The time limit for finding a smaller diff. After that it is still correct, but may show more lines than necessary.
const PATIENCE: Duration = Duration::from_millis(250);

/// Differing lines: the old range and its replacement.
struct Change<'a> {
    old: Range<usize>,
    new: Vec<&'a [u8]>,
}

/// The time at which to stop looking for smaller diffs.
pub(crate) fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

/// The diff of edits, without file names.
pub(crate) fn unified(text: &Text, edits: &[Edit], deadline: Instant) -> String {
    let mut changes: Vec<Change> = Vec::new();
    for change in edits.iter().flat_map(|edit| refined(text, edit, deadline)) {
        match changes.last_mut().filter(|last| last.old.end == change.old.start) {
            Some(last) => {
                last.old.end = change.old.end;
                last.new.extend(change.new);
            }
            None => changes.push(change),
        }
    }
    let mut out = String::new();
    let mut added = 0;
    let mut rest = changes.as_slice();
    while !rest.is_empty() {
        let near = |pair: &[Change]| pair[1].old.start - pair[0].old.end <= 2 * CONTEXT;
        let count = 1 + rest.windows(2).take_while(|pair| near(pair)).count();
        let (hunk, others) = rest.split_at(count);
        write_hunk(&mut out, text, hunk, &mut added);
        rest = others;
    }
    out
}

/// The diff of two whole files, without their names.
pub(crate) fn between(old: &[u8], new: &[u8], deadline: Instant) -> String {
    let (old, new) = (Text::with_bom_inside(old), Text::with_bom_inside(new));
    let same = |at: &usize| old.whole(*at) == new.whole(*at);
    let shorter = old.len().min(new.len());
    let start = (0..shorter).take_while(same).count();
    let from_end = |at: &usize| old.whole(old.len() - 1 - at) == new.whole(new.len() - 1 - at);
    let end = (0..shorter - start).take_while(from_end).count();
    let lines = (start..new.len() - end).map(|line| new.whole(line).to_vec()).collect();
    let edit = Edit { old: start..old.len() - end, new: lines };
    if edit.old.is_empty() && edit.new.is_empty() { String::new() } else { unified(&old, &[edit], deadline) }
}

/// The minimal changes within an edit.
fn refined<'a>(text: &Text, edit: &'a Edit, deadline: Instant) -> Vec<Change<'a>> {
    let old: Vec<&[u8]> = edit.old.clone().map(|line| text.whole(line)).collect();
    let new: Vec<&[u8]> = edit.new.iter().map(Vec::as_slice).collect();
    if old.is_empty() || new.is_empty() {
        return vec![Change { old: edit.old.clone(), new }];
    }
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline));
    let change = |op: &DiffOp| {
        let (lines, old) = (op.new_range(), op.old_range());
        Change { old: edit.old.start + old.start..edit.old.start + old.end, new: new[lines].to_vec() }
    };
    ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })).map(change).collect()
}

/// Writes one hunk. `added` is the number of extra lines in the new text so far.
fn write_hunk(out: &mut String, text: &Text, changes: &[Change], added: &mut isize) {
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return };
    let start = first.old.start.saturating_sub(CONTEXT);
    let end = (last.old.end + CONTEXT).min(text.len());
    let new_lines: usize = changes.iter().map(|change| change.new.len()).sum();
    let old_lines: usize = changes.iter().map(|change| change.old.len()).sum();
    let new_start = start.saturating_add_signed(*added);
    out.push_str("@@ -");
    write_range(out, start, end - start);
    out.push_str(" +");
    write_range(out, new_start, end - start + new_lines - old_lines);
    out.push_str(" @@\n");
    let mut at = start;
    let mut new_at = new_start;
    for change in changes {
        for line in at..change.old.start {
            write_line(out, ' ', text.whole(line), text.has_bom() && line == 0);
        }
        new_at += change.old.start - at;
        for line in change.old.clone() {
            write_line(out, '-', text.whole(line), text.has_bom() && line == 0);
        }
        for line in &change.new {
            write_line(out, '+', line, text.has_bom() && new_at == 0);
            new_at += 1;
        }
        at = change.old.end;
    }
    for line in at..end {
        write_line(out, ' ', text.whole(line), text.has_bom() && line == 0);
    }
    *added = added.saturating_add_unsigned(new_lines).saturating_sub_unsigned(old_lines);
}

fn write_range(out: &mut String, start: usize, lines: usize) {
    // Line numbers start at 1, but an empty range is named by the line before it.
    let first = if lines == 0 { start } else { start + 1 };
    out.push_str(&first.to_string());
    if lines != 1 {
        out.push(',');
        out.push_str(&lines.to_string());
    }
}

fn write_line(out: &mut String, sign: char, line: &[u8], bom: bool) {
    out.push(sign);
    if bom {
        out.push_str(&String::from_utf8_lossy(BOM));
    }
    out.push_str(&String::from_utf8_lossy(line));
    if !line.ends_with(b"\n") {
        out.push_str("\n\\ No newline at end of file\n");
    }
}
