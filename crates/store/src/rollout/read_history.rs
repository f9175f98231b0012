//! Reads the history of a thread from its file.

use std::path::Path;

use codex_log::history::History;
use codex_log::line::{BadLine, Line};
use codex_log::state::{Interrupted, StateReader};
use codex_log::store::Entry;
use codex_wire::rollout::SessionMeta;

use super::base::{self, Base};
use super::lines::{ReadError, RolloutLines, open};
use super::lost_meta::LostMeta;

/// The number of lines within which a file must identify its thread.
const META_LINES: u64 = 10;

/// The maximum number of bad lines that are reported one by one.
const TOLD_BAD_LINES: usize = 100;

/// Folds the lines of a thread, from its base on, into what it needs to resume.
#[derive(Debug)]
pub struct HistoryReader {
    state: StateReader,
    /// The start of the first line.
    start: u64,
    bad_lines: Vec<BadLine>,
}

impl HistoryReader {
    #[must_use]
    pub fn new(meta: SessionMeta, interrupted: Interrupted, base: &Base) -> Self {
        let newest: Vec<Line<'_>> = base.lines.iter().filter_map(|text| Line::parse(text).ok()).collect();
        let state = StateReader::knowing(meta, interrupted, &newest);
        Self { state, start: base.start, bad_lines: Vec::new() }
    }

    /// Takes the next line.
    pub fn entry(&mut self, entry: Entry<'_>) {
        match entry {
            // A later one belongs to a rolled-back turn, or reading would have started there.
            Entry::Line(line) if line.kind == "compacted" && line.range.start != self.start => {}
            Entry::Line(line) => self.state.line(&line),
            Entry::Bad(bad) if self.bad_lines.len() < TOLD_BAD_LINES => self.bad_lines.push(bad),
            Entry::Bad(_) => {}
        }
    }

    #[must_use]
    pub fn finish(self) -> History {
        History { state: self.state.finish(), bad_lines: self.bad_lines }
    }
}

/// Reads what a thread needs to resume. It blocks; run it off the async threads.
pub fn read_history(path: &Path, interrupted: Interrupted) -> Result<History, ReadError> {
    let meta = read_meta(path)?;
    let file = open(path)?;
    let failed = |source| ReadError::Read { path: path.to_owned(), source };
    let base = file.metadata().and_then(|about| base::find(&file, about.len(), &meta)).map_err(failed)?;
    let mut reader = HistoryReader::new(meta, interrupted, &base);
    let lines = file.try_clone().map_err(failed)?;
    let mut lines = RolloutLines::from_offset(path, lines, base.start)?;
    while let Some(entry) = lines.next_entry()? {
        reader.entry(entry);
    }
    let mut history = reader.finish();
    if !history.bad_lines.is_empty() {
        let before = base::count_lines(&file, base.start).map_err(failed)?;
        for bad in &mut history.bad_lines {
            bad.number += before;
        }
    }
    Ok(history)
}

/// The number of user turns in a whole rollout, without those rolled back.
pub fn count_turns(path: &Path) -> Result<usize, ReadError> {
    let file = open(path)?;
    let counted = file.metadata().and_then(|about| base::count_turns(&file, about.len()));
    counted.map_err(|source| ReadError::Read { path: path.to_owned(), source })
}

/// Reads the metadata of a thread.
pub(crate) fn read_meta(path: &Path) -> Result<SessionMeta, ReadError> {
    let mut lines = RolloutLines::open(path)?;
    let mut reader = MetaReader::default();
    while let Some(entry) = lines.next_entry()? {
        if reader.entry(&entry) {
            break;
        }
    }
    let MetaReader { meta, lost, is_broken } = reader;
    let guessed = || if is_broken { None } else { lost.guess(path) };
    meta.or_else(guessed).ok_or_else(|| ReadError::NoMeta { path: path.to_owned() })
}

/// Looks for the line that identifies a thread among the first ones.
#[derive(Debug, Default)]
pub struct MetaReader {
    meta: Option<SessionMeta>,
    lost: LostMeta,
    /// Whether that line is there and cannot be decoded.
    is_broken: bool,
}

impl MetaReader {
    /// Takes the next line, and returns whether no further ones are needed.
    pub fn entry(&mut self, entry: &Entry<'_>) -> bool {
        match entry {
            Entry::Line(line) if line.kind == "session_meta" => {
                self.meta = line.payload_as();
                self.is_broken = self.meta.is_none();
                true
            }
            Entry::Line(line) => {
                self.lost.see(line);
                line.number >= META_LINES
            }
            Entry::Bad(bad) => bad.number >= META_LINES,
        }
    }

    /// The metadata, if it was found.
    #[must_use]
    pub fn meta(self) -> Option<SessionMeta> {
        self.meta
    }
}
