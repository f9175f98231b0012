//! Copies a thread up to a point, as a new thread.

use std::path::Path;

use codex_log::history::ForkPoint;
use codex_log::store::{Entry, LineSource, StoreError};
use codex_log::turn_marks::TurnMarks;
use codex_wire::rollout::SessionMeta;

use super::lines::{ReadError, RolloutLines};
use crate::rollout_file::{RolloutError, RolloutFile};

/// The number of bytes after which copied lines are written.
const WRITE_BYTES: usize = 1 << 20;

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

/// Copies a rollout into a new one of a home, with its own meta line. Lines are copied unchanged; unreadable ones are
/// left out. The copy is synced, and the file is open for the thread to continue.
pub fn fork(
    home: &Path,
    source: &Path,
    point: ForkPoint,
    meta: &SessionMeta,
    into: &Path,
) -> Result<RolloutFile, ForkError> {
    let end = match point {
        ForkPoint::End => u64::MAX,
        ForkPoint::Turns(turns) => fork_end(&mut RolloutLines::open(source)?, turns)?,
    };
    let mut lines = RolloutLines::open(source)?;
    let mut copy = RolloutFile::create_in(home, into.to_owned())?;
    match copy_lines(&mut lines, end, meta, &mut copy) {
        Ok(()) => Ok(copy),
        Err(error) => {
            // A partial copy would look like a thread.
            copy.delete();
            Err(error)
        }
    }
}

fn copy_lines(lines: &mut RolloutLines, end: u64, meta: &SessionMeta, copy: &mut RolloutFile) -> Result<(), ForkError> {
    copy.append("session_meta", meta)?;
    while let Some(entry) = lines.next_entry()? {
        let Entry::Line(line) = entry else { continue };
        if line.range.start >= end {
            break;
        }
        if line.kind != "session_meta" {
            copy.append_text(line.text);
        }
        if copy.pending_bytes() >= WRITE_BYTES {
            copy.flush()?;
        }
    }
    copy.flush()?;
    copy.sync()()?;
    Ok(())
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
