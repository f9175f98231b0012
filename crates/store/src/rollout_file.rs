//! The file of one thread, open for appending.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Local, Utc};
use codex_log::encode::LineSink;
use codex_log::store::{Commit, LineError, LogWriter, Payload, Pending, StoreError};
use codex_wire::ids::ThreadId;
use serde::Serialize;

use crate::claim::{Claim, claimant};
use crate::file_part;
use crate::handover;
use crate::holder::Holder;
use crate::line_buffer::{LineBuffer, Target};
use crate::open_files::{self, Slot};
use crate::partial_file::{self, PartialFile};
use crate::rollout::{LONGEST_LINE, is_line, last_line};
use crate::threads::RolloutName;

/// The number of attempts to lock a claimed file, and their interval.
const LOCK_ATTEMPTS: usize = 4;
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// The reason why a rollout could not be created or written.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    #[error("could not create the folder {path}", path = .path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("could not create the thread's file {path}", path = .path.display())]
    Create { path: PathBuf, source: io::Error },
    #[error("could not open the thread's file {path}", path = .path.display())]
    Open { path: PathBuf, source: io::Error },
    /// Another process writes to the file.
    #[error("This thread is open in {holder}. Close it, or run `codex fork {thread}`", thread = thread_name(.path))]
    Locked { path: PathBuf, holder: Holder },
    /// The file was moved, for example because its thread was archived.
    #[error("the thread's file {path} was moved away", path = .path.display())]
    Moved { path: PathBuf },
    #[error("could not write to the thread's file {path}", path = .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("could not encode a `{kind}` line")]
    Encode { kind: String, source: serde_json::Error },
}

/// The file of one thread, open for appending, and locked so that nobody else appends.
///
/// Lines are buffered until [`RolloutFile::flush`] writes them at once; after a flush has returned, they survive the
/// death of this process, and after a sync that of the machine.
///
/// The file of a thread below a home is closed when it is idle and other threads need the descriptor. From then on a
/// claim keeps our other processes from writing it.
#[derive(Debug)]
pub struct RolloutFile {
    appending: Appending,
    pending: LineBuffer,
    partial: PartialFile,
    cut_bytes: u64,
    /// The home whose processes may ask for the thread.
    home: Option<PathBuf>,
}

impl RolloutFile {
    /// The path of a thread that starts now, below the sessions folder.
    #[must_use]
    pub fn place(sessions: &Path, thread: ThreadId, now: DateTime<Local>) -> PathBuf {
        sessions.join(format!("{}-{thread}.jsonl", now.format("%Y/%m/%d/rollout-%Y-%m-%dT%H-%M-%S")))
    }

    /// Creates the file of a new thread of a home, readable only by its owner.
    pub fn create_in(home: &Path, path: PathBuf) -> Result<Self, RolloutError> {
        make_folder(&path)?;
        Self::make(Some(home), path)
    }

    /// Reopens the file of an existing thread of a home. A truncated last line is removed.
    pub fn reopen_in(home: &Path, path: PathBuf) -> Result<Self, RolloutError> {
        // The claim's owner may need the lock at any moment, so it is not even tried.
        nobody_claims(home, &path)?;
        Self::open(Some(home), path)
    }

    /// Creates a file that belongs to no home. It stays open.
    pub fn create(path: PathBuf) -> Result<Self, RolloutError> {
        make_folder(&path)?;
        Self::make(None, path)
    }

    /// Opens a file that belongs to no home. It stays open.
    pub fn reopen(path: PathBuf) -> Result<Self, RolloutError> {
        Self::open(None, path)
    }

