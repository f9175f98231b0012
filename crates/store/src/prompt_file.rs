//! The prompt history, one JSON line per prompt, shared by all threads of a home.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use codex_files::Links;
use codex_log::store::PromptHistoryState;
use codex_wire::history::{HistoryEntry, HistoryLine};
use codex_wire::ids::ThreadId;

/// The number of attempts to take another process's lock, and their interval.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// When the file exceeds its limit, it is trimmed to this share of the limit, so that not every prompt trims it again.
const KEPT_PERCENT: u64 = 80;

/// The maximum length of a prompt that is read, and the size of the end of an oversized file that is considered.
const MOST_BYTES_AT_ONCE: u64 = 64 << 20;

/// The reason why a prompt could not be saved.
#[derive(Debug, thiserror::Error)]
pub enum PromptHistoryError {
    #[error("could not write the prompt history {path}", path = .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("the prompt history {path} is locked by another process", path = .path.display())]
    Locked { path: PathBuf },
}

#[derive(Debug, Clone)]
pub struct PromptFile {
    path: PathBuf,
    max_bytes: Option<u64>,
}

impl PromptFile {
    /// The history in a file of at most `limit` bytes.
    #[must_use]
    pub fn new(path: PathBuf, max_bytes: Option<u64>) -> Self {
        Self { path, max_bytes }
    }

    /// Reads the state of the file. A missing or unreadable one counts as empty: it must not keep a thread from
    /// starting.
    #[must_use]
    pub fn look(&self) -> PromptHistoryState {
        self.count().unwrap_or_default()
    }

    /// The prompt at a position, starting with the oldest; `None` if there is none, or if the file is not the one that
    /// the client knows.
    #[must_use]
    pub fn entry(&self, log_id: u64, offset: usize) -> Option<HistoryEntry> {
        let file = codex_files::open(&self.path).ok()?;
        if file.metadata().ok()?.ino() != log_id {
            return None;
        }
        let mut lines = BufReader::new(file);
        for _ in 0..offset {
            if lines.skip_until(b'\n').ok()? == 0 {
                return None;
            }
        }
        let mut line = Vec::new();
        lines.take(MOST_BYTES_AT_ONCE).read_until(b'\n', &mut line).ok()?;
        serde_json::from_slice::<HistoryLine>(&line).ok().map(HistoryEntry::from)
    }

    /// Adds a prompt. It blocks while another process writes; run it off the async threads.
    pub fn add(&self, thread: ThreadId, text: &str) -> Result<(), PromptHistoryError> {
        let error = |source| PromptHistoryError::Write { path: self.path.clone(), source };
        let ts = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let line = HistoryLine { session_id: thread.to_string(), ts, text: text.to_owned() };
        let mut bytes = serde_json::to_vec(&line).map_err(|source| error(source.into()))?;
        bytes.push(b'\n');
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        let opened = codex_files::open_with(&mut options, Links::Followed, &self.path);
        let mut file = opened.map_err(|problem| error(problem.into()))?;
        self.lock(&file)?;
        if ends_in_a_torn_line(&mut file).map_err(error)? {
            bytes.insert(0, b'\n');
        }
        file.write_all(&bytes).map_err(error)?;
        match self.max_bytes {
            Some(limit) => trim(&mut file, limit).map_err(error),
            None => Ok(()),
        }
    }

    fn count(&self) -> io::Result<PromptHistoryState> {
        let file = codex_files::open(&self.path)?;
        let log_id = file.metadata()?.ino();
        let mut lines = BufReader::new(file);
        let mut entries = 0;
        while lines.skip_until(b'\n')? > 0 {
            entries += 1;
        }
        Ok(PromptHistoryState { log_id, entries })
    }

    /// Takes the lock, which is released when the file is closed.
    fn lock(&self, file: &File) -> Result<(), PromptHistoryError> {
        for _ in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) => thread::park_timeout(LOCK_PAUSE),
                Err(TryLockError::Error(source)) => {
                    return Err(PromptHistoryError::Write { path: self.path.clone(), source });
                }
            }
        }
        Err(PromptHistoryError::Locked { path: self.path.clone() })
    }
}

