//! Finds conversations by the provider's id of an answer, as they were after it.

use std::path::{Path, PathBuf};

use codex_log::history::History;
use codex_log::line::Line;
use codex_log::state::{Interrupted, StateReader};
use codex_log::store::Entry;
use serde::Deserialize;

use super::lines::{ReadError, RolloutLines};
use super::read_history::read_meta;
use crate::threads::{RolloutName, SESSIONS};

/// The maximum number of searched threads, newest first.
const MOST_THREADS: usize = 200;

/// The newest thread of a home in which a turn has ended with this answer, up to there. It reads whole files; run it
/// off the async threads.
#[must_use]
pub fn history_after_answer(home: &Path, response: &str, interrupted: Interrupted) -> Option<History> {
    let mut found = Vec::new();
    collect(&home.join(SESSIONS), 3, &mut found);
    // An unreadable file is no reason not to search the others.
    let has_it = |path: &PathBuf| matches!(ends_with(path, response), Ok(true));
    up_to(found.iter().find(|path| has_it(path))?, response, interrupted).ok()
}

/// Collects rollouts, newest first: the names of folders and files start with the time.
fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut names: Vec<_> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort_unstable_by(|one, other| other.cmp(one));
    for name in names {
        if found.len() == MOST_THREADS {
            return;
        }
        let path = folder.join(&name);
        if depth > 0 {
            collect(&path, depth - 1, found);
        } else if RolloutName::parse(&name).is_some() {
            found.push(path);
        }
    }
}

fn ends_with(path: &Path, response: &str) -> Result<bool, ReadError> {
    let mut lines = RolloutLines::open(path)?;
    while let Some(entry) = lines.next_entry()? {
        if matches!(entry, Entry::Line(line) if ends_with_answer(&line, response)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a line records that a turn has ended with this answer.
#[must_use]
pub fn ends_with_answer(line: &Line<'_>, response: &str) -> bool {
    #[derive(Deserialize)]
    struct End {
        response_id: Option<String>,
    }
    let may_be = line.kind == "event_msg" && line.text.contains("\"response_id\"");
    may_be && line.payload_as::<End>().is_some_and(|end| end.response_id.as_deref() == Some(response))
}

/// The history as it was when the turn ended.
fn up_to(path: &Path, response: &str, interrupted: Interrupted) -> Result<History, ReadError> {
    let mut state = StateReader::new(read_meta(path)?, interrupted);
    let mut lines = RolloutLines::open(path)?;
    while let Some(entry) = lines.next_entry()? {
        let Entry::Line(line) = entry else { continue };
        state.line(&line);
        if ends_with_answer(&line, response) {
            break;
        }
    }
    Ok(History { state: state.finish(), bad_lines: Vec::new() })
}