    fn make(home: Option<&Path>, path: PathBuf) -> Result<Self, RolloutError> {
        let failed = |source| RolloutError::Create { path: path.clone(), source };
        let mut options = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).clone();
        let file = open_files::open(&mut options, &path).map_err(failed)?;
        let is_locked = lock(&file, &path)?;
        let identity = identity(&file).map_err(failed)?;
        let appending = Appending::new(home, path, file, identity, is_locked)?;
        let (pending, partial, home) = (LineBuffer::default(), PartialFile::default(), home.map(Path::to_owned));
        Ok(Self { appending, pending, partial, cut_bytes: 0, home })
    }

    fn open(home: Option<&Path>, path: PathBuf) -> Result<Self, RolloutError> {
        let failed = |source| RolloutError::Open { path: path.clone(), source };
        let file = open_files::open(OpenOptions::new().read(true).append(true), &path).map_err(failed)?;
        let is_locked = lock(&file, &path)?;
        if let Some(home) = home {
            // A process that has closed the file since has claimed the thread first.
            nobody_claims(home, &path)?;
        }
        if !is_still_at(&file, &path) {
            return Err(RolloutError::Moved { path });
        }
        let EndedFile { cut_bytes, last_ordinal } = end_last_line(&file).map_err(failed)?;
        let end = file.metadata().map_err(failed)?.len();
        let identity = identity(&file).map_err(failed)?;
        let appending = Appending::new(home, path, file, identity, is_locked)?;
        let (pending, home) = (LineBuffer::at(end, last_ordinal), home.map(Path::to_owned));
        Ok(Self { appending, pending, partial: PartialFile::default(), cut_bytes, home })
    }

    /// Whether the file is locked. It is not on file systems without locks.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.appending.is_locked
    }

    /// The number of bytes of a torn line that were removed when the file was opened.
    #[must_use]
    pub fn cut_bytes(&self) -> u64 {
        self.cut_bytes
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.appending.path
    }

    /// Adds a line to those that wait for the next flush. Most of a long one is written at once; if that fails, nothing
    /// is pending any more, as after a failed flush.
    pub fn append<P: Serialize + ?Sized>(&mut self, kind: &str, payload: &P) -> Result<(), RolloutError> {
        self.line(DateTime::<Utc>::from(codex_wire::time::now()).timestamp_millis(), kind, payload)
    }

    fn append_line(&mut self, at_ms: i64, kind: &str, payload: Payload<'_>) -> Result<(), RolloutError> {
        let encoded = self.pending.append(at_ms, kind, payload, &mut self.appending);
        encoded.map_err(|error| match error {
            LineError::Write(source) => RolloutError::Write { path: self.path().to_owned(), source },
            LineError::Encode(source) => RolloutError::Encode { kind: kind.to_owned(), source },
        })
    }

    /// Adds a line of another rollout unchanged.
    pub fn append_text(&mut self, text: &str) {
        self.pending.append_text(text);
    }

    /// Lengthens the last of the appended lines by spaces, so that it ends at the same place of a block as a position.
    pub(crate) fn pad_to(&mut self, position: u64, block: u64) {
        let missing = position.wrapping_sub(self.pending.position()) % block;
        self.pending.pad(usize::try_from(missing).unwrap_or(0));
    }

    /// Writes the appended lines, and after them a part of another file, which consists of whole lines.
    pub(crate) fn append_part(&mut self, source: &File, part: Range<u64>) -> Result<(), RolloutError> {
        self.flush()?;
        let begin = self.pending.position();
        let end = begin + (part.end - part.start);
        let copied = file_part::copy(source, &part, self.path(), begin).and_then(|()| {
            let last = last_line(&*self.appending.file()?, end)?;
            Ok(last.and_then(|line| line.ordinal))
        });
        let last_ordinal = copied.map_err(|source| RolloutError::Write { path: self.path().to_owned(), source })?;
        self.pending = LineBuffer::at(end, last_ordinal);
        Ok(())
    }

    /// The number of bytes that wait for the next flush.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    /// Writes the appended lines.
    ///
    /// After a failure none of them is in the file, and nothing is pending: the caller appends them again once there is
    /// room.
    pub fn flush(&mut self) -> Result<(), RolloutError> {
        let written = self.pending.write_to(&mut self.appending);
        written.map_err(|source| RolloutError::Write { path: self.path().to_owned(), source })
    }

    /// Returns a closure that makes everything flushed so far survive a crash of the machine. It blocks; run it off the
    /// async threads.
    pub fn sync(&mut self) -> impl FnOnce() -> Result<(), RolloutError> + Send + 'static {
        let (file, path) = (self.appending.file(), self.path().to_owned());
        move || file.and_then(|file| file.sync_data()).map_err(|source| RolloutError::Write { path, source })
    }

    /// Deletes the file of a thread that came to nothing.
    pub fn delete(self) {
        // A leftover empty thread is better than an error about an error.
        let _: io::Result<()> = std::fs::remove_file(self.path());
        partial_file::remove(self.path());
    }
}

impl LineSink for RolloutFile {
    type Error = RolloutError;

    fn line<P: Serialize + ?Sized>(&mut self, at_ms: i64, kind: &str, payload: &P) -> Result<(), RolloutError> {
        self.append_line(at_ms, kind, &mut |out| serde_json::to_writer(out, payload))
    }
}

