//! Copies a thread up to a point, as a new thread.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use codex_log::history::ForkPoint;
use codex_log::store::{Entry, LineSource, StoreError, StoreErrorKind};
use codex_log::turn_marks::TurnMarks;
use codex_wire::rollout::SessionMeta;

use super::FIRST_LINE;
use super::lines::{ReadError, RolloutLines, ends_line, open};
use crate::file_part::BLOCK;
use crate::rollout_file::{RolloutError, RolloutFile};

/// The number of bytes after which copied lines are written.
const WRITE_BYTES: usize = 1 << 20;

/// The number of bytes that are searched at once.
const SEARCH_BYTES: usize = 256 << 10;

/// The length from which on the copied lines begin at the same place of a block as in the source.
const ALIGNED_BYTES: u64 = 64 << 10;

/// The reason why a thread could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] RolloutError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Copies a rollout into a new one of a home, with its own meta line. Lines are copied unchanged. Up to a position, which
/// the writer of the source knows, they are not even read; otherwise unreadable ones are left out. The file is open for
/// the thread to continue.
pub fn fork(
    home: &Path,
    source: &Path,
    point: ForkPoint,
    meta: &SessionMeta,
    into: &Path,
) -> Result<RolloutFile, ForkError> {
    let (end, rest) = match point {
        ForkPoint::End => (u64::MAX, None),
        ForkPoint::Turns(turns) => (fork_end(&mut RolloutLines::open(source)?, turns)?, None),
        ForkPoint::Position(position) => (position, Rest::of(source, position)?),
    };
    let mut copy = RolloutFile::create_in(home, into.to_owned())?;
    let copied = match rest {
        Some(rest) => rest.copy(meta, &mut copy),
        None => RolloutLines::open(source)
            .map_err(ForkError::from)
            .and_then(|mut lines| copy_lines(&mut lines, end, meta, &mut copy)),
    };
    match copied {
        Ok(()) => Ok(copy),
        Err(error) => {
            // A partial copy would look like a thread.
            copy.delete();
            Err(error)
        }
    }
}

/// The lines of a rollout after the first one, if that one alone names the thread.
struct Rest {
    file: File,
    range: Range<u64>,
}

impl Rest {
    /// The lines up to a position.
    fn of(source: &Path, end: u64) -> Result<Option<Self>, ForkError> {
        if !ends_line(source, end) {
            let text = format!("no line of {} ends at {end}", source.display());
            return Err(StoreError::new(StoreErrorKind::Refused, text).into());
        }
        let mut first = RolloutLines::open_head(source)?;
        let names_thread = matches!(first.next_entry()?, Some(Entry::Line(line)) if line.kind == FIRST_LINE);
        let start = first.offset();
        if !names_thread || start > end {
            return Ok(None);
        }
        let (file, range) = (open(source)?, start..end);
        // Quotes within a text have a backslash, so only the type of a line can look like this. Forks of other releases
        // have several such lines.
        let needle = format!("\"{FIRST_LINE}\"");
        let is_named_again = contains(&file, range.clone(), needle.as_bytes());
        let is_named_again =
            is_named_again.map_err(|error| ReadError::Read { path: source.to_owned(), source: error })?;
        Ok((!is_named_again).then_some(Self { file, range }))
    }

    fn copy(self, meta: &SessionMeta, copy: &mut RolloutFile) -> Result<(), ForkError> {
        copy.append(FIRST_LINE, meta)?;
        if self.range.end - self.range.start >= ALIGNED_BYTES {
            copy.pad_to(self.range.start, BLOCK);
        }
        Ok(copy.append_part(&self.file, self.range)?)
    }
}

/// Whether a part of a file contains some bytes.
fn contains(file: &File, range: Range<u64>, needle: &[u8]) -> io::Result<bool> {
    let (mut buffer, mut kept, mut at) = (vec![0; SEARCH_BYTES], 0, range.start);
    while at < range.end {
        let left = usize::try_from(range.end - at).unwrap_or(usize::MAX);
        let until = buffer.len().min(kept + left);
        let read = file.read_at(&mut buffer[kept..until], at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let filled = kept + read;
        if memchr::memmem::find(&buffer[..filled], needle).is_some() {
            return Ok(true);
        }
        // They may begin here and end in the next part.
        kept = filled.min(needle.len() - 1);
        buffer.copy_within(filled - kept..filled, 0);
        at += read as u64;
    }
    Ok(false)
}

fn copy_lines(lines: &mut RolloutLines, end: u64, meta: &SessionMeta, copy: &mut RolloutFile) -> Result<(), ForkError> {
    copy.append(FIRST_LINE, meta)?;
    while let Some(entry) = lines.next_entry()? {
        let Entry::Line(line) = entry else { continue };
        if line.range.start >= end {
            break;
        }
        if line.kind != FIRST_LINE {
            copy.append_text(line.text);
        }
        if copy.pending_bytes() >= WRITE_BYTES {
            copy.flush()?;
        }
    }
    Ok(copy.flush()?)
}

/// The start of the turn after `turns` turns; past the end if there are fewer.
///
/// # Errors
/// When the lines cannot be read.
pub fn fork_end(lines: &mut dyn LineSource, turns: usize) -> Result<u64, StoreError> {
    let mut marks = TurnMarks::default();
    while let Some(entry) = lines.next_entry()? {
        if let Entry::Line(line) = entry {
            marks.see(&line);
        }
    }
    Ok(marks.starts().nth(turns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn bytes_are_found_wherever_they_are() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'x'; 3 * SEARCH_BYTES]).unwrap();
        for place in [0, SEARCH_BYTES - 3, SEARCH_BYTES, 2 * SEARCH_BYTES - 1, 3 * SEARCH_BYTES - 6] {
            let place = place as u64;
            file.write_all_at(b"needle", place).unwrap();
            let all = 0..3 * SEARCH_BYTES as u64;
            assert!(contains(&file, all.clone(), b"needle").unwrap(), "{place}");
            assert!(!contains(&file, place + 1..all.end, b"needle").unwrap(), "{place}");
            assert!(!contains(&file, 0..place + 5, b"needle").unwrap(), "{place}");
            file.write_all_at(b"xxxxxx", place).unwrap();
        }
        assert!(contains(&file, 0..4 * SEARCH_BYTES as u64, b"needle").is_err(), "the file is shorter");
    }
}
