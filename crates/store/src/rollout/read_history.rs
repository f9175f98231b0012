//! Reads the history of a thread from its file.

use std::path::Path;

use codex_log::history::History;
use codex_log::line::Line;
use codex_log::state::{Interrupted, StateReader};
use codex_log::store::Entry;
use codex_wire::rollout::SessionMeta;

use super::base;
use super::lines::{ReadError, RolloutLines, open};
use super::lost_meta::LostMeta;

/// The number of lines within which a file must identify its thread.
const META_LINES: u64 = 10;

/// The maximum number of bad lines that are reported one by one.
const TOLD_BAD_LINES: usize = 100;

/// Reads what a thread needs to resume. It blocks; run it off the async threads.
pub fn read_history(path: &Path, interrupted: Interrupted) -> Result<History, ReadError> {
    let meta = read_meta(path)?;
    let file = open(path)?;
    let failed = |source| ReadError::Read { path: path.to_owned(), source };
    let base = file.metadata().and_then(|about| base::find(&file, about.len())).map_err(failed)?;
    let newest: Vec<Line<'_>> = base.lines.iter().filter_map(|text| Line::parse(text).ok()).collect();
    let mut state = StateReader::knowing(meta, interrupted, &newest);
    let mut bad_lines = Vec::new();
    let reader = file.try_clone().map_err(failed)?;
    let mut lines = RolloutLines::from_offset(path, reader, base.start)?;
    while let Some(entry) = lines.next_entry()? {
        match entry {
            // A later one belongs to a rolled-back turn, or reading would have started there.
            Entry::Line(line) if line.kind == "compacted" && line.range.start != base.start => {}
            Entry::Line(line) => state.line(&line),
            Entry::Bad(bad) if bad_lines.len() < TOLD_BAD_LINES => bad_lines.push(bad),
            Entry::Bad(_) => {}
        }
    }
    if !bad_lines.is_empty() {
        let before = base::count_lines(&file, base.start).map_err(failed)?;
        for bad in &mut bad_lines {
            bad.number += before;
        }
    }
    Ok(History { state: state.finish(), bad_lines })
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
    let mut lost = LostMeta::default();
    while let Some(entry) = lines.next_entry()? {
        match entry {
            Entry::Line(line) if line.kind == "session_meta" => {
                return line.payload_as().ok_or_else(|| ReadError::NoMeta { path: path.to_owned() });
            }
            Entry::Line(line) => {
                lost.see(&line);
                if line.number >= META_LINES {
                    break;
                }
            }
            Entry::Bad(bad) if bad.number >= META_LINES => break,
            Entry::Bad(_) => {}
        }
    }
    lost.guess(path).ok_or_else(|| ReadError::NoMeta { path: path.to_owned() })
}