impl LogWriter for RolloutFile {
    fn append(&mut self, at_ms: i64, kind: &str, payload: Payload<'_>) -> Result<(), StoreError> {
        Ok(self.append_line(at_ms, kind, payload)?)
    }

    fn position(&self) -> u64 {
        self.pending.position()
    }

    fn commit(&mut self, durably: bool) -> Commit {
        match self.flush() {
            Ok(()) if durably => {
                let sync = self.sync();
                Commit::Sync(Box::new(move || Ok(sync()?)))
            }
            written => Commit::Done(written.map_err(StoreError::from)),
        }
    }

    fn partial(&mut self, lines: &[u8]) {
        self.partial.append(&self.appending.path, lines);
    }

    fn clear_partial(&mut self) {
        self.partial.clear(&self.appending.path);
    }

    fn take_warning(&mut self) -> Option<String> {
        self.appending.warning.take()
    }

    fn wanted(&self) -> Option<Pending<()>> {
        let name = self.path().file_name()?.to_str()?;
        handover::wanted(self.home.as_deref()?, RolloutName::parse(name)?.id)
    }

    fn discard(self: Box<Self>) {
        self.delete();
    }
}

/// The end of a file, which may be closed between two writes.
#[derive(Debug)]
struct Appending {
    path: PathBuf,
    descriptor: Descriptor,
    /// The identity of the file: device and inode.
    identity: (u64, u64),
    is_locked: bool,
    warning: Option<String>,
}

#[derive(Debug)]
enum Descriptor {
    /// Always open.
    Own(Arc<File>),
    /// Open unless it has been idle for long.
    Shared(Slot),
}

impl Appending {
    fn new(
        home: Option<&Path>,
        path: PathBuf,
        file: File,
        identity: (u64, u64),
        is_locked: bool,
    ) -> Result<Self, RolloutError> {
        let file = Arc::new(file);
        let descriptor = match home {
            Some(home) if is_locked => Descriptor::Shared(Slot::with(home, &path, file, None)),
            // On file systems without locks, a claim is the only protection, if one is possible.
            Some(home) => match Claim::take(home, &path).map_err(locked(&path))? {
                Some(claim) => Descriptor::Shared(Slot::with(home, &path, file, Some(claim))),
                None => Descriptor::Own(file),
            },
            None => Descriptor::Own(file),
        };
        Ok(Self { path, descriptor, identity, is_locked, warning: None })
    }

    fn file(&mut self) -> io::Result<Arc<File>> {
        let slot = match &self.descriptor {
            Descriptor::Own(file) => return Ok(Arc::clone(file)),
            Descriptor::Shared(slot) => slot,
        };
        if let Some(file) = slot.get() {
            return Ok(file);
        }
        let file = Arc::new(open_files::open(OpenOptions::new().read(true).append(true), &self.path)?);
        if identity(&file)? != self.identity {
            return Err(io::Error::other("another file has taken its place"));
        }
        // The claim makes the thread ours. A holder of this lock ignores claims: an earlier release, or a command that
        // may read the file. Neither keeps the thread from continuing.
        self.is_locked = match lock_with_patience(&file, &self.path) {
            Ok(is_locked) => is_locked,
            Err(RolloutError::Locked { path, holder }) => {
                self.warning = Some(format!("the thread's file {} is also open in {holder}", path.display()));
                false
            }
            Err(_) => false,
        };
        slot.put(Arc::clone(&file));
        Ok(file)
    }
}

impl Write for Appending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.file()?).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Target for Appending {
    fn end(&mut self, expected: u64) -> io::Result<u64> {
        let file = self.file()?;
        let found = file.metadata()?.len();
        if found == expected {
            return Ok(expected);
        }
        self.warning = Some(format!(
            "the thread's file {} was changed by another program: it has {found} bytes instead of {expected}",
            self.path.display()
        ));
        end_last_line(&file)?;
        Ok(file.metadata()?.len())
    }

    fn cut(&mut self, end: u64) -> io::Result<()> {
        let file = self.file()?;
        if file.metadata()?.len() > end { file.set_len(end) } else { Ok(()) }
    }
}

/// The id of the thread that a file belongs to, or else the name of the file.
fn thread_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    RolloutName::parse(&name).map_or_else(|| name.to_string(), |name| name.id.to_string())
}

fn make_folder(path: &Path) -> Result<(), RolloutError> {
    let Some(folder) = path.parent() else { return Ok(()) };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| RolloutError::Folder { path: folder.to_owned(), source })
}

