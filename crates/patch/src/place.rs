//! Finds the place of every chunk in the text of a file.

use crate::grammar::{Chunk, Line};
use crate::nearest::{self, Nearest};
use crate::seek::Index;

/// A chunk and its place.
pub(crate) struct Placed<'p> {
    /// The first line of the text that the chunk covers.
    pub(crate) at: usize,
    /// The effective lines of the chunk.
    pub(crate) lines: &'p [Line],
    pub(crate) chunk: &'p Chunk,
}

/// The reason why a chunk has no place.
pub(crate) struct Misplaced {
    /// The number of the chunk, starting at 1.
    pub(crate) hunk: usize,
    /// The missing anchor; `None` if the lines themselves are missing.
    pub(crate) anchor: Option<String>,
    /// The lines that were searched for.
    pub(crate) wanted: Vec<String>,
    pub(crate) nearest: Option<Nearest>,
}

/// Finds the places of all chunks, each below the previous one.
pub(crate) fn place<'p>(index: &Index, chunks: &'p [Chunk]) -> Result<Vec<Placed<'p>>, Misplaced> {
    let mut from = 0;
    let mut placed: Vec<Placed> = Vec::with_capacity(chunks.len());
    for (number, chunk) in chunks.iter().enumerate() {
        let misplaced = |anchor: Option<&String>, wanted: Vec<&str>| Misplaced {
            hunk: number + 1,
            anchor: anchor.cloned(),
            nearest: nearest::find(index, &wanted, from, chunk.end_of_file && anchor.is_none()),
            wanted: wanted.into_iter().map(str::to_owned).collect(),
        };
        let mut below = from;
        for anchor in &chunk.anchors {
            below = index.find(&[anchor], below).ok_or_else(|| misplaced(Some(anchor), vec![anchor]))? + 1;
        }
        let Some((at, lines)) = place_one(index, chunk, from, below) else {
            return Err(misplaced(None, chunk.old().map(|line| line.text.as_str()).collect()));
        };
        // Lines appended at the end do not constrain the next chunk.
        if !old_lines(lines).is_empty() || !chunk.anchors.is_empty() {
            from = at + old_lines(lines).len();
        }
        placed.push(Placed { at, lines, chunk });
    }
    placed.sort_by_key(|placed| placed.at);
    Ok(placed)
}

/// Finds the place of one chunk below line `from`, and below its anchors, which end at line `below`.
fn place_one<'p>(index: &Index, chunk: &'p Chunk, from: usize, below: usize) -> Option<(usize, &'p [Line])> {
    let all = chunk.lines.as_slice();
    let end = all.iter().rposition(|line| !line.bare).map_or(0, |last| last + 1);
    let start = all.iter().position(|line| !line.bare).unwrap_or(0).min(end);
    // Empty lines without a prefix may be intended, or accidental.
    let mut tries = vec![all, &all[..end], &all[start..end]];
    tries.dedup_by_key(|lines| lines.len());
    tries.into_iter().find_map(|lines| {
        let old = old_lines(lines);
        let at = if old.is_empty() {
            let follows_anchor = !chunk.anchors.is_empty() && !chunk.end_of_file;
            Some(if follows_anchor { below } else { index.text.len() })
        } else if chunk.end_of_file {
            index.find_at_end(&old, below)
        } else {
            // The anchor may be repeated as the first line of context.
            index.find(&old, below).or_else(|| {
                let repeated = chunk.anchors.last().is_some_and(|anchor| old[0].trim() == anchor.trim());
                (repeated && below > from).then(|| index.find(&old, below - 1).filter(|at| *at == below - 1))?
            })
        };
        Some((at?, lines))
    })
}

fn old_lines(lines: &[Line]) -> Vec<&str> {
    let old = |line: &&Line| line.kind != crate::grammar::LineKind::Add;
    lines.iter().filter(old).map(|line| line.text.as_str()).collect()
}