/// Whether a crash has cut the last line, so that the next one would be appended to it.
fn ends_in_a_torn_line(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Drops the oldest lines of an oversized file, in place, so that its identity stays.
fn trim(file: &mut File, limit: u64) -> io::Result<()> {
    let size = file.metadata()?.len();
    if size <= limit {
        return Ok(());
    }
    let target = limit.saturating_mul(KEPT_PERCENT) / 100;
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(size.saturating_sub(limit.max(MOST_BYTES_AT_ONCE))))?;
    file.take(limit.max(MOST_BYTES_AT_ONCE)).read_to_end(&mut text)?;
    let drop_at_least = text.len().saturating_sub(usize::try_from(target).unwrap_or(usize::MAX));
    // The newest prompt stays even if it alone is too long.
    let last_line = text[..text.len().saturating_sub(1)].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let next_line = text[drop_at_least..].iter().position(|byte| *byte == b'\n').map(|at| drop_at_least + at + 1);
    let keep_from = next_line.unwrap_or(last_line).min(last_line);
    file.set_len(0)?;
    file.write_all(&text[keep_from..])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn history(max_bytes: Option<u64>) -> (tempfile::TempDir, PromptFile) {
        let home = tempfile::tempdir().unwrap();
        let history = PromptFile::new(home.path().join("history.jsonl"), max_bytes);
        (home, history)
    }

    fn text(history: &PromptFile, offset: usize) -> Option<String> {
        history.entry(history.look().log_id, offset).map(|entry| entry.text)
    }

    #[test]
    fn prompts_are_added_and_found_again() {
        let (_home, history) = history(None);
        assert_eq!(history.look(), PromptHistoryState::default());
        let thread = ThreadId::fresh();
        history.add(thread, "first\nthing").unwrap();
        history.add(thread, "second").unwrap();
        assert_eq!(history.look().entries, 2);
        assert_eq!(text(&history, 0).as_deref(), Some("first\nthing"));
        assert_eq!(text(&history, 1).as_deref(), Some("second"));
        assert_eq!(text(&history, 2), None);
        assert_eq!(history.path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn another_file_is_not_taken_for_the_known_one() {
        let (_home, history) = history(None);
        history.add(ThreadId::fresh(), "a").unwrap();
        assert_eq!(history.entry(history.look().log_id + 1, 0), None);
    }

    #[test]
    fn the_oldest_prompts_go_when_the_file_outgrows_its_limit() {
        let (_home, history) = history(Some(1000));
        let thread = ThreadId::fresh();
        for number in 0..40 {
            history.add(thread, &format!("prompt {number}")).unwrap();
            assert!(history.path.metadata().unwrap().len() <= 1000);
        }
        let entries = history.look().entries;
        assert!((5..15).contains(&entries), "{entries}");
        assert_eq!(text(&history, entries - 1).as_deref(), Some("prompt 39"));
        history.add(thread, &"long".repeat(1000)).unwrap();
        assert_eq!(history.look().entries, 1);
    }

    #[test]
    fn a_torn_line_is_no_prompt_and_harms_no_other() {
        let (_home, history) = history(None);
        std::fs::write(&history.path, "{torn").unwrap();
        history.add(ThreadId::fresh(), "whole").unwrap();
        assert_eq!(text(&history, 0), None);
        assert_eq!(text(&history, 1).as_deref(), Some("whole"));
    }

    #[test]
    fn a_history_that_never_ends_is_an_empty_one() {
        use codex_files::testing::{Endless, soon};

        for kind in Endless::ALL {
            let (_home, history) = history(Some(1000));
            kind.make(&history.path).unwrap();
            let log_id = history.path.metadata().unwrap().ino();
            let looked_at = history.clone();
            let (state, entry) = soon(move || (looked_at.look(), looked_at.entry(log_id, 0))).unwrap();
            assert_eq!((state, entry), (PromptHistoryState::default(), None), "{kind:?}");
            let adding = history.clone();
            match soon(move || adding.add(ThreadId::fresh(), "x")).unwrap() {
                Ok(()) => assert_eq!((kind, text(&history, 0).as_deref()), (Endless::Sparse, Some("x"))),
                Err(error) => assert!(error.to_string().contains("history.jsonl"), "{error}"),
            }
        }
    }

    #[test]
    fn a_lock_that_is_never_released_is_not_waited_for() {
        let (_home, history) = history(None);
        history.add(ThreadId::fresh(), "a").unwrap();
        // Anyone who may read the file can lock it.
        let reader = File::open(&history.path).unwrap();
        reader.lock().unwrap();
        let waiting = history.clone();
        let error = codex_files::testing::soon(move || waiting.add(ThreadId::fresh(), "b")).unwrap().unwrap_err();
        assert!(matches!(error, PromptHistoryError::Locked { .. }), "{error}");
        assert_eq!(text(&history, 0).as_deref(), Some("a"));
    }
}