fn locked(path: &Path) -> impl Fn(Holder) -> RolloutError {
    |holder| RolloutError::Locked { path: path.to_owned(), holder }
}

fn nobody_claims(home: &Path, path: &Path) -> Result<(), RolloutError> {
    claimant(home, path).map_or(Ok(()), |holder| Err(locked(path)(holder)))
}

/// Locks the file of a claimed thread. Our other processes may have the lock for a moment, until they see the claim.
fn lock_with_patience(file: &File, path: &Path) -> Result<bool, RolloutError> {
    for _ in 0..LOCK_ATTEMPTS {
        match lock(file, path) {
            Err(RolloutError::Locked { .. }) => std::thread::park_timeout(LOCK_PAUSE),
            result => return result,
        }
    }
    lock(file, path)
}

/// Locks a file for its only writer. False if the file system has no locks: continuing without is better than not at
/// all.
fn lock(file: &File, path: &Path) -> Result<bool, RolloutError> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Err(RolloutError::Locked { path: path.to_owned(), holder: Holder::of(file) }),
        Err(TryLockError::Error(_)) => Ok(false),
    }
}

/// Whether a path still leads to an open file.
fn is_still_at(file: &File, path: &Path) -> bool {
    let (Ok(open), Ok(there)) = (file.metadata(), path.metadata()) else { return false };
    (open.dev(), open.ino()) == (there.dev(), there.ino())
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    let about = file.metadata()?;
    Ok((about.dev(), about.ino()))
}

/// A file that ends with a whole line.
#[derive(Debug, Default)]
struct EndedFile {
    /// The number of bytes of a torn line that were removed.
    cut_bytes: u64,
    /// The number of the last line, if it has one.
    last_ordinal: Option<u64>,
}

/// Makes a file end with a whole line: a torn one is removed, and one that lacks only its line break gets it.
fn end_last_line(mut file: &File) -> io::Result<EndedFile> {
    let length = file.metadata()?.len();
    let Some(last) = last_line(file, length)? else { return Ok(EndedFile::default()) };
    if last.is_ended {
        return Ok(EndedFile { cut_bytes: 0, last_ordinal: last.ordinal });
    }
    let torn = length - last.start;
    if torn <= LONGEST_LINE as u64 {
        let mut tail = Vec::new();
        file.seek(SeekFrom::Start(last.start))?;
        file.take(torn).read_to_end(&mut tail)?;
        if is_line(&tail) {
            file.write_all(b"\n")?;
            return Ok(EndedFile { cut_bytes: 0, last_ordinal: last.ordinal });
        }
    }
    file.set_len(last.start)?;
    let before = last_line(file, last.start)?;
    Ok(EndedFile { cut_bytes: torn, last_ordinal: before.and_then(|line| line.ordinal) })
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
        assert!(error.to_string().contains("could not create the folder"), "{error}");
    }

    #[test]
    fn numbers_of_lines_are_continued() {
        let numbered =
            |number: u64| format!("{{\"timestamp\":\"t\",\"ordinal\":{number},\"type\":\"x\",\"payload\":1}}\n");
        let plain = "{\"timestamp\":\"t\",\"type\":\"x\",\"payload\":1}\n".to_owned();
        let torn = numbered(8)[..40].to_owned();
        let whole = numbered(8).trim_end().to_owned();
        for (text, expected) in [
            (numbered(6) + &numbered(7), vec![Some(8), Some(9)]),
            (numbered(7) + &torn, vec![Some(8), Some(9)]),
            (numbered(7) + &whole, vec![Some(9), Some(10)]),
            (numbered(7) + &plain, vec![None, None]),
            (String::new(), vec![None, None]),
        ] {
            let (_home, rollout, _) = make();
            let path = rollout.path().to_owned();
            drop(rollout);
            std::fs::write(&path, &text).unwrap();
            let mut rollout = RolloutFile::reopen(path.clone()).unwrap();
            rollout.append("event_msg", &json!({"n": 1})).unwrap();
            rollout.append("event_msg", &json!({"n": 2})).unwrap();
            rollout.flush().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            let values = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let added: Vec<_> = values.filter(|line| line["type"] == "event_msg").collect();
            let ordinals: Vec<_> = added.iter().map(|line| line["ordinal"].as_u64()).collect();
            assert_eq!(ordinals, expected, "{text}");
        }
    }
}
