//! The file beside a rollout that keeps what items have grown by until they are whole, see [`codex_log::draft`].
//!
//! Its name does not end as those of rollouts do, and holds the thread's id in part only: 0.77 takes the first file whose name
//! has the whole id for the rollout. Nobody waits for it: what cannot be written is missed only if the program dies before the
//! items are whole.
//!
//! Invariants: what is left of a dead program is told by the lines of the thread or by this file, never by both; while
//! somebody writes the thread, this file tells nobody anything.

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

/// Held while a file is read or taken up, so that nobody of this process sees a thread in between.
static TAKING_UP: Mutex<()> = Mutex::new(());

/// The file of a thread that is written.
#[derive(Debug, Default)]
pub(crate) struct PartialFile {
    /// Whether it may end with a part of a line, after which nothing would be read.
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

/// Where it lies: `rollout-5388245a0916.partial` beside `rollout-2026-01-02T03-04-05-01a1de3b-14fd-7922-828f-5388245a0916.jsonl`.
fn path_of(rollout: &Path) -> PathBuf {
    let stem = rollout.file_stem().unwrap_or_default().to_string_lossy();
    let id = stem.rsplit('-').next().unwrap_or_default();
    rollout.with_file_name(format!("rollout-{id}.partial"))
}

/// Removes the file beside a rollout, if there is one. One that stays tells nothing that the rollout does not.
pub(crate) fn remove(rollout: &Path) {
    let _: io::Result<()> = std::fs::remove_file(path_of(rollout));
}

/// Moves the file beside a rollout with it, if there is one.
pub(crate) fn rename(from: &Path, to: &Path) {
    // Without it the thread is whole but for the end of an answer.
    let _: io::Result<()> = std::fs::rename(path_of(from), path_of(to));
}

/// Keeps readers away from a thread that is about to be opened, if something is left of it to take up.
pub(crate) fn hold(rollout: &Path) -> Option<MutexGuard<'static, ()>> {
    path_of(rollout).symlink_metadata().ok()?;
    Some(TAKING_UP.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Puts what is left of an answer into the rollout that was opened, for good.
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
    // What could not be written is tried again when the thread is opened again.
    if { written }().is_ok() {
        remove(&path);
    }
}

/// What a reader of a rollout is told after its lines.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// Where these end. What comes after is the same once more, in a rollout that was opened meanwhile.
    pub(crate) end: u64,
    /// The lines that the rollout will have once the thread is opened.
    pub(crate) lines: Vec<String>,
}

impl Tail {
    /// What is left of a thread that nobody writes; none if nothing is.
    pub(crate) fn of(rollout: &Path) -> Option<Self> {
        let _held = hold(rollout)?;
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

/// The items that nobody has ended, as they were when they were written last.
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

/// Whether somebody writes a thread.
fn is_written(rollout: &Path) -> bool {
    let is_folder = |folder: &&Path| folder.ends_with(SESSIONS) || folder.ends_with(ARCHIVED);
    let home = rollout.ancestors().find(is_folder).and_then(Path::parent);
    if home.is_some_and(|home| claimant(home, rollout).is_some()) {
        return true;
    }
    let Ok(file) = codex_files::open(rollout) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}
