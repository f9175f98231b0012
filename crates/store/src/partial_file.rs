//! The file next to a rollout that keeps the text of open items until they are complete, see [`codex_log::draft`].
//!
//! Its name does not end like that of a rollout, and contains only a part of the thread's id: 0.77 treats the first
//! file whose name contains the whole id as the rollout. Nothing depends on it: text that cannot be written is missing
//! only if the program dies before the items are complete.
//!
//! Invariants: the leftovers of a dead program are reported either by the lines of the thread or by this file, never by
//! both; while a process writes the thread, this file is ignored.

use std::fs::{OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use codex_files::Links;
use codex_log::Event;
use codex_log::draft::{MOST_LINES, Partial};
use codex_log::encode::{LineSink, encode};
use codex_log::store::{Entry, LineError, write_line};
use codex_wire::ids::ThreadId;
use serde::Serialize;

use crate::claim::claimant;
use crate::rollout::{RolloutLines, ends_line};
use crate::rollout_file::{RolloutError, RolloutFile};
use crate::threads::{ARCHIVED, RolloutName, SESSIONS};

/// Held while a file is read or moved to the rollout, so that no thread of this process sees an intermediate state.
static TAKING_UP: Mutex<()> = Mutex::new(());

/// The file of a thread that is being written.
#[derive(Debug, Default)]
pub(crate) struct PartialFile {
    /// Whether it may end with a partial line, after which nothing would be read.
    is_broken: bool,
}

impl PartialFile {
    pub(crate) fn append(&mut self, rollout: &Path, lines: &[u8]) {
        if !self.is_broken && !lines.is_empty() {
            self.is_broken = append(rollout, lines).is_err();
        }
    }

    pub(crate) fn clear(&mut self, rollout: &Path) {
        remove(rollout);
        self.is_broken = false;
    }
}

fn append(rollout: &Path, lines: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    codex_files::open_with(&mut options, Links::Refused, &path_of(rollout))?.write_all(lines)
}

/// Its path: `rollout-5388245a0916.partial` next to
/// `rollout-2026-01-02T03-04-05-01a1de3b-14fd-7922-828f-5388245a0916.jsonl`.
fn path_of(rollout: &Path) -> PathBuf {
    let stem = rollout.file_stem().unwrap_or_default().to_string_lossy();
    let id = stem.rsplit('-').next().unwrap_or_default();
    rollout.with_file_name(format!("rollout-{id}.partial"))
}

/// Removes the file next to a rollout, if there is one. A leftover contains nothing that the rollout does not.
pub(crate) fn remove(rollout: &Path) {
    let _: io::Result<()> = std::fs::remove_file(path_of(rollout));
}

/// Moves the file along with its rollout, if there is one.
pub(crate) fn rename(from: &Path, to: &Path) {
    // Without it the thread is complete except for the end of an answer.
    let _: io::Result<()> = std::fs::rename(path_of(from), path_of(to));
}

/// Keeps readers away from a thread that is about to be opened, if it has leftovers.
pub(crate) fn hold(rollout: &Path) -> Option<MutexGuard<'static, ()>> {
    path_of(rollout).symlink_metadata().ok()?;
    Some(TAKING_UP.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Moves the leftovers of an answer to the opened rollout.
pub(crate) fn take_up(file: &mut RolloutFile) {
    let path = file.path().to_owned();
    let events = broken_off(&path).unwrap_or_default();
    let written = || -> Result<(), RolloutError> {
        for event in &events {
            encode(event, file)?;
        }
        file.flush()?;
        if events.is_empty() { Ok(()) } else { file.sync()() }
    };
    // If the write fails, it is retried when the thread is opened again.
    if { written }().is_ok() {
        remove(&path);
    }
}

/// The lines that a reader of a rollout gets after those of the file.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// The length of the file. Later lines are duplicates, in a rollout that was opened in the meantime.
    pub(crate) end: u64,
    /// The lines that the rollout will have once the thread is opened.
    pub(crate) lines: Vec<String>,
}

impl Tail {
    /// The leftovers of a thread that nobody writes; `None` if there are none.
    pub(crate) fn of(rollout: &Path) -> Option<Self> {
        let _lock = hold(rollout)?;
        if is_written(rollout) {
            return None;
        }
        let end = rollout.metadata().ok()?.len();
        let mut tail = Self { end, lines: Vec::new() };
        broken_off(rollout)?.iter().try_for_each(|event| encode(event, &mut tail)).ok()?;
        (!tail.lines.is_empty()).then_some(tail)
    }
}

impl LineSink for Tail {
    type Error = LineError;

    fn line<P: Serialize + ?Sized>(&mut self, at_ms: i64, kind: &str, payload: &P) -> Result<(), LineError> {
        let mut line = Vec::new();
        write_line(&mut line, at_ms, kind, &mut |out| serde_json::to_writer(out, payload))?;
        line.pop();
        self.lines.extend(String::from_utf8(line));
        Ok(())
    }
}

/// The open items, as of their last write.
fn broken_off(rollout: &Path) -> Option<Vec<Event>> {
    let file = codex_files::open(&path_of(rollout)).ok()?;
    let written = file.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let mut partial = Partial::read(&codex_files::read_open(&file, MOST_LINES).ok()?);
    let position = partial.position()?;
    if !ends_line(rollout, position) {
        return None;
    }
    let mut lines = RolloutLines::open_at(rollout, position).ok()?;
    while let Some(entry) = lines.next_entry().ok()? {
        if let Entry::Line(line) = entry {
            partial.take(&line);
        }
    }
    let name = rollout.file_name()?.to_str().and_then(RolloutName::parse);
    let thread = name.map_or_else(ThreadId::unknown, |name| name.id);
    Some(partial.broken_off(thread, i64::try_from(written.as_millis()).unwrap_or_default()))
}

/// Whether a process writes a thread.
fn is_written(rollout: &Path) -> bool {
    let is_folder = |folder: &&Path| folder.ends_with(SESSIONS) || folder.ends_with(ARCHIVED);
    let home = rollout.ancestors().find(is_folder).and_then(Path::parent);
    if home.is_some_and(|home| claimant(home, rollout).is_some()) {
        return true;
    }
    let Ok(file) = codex_files::open(rollout) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}
