//! The names of threads: a file of lines that is only appended to, where the newest line of a thread counts.

use std::collections::HashMap;
use std::fs::{OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use codex_files::Links;
use codex_wire::ids::ThreadId;
use serde::{Deserialize, Serialize};

/// The file below the home, shared with other releases.
pub(crate) const NAMES_FILE: &str = "session_index.jsonl";

/// The maximum size of the file of names.
const MOST_BYTES: u64 = 64 << 20;

/// The number of attempts to take another process's lock, and their interval.
const LOCK_TRIES: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

#[derive(Serialize, Deserialize)]
struct NameLine {
    id: ThreadId,
    thread_name: String,
    #[serde(default)]
    updated_at: String,
}

/// The names of all threads that have one. Unreadable lines are ignored.
pub(crate) fn read_names(path: &Path) -> io::Result<HashMap<ThreadId, String>> {
    let mut names = HashMap::new();
    let text = match codex_files::read(path, MOST_BYTES) {
        Ok(text) => text,
        Err(error) if error.is_not_found() => return Ok(names),
        Err(error) => return Err(error.into()),
    };
    for line in text.split(|byte| *byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<NameLine>(line) else { continue };
        if line.thread_name.is_empty() {
            names.remove(&line.id);
        } else {
            names.insert(line.id, line.thread_name);
        }
    }
    Ok(names)
}

/// Names a thread. An empty name removes its name.
pub(crate) fn append_name(path: &Path, thread: ThreadId, name: &str) -> io::Result<()> {
    let updated_at = DateTime::<Utc>::from(codex_wire::time::now()).to_rfc3339_opts(SecondsFormat::Millis, true);
    let line = NameLine { id: thread, thread_name: name.to_owned(), updated_at };
    let mut bytes = serde_json::to_vec(&line)?;
    bytes.push(b'\n');
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    let mut file = codex_files::open_with(&mut options, Links::Followed, path)?;
    for _ in 0..LOCK_TRIES {
        // Nobody holds it for longer than one write. Without locks, short appends do not interleave either.
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::park_timeout(LOCK_PAUSE),
            Ok(()) | Err(TryLockError::Error(_)) => break,
        }
    }
    if file.seek(SeekFrom::End(0))? > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            bytes.insert(0, b'\n');
        }
    }
    file.write_all(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_name_counts_and_a_torn_line_harms_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAMES_FILE);
        assert!(read_names(&path).unwrap().is_empty());
        let (one, two) = (ThreadId::fresh(), ThreadId::fresh());
        append_name(&path, one, "first").unwrap();
        append_name(&path, two, "second").unwrap();
        std::fs::File::options().append(true).open(&path).unwrap().write_all(b"{\"id\":\"to").unwrap();
        append_name(&path, one, "a \"better\" one").unwrap();
        append_name(&path, two, "").unwrap();
        assert_eq!(read_names(&path).unwrap(), HashMap::from([(one, "a \"better\" one".to_owned())]));
    }

    #[test]
    fn names_that_never_end_are_an_error() {
        use codex_files::testing::{Endless, soon};

        for kind in Endless::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(NAMES_FILE);
            kind.make(&path).unwrap();
            let again = path.clone();
            let error = soon(move || read_names(&path)).unwrap().unwrap_err();
            assert_eq!(error.to_string(), kind.complaint(Some(MOST_BYTES)));
            let named = soon(move || append_name(&again, ThreadId::fresh(), "x")).unwrap();
            assert!(named.is_err() || kind == Endless::Sparse, "{kind:?}");
        }
    }
}
