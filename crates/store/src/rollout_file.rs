//! The file of one thread, open for appending.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Local, SecondsFormat, Utc};
use codex_wire::ids::ThreadId;
use serde::Serialize;

/// Why a rollout could not be made or written.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    /// The folder of the day could not be made.
    #[error("could not make the folder {path}", path = .path.display())]
    Folder {
        /// Which folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file could not be made.
    #[error("could not make the thread's file {path}", path = .path.display())]
    Create {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A line could not be written or synced.
    #[error("could not write to the thread's file {path}", path = .path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A line could not be encoded.
    #[error("could not encode a `{kind}` line")]
    Encode {
        /// The type of the line.
        kind: String,
        /// Why not.
        source: serde_json::Error,
    },
}

/// The file of one thread, open for appending.
///
/// Lines gather in memory until [`RolloutFile::flush`] writes them at once; after a flush has returned, what was
/// appended survives the death of this process, and after a sync that of the machine.
#[derive(Debug)]
pub struct RolloutFile {
    path: PathBuf,
    file: Arc<File>,
    pending: Vec<u8>,
}

#[derive(Serialize)]
struct Line<'a, P: Serialize + ?Sized> {
    timestamp: String,
    #[serde(rename = "type")]
    kind: &'a str,
    payload: &'a P,
}

impl RolloutFile {
    /// Where the file of a thread that starts now belongs, below the folder of all sessions.
    #[must_use]
    pub fn place(sessions: &Path, thread: ThreadId, now: DateTime<Local>) -> PathBuf {
        sessions.join(format!("{}-{thread}.jsonl", now.format("%Y/%m/%d/rollout-%Y-%m-%dT%H-%M-%S")))
    }

    /// Makes the file of a new thread, readable by its owner alone.
    pub fn create(path: PathBuf) -> Result<Self, RolloutError> {
        if let Some(folder) = path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|source| RolloutError::Folder { path: folder.to_owned(), source })?;
        }
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|source| RolloutError::Create { path: path.clone(), source })?;
        Ok(Self { path, file: Arc::new(file), pending: Vec::new() })
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line to those that wait for the next flush.
    pub fn append<P: Serialize + ?Sized>(&mut self, kind: &str, payload: &P) -> Result<(), RolloutError> {
        let timestamp = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        let whole = self.pending.len();
        let line = Line { timestamp, kind, payload };
        if let Err(source) = serde_json::to_writer(&mut self.pending, &line) {
            self.pending.truncate(whole);
            return Err(RolloutError::Encode { kind: kind.to_owned(), source });
        }
        self.pending.push(b'\n');
        Ok(())
    }

    /// Writes what was appended.
    ///
    /// After a failure the lines still wait, so that a later flush can save them once there is room again.
    pub fn flush(&mut self) -> Result<(), RolloutError> {
        while !self.pending.is_empty() {
            match (&*self.file).write(&self.pending) {
                Ok(0) => return Err(self.write_error(io::ErrorKind::WriteZero.into())),
                Ok(written) => drop(self.pending.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.write_error(error)),
            }
        }
        Ok(())
    }

    /// What makes everything flushed so far survive a crash of the machine. It blocks; run it off the async threads.
    pub fn sync(&self) -> impl FnOnce() -> Result<(), RolloutError> + Send + 'static {
        let (file, path) = (Arc::clone(&self.file), self.path.clone());
        move || file.sync_data().map_err(|source| RolloutError::Write { path, source })
    }

    fn write_error(&self, source: io::Error) -> RolloutError {
        RolloutError::Write { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use chrono::TimeZone;
    use serde_json::{Value, json};

    use super::*;

    fn make() -> (tempfile::TempDir, RolloutFile, ThreadId) {
        let home = tempfile::tempdir().unwrap();
        let thread = ThreadId::fresh();
        let now = Local.with_ymd_and_hms(2026, 3, 4, 5, 6, 7).unwrap();
        let place = RolloutFile::place(&home.path().join("sessions"), thread, now);
        let rollout = RolloutFile::create(place).unwrap();
        (home, rollout, thread)
    }

    #[test]
    fn the_path_names_day_time_and_thread() {
        let (home, rollout, thread) = make();
        let expected = format!("sessions/2026/03/04/rollout-2026-03-04T05-06-07-{thread}.jsonl");
        assert_eq!(rollout.path(), home.path().join(expected));
    }

    #[test]
    fn only_the_owner_can_read() {
        let (home, rollout, _) = make();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(rollout.path()), 0o600);
        assert_eq!(mode(&home.path().join("sessions")), 0o700);
        assert_eq!(mode(rollout.path().parent().unwrap()), 0o700);
    }

    #[test]
    fn nothing_is_on_disk_before_the_flush_and_all_of_it_after() {
        let (_home, mut rollout, _) = make();
        rollout.append("event_msg", &json!({"type": "warning", "message": "a\nb"})).unwrap();
        rollout.append("compacted", &json!({"message": "c"})).unwrap();
        assert_eq!(std::fs::read_to_string(rollout.path()).unwrap(), "");
        rollout.flush().unwrap();
        rollout.sync()().unwrap();
        let text = std::fs::read_to_string(rollout.path()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["payload"]["message"], "a\nb");
        assert_eq!(lines[1]["type"], "compacted");
        assert!(lines[0]["timestamp"].as_str().unwrap().ends_with('Z'));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("sessions"), "in the way").unwrap();
        let place = RolloutFile::place(&home.path().join("sessions"), ThreadId::fresh(), Local::now());
        let error = RolloutFile::create(place).unwrap_err();
        assert!(error.to_string().contains("could not make the folder"), "{error}");
    }
}
