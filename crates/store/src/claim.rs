//! Claims: the threads that this process writes, visible to other processes while the files of these threads are
//! closed.
//!
//! An open file has its own lock, so a claim is made only when the file of an idle thread is closed
//! ([`open_files`](crate::open_files)): most threads never need one.
//!
//! A lock needs an open descriptor, and a server may have ten thousand threads. So each process locks one file of its
//! own, and a claim to a thread is another name of that file: a hard link below `run/threads` named after the thread. A
//! process that wants the thread finds the name taken, and the file behind it locked for as long as its owner lives.
//! When a process dies, in whatever way, its lock is released, and with it all of its claims.
//!
//! Invariant: of all processes that claim the threads of one home, at most one holds the claim to a thread. Sandboxed
//! commands cannot see `run`, so none of them can hold a lock there.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, DirEntryExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use codex_wire::ids::ThreadId;
use rustix::io::Errno;

use crate::holder::Holder;
use crate::open_files;
use crate::threads::{ARCHIVED, RolloutName, SESSIONS};

/// The folder of claims in a home, with one name for each written thread.
const CLAIMS: &str = "run/threads";
/// The folder of the writing processes' files.
const WRITERS: &str = "run/writers";
/// The time limit for retrying a claim while others come and go, or for removing the leftovers of a dead process.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pause before the next attempt.
const PAUSE: Duration = Duration::from_millis(2);

/// The right of this process to write a thread. It is released when dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    writer: Arc<Writer>,
    thread: ThreadId,
}

impl Claim {
    /// Claims the thread of a file. `None` if that is impossible: the file is not in the thread folders of the home, or
    /// the file system has no locks or no hard links. Such a file must stay open, with its own lock.
    ///
    /// # Errors
    /// The holder of the thread, if there is one.
    pub(crate) fn take(home: &Path, path: &Path) -> Result<Option<Self>, Holder> {
        let Some(thread) = thread_of(home, path) else { return Ok(None) };
        let begun = Instant::now();
        loop {
            let Ok(writer) = Writer::of(home) else { return Ok(None) };
            let name = writer.claim(thread);
            let claimed = std::fs::hard_link(&writer.path, &name);
            let Err(error) = claimed else { return Ok(Some(Self { writer, thread })) };
            match Errno::from_io_error(&error) {
                Some(Errno::EXIST) => {
                    if let Some(holder) = claimant_of(home, &name, begun) {
                        return Err(holder);
                    }
                    if begun.elapsed() > PATIENCE {
                        return Ok(None);
                    }
                }
                // The file has as many links as it can have, or another process has removed it.
                Some(Errno::MLINK | Errno::NOENT) if begun.elapsed() < PATIENCE => writer.retire(),
                _ => return Ok(None),
            }
        }
    }
}

/// The live process that has claimed the thread of a file, if any.
pub(crate) fn claimant(home: &Path, path: &Path) -> Option<Holder> {
    let thread = thread_of(home, path)?;
    claimant_of(home, &home.join(CLAIMS).join(thread.to_string()), Instant::now())
}

/// The process behind a claim. A stale claim is removed, with all others of the same process.
fn claimant_of(home: &Path, name: &Path, begun: Instant) -> Option<Holder> {
    loop {
        match look_at(name) {
            ClaimState::Held(holder) => return Some(holder),
            ClaimState::Disputed(holder) if begun.elapsed() > PATIENCE => return Some(holder),
            ClaimState::Disputed(_) => std::thread::park_timeout(PAUSE),
            ClaimState::Void => {
                // A claim that cannot be removed is void anyway.
                let _ = sweep(home);
                return None;
            }
            ClaimState::Gone => return None,
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let name = self.writer.claim(self.thread);
        if is_at(&self.writer.lock, &name) {
            // A leftover name is not a valid claim without the lock.
            let _ = std::fs::remove_file(name);
        }
    }
}

/// The thread of a file, if the file is in the thread folders of a home. If that folder is a link, other homes may
/// share it, and they would not see claims here.
fn thread_of(home: &Path, path: &Path) -> Option<ThreadId> {
    let thread = RolloutName::parse(path.file_name()?.to_str()?)?.id;
    let is_below = |home: &Path| {
        let folders = [SESSIONS, ARCHIVED].map(|folder| home.join(folder));
        let folder = folders.iter().find(|folder| path.starts_with(folder))?;
        folder.symlink_metadata().is_ok_and(|about| about.is_dir()).then_some(())
    };
    // Paths from clients have all links resolved.
    is_below(home).or_else(|| is_below(&home.canonicalize().ok()?))?;
    Some(thread)
}

/// The state of a claim.
enum ClaimState {
    /// Its process is alive.
    Held(Holder),
    /// Its process is gone, and another process is about to remove it.
    Disputed(Holder),
    /// Its process is gone, and so is the claim.
    Void,
    /// It no longer exists.
    Gone,
}

/// Checks a claim, and removes it if its process is gone.
fn look_at(name: &Path) -> ClaimState {
    let mut file = match open_files::open_if_possible(OpenOptions::new().read(true), name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return ClaimState::Gone,
        // An unreadable claim may well be valid.
        Err(_) => return ClaimState::Disputed(Holder::Unknown),
    };
    match file.try_lock() {
        // While the file of a dead process is locked, nobody else removes its claims.
        Ok(()) if is_at(&file, name) => {
            drop(std::fs::remove_file(name));
            return ClaimState::Void;
        }
        Err(TryLockError::WouldBlock) if is_at(&file, name) => {
            let holder = Holder::of(&file);
            let mut owner = String::new();
            let is_known = file.read_to_string(&mut owner).is_ok() && !owner.is_empty();
            let is_owner = match holder {
                Holder::Own => owner == std::process::id().to_string(),
                Holder::Process(pid) => owner == pid.to_string(),
                Holder::Unknown => true,
            };
            return if is_owner || !is_known { ClaimState::Held(holder) } else { ClaimState::Disputed(holder) };
        }
        Ok(()) | Err(_) => {}
    }
    ClaimState::Gone
}

/// Whether a path still leads to an open file.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(open), Ok(there)) = (file.metadata(), path.symlink_metadata()) else { return false };
    (open.dev(), open.ino()) == (there.dev(), there.ino())
}

/// The file with which this process claims threads of one home.
#[derive(Debug)]
pub(crate) struct Writer {
    home: PathBuf,
    path: PathBuf,
    /// Locked as long as there are claims. It contains the process id, because others also lock it for a moment once
    /// the process is gone.
    lock: File,
}

/// The current writer of each home. It is dropped with the last claim.
static PRESENT: Mutex<Vec<Weak<Writer>>> = Mutex::new(Vec::new());

impl Writer {
    /// The writer of a home, created if there is none yet.
    pub(crate) fn of(home: &Path) -> io::Result<Arc<Self>> {
        let mut present = PRESENT.lock().unwrap_or_else(PoisonError::into_inner);
        present.retain(|writer| writer.strong_count() > 0);
        if let Some(writer) = present.iter().filter_map(Weak::upgrade).find(|writer| writer.home == home) {
            return Ok(writer);
        }
        let writer = Arc::new(Self::new(home)?);
        present.push(Arc::downgrade(&writer));
        Ok(writer)
    }

    fn new(home: &Path) -> io::Result<Self> {
        for folder in [CLAIMS, WRITERS] {
            DirBuilder::new().recursive(true).mode(0o700).create(home.join(folder))?;
        }
        sweep(home)?;
        let begun = Instant::now();
        loop {
            let path = home.join(WRITERS).join(ThreadId::fresh().to_string());
            let mut lock =
                open_files::open_if_possible(OpenOptions::new().write(true).create_new(true).mode(0o600), &path)?;
            let locked = lock.try_lock();
            if locked.is_ok() && is_at(&lock, &path) {
                // Without it others are refused a moment too early at worst.
                let _ = write!(lock, "{}", std::process::id());
                return Ok(Self { home: home.to_owned(), path, lock });
            }
            drop(std::fs::remove_file(&path));
            // Another process that sweeps has mistaken the file for a leftover, a moment before it was locked.
            if matches!(locked, Err(TryLockError::Error(_))) || begun.elapsed() > PATIENCE {
                return Err(io::ErrorKind::Unsupported.into());
            }
        }
    }

    /// The name of a claim.
    fn claim(&self, thread: ThreadId) -> PathBuf {
        self.home.join(CLAIMS).join(thread.to_string())
    }

    /// Makes no more claims with this file. Existing ones stay valid.
    fn retire(&self) {
        let mut present = PRESENT.lock().unwrap_or_else(PoisonError::into_inner);
        present.retain(|writer| !std::ptr::eq(writer.as_ptr(), self));
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes the leftovers of dead processes.
fn sweep(home: &Path) -> io::Result<()> {
    for entry in home.join(WRITERS).read_dir()?.flatten() {
        let path = entry.path();
        let Ok(file) = open_files::open_if_possible(OpenOptions::new().read(true), &path) else { continue };
        if file.try_lock().is_err() {
            continue;
        }
        let about = file.metadata()?;
        if about.nlink() > 1 {
            let claims = home.join(CLAIMS).read_dir()?.flatten().filter(|claim| claim.ino() == about.ino());
            // Only the holder of the lock replaces these, so a claim that is still in its place stays there.
            for claim in claims.map(|claim| claim.path()).filter(|claim| is_at(&file, claim)) {
                drop(std::fs::remove_file(claim));
            }
        }
        drop(std::fs::remove_file(path));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home_with(thread: ThreadId) -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("sessions/2026/01/02");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("rollout-2026-01-02T03-04-05-{thread}.jsonl"));
        (home, path)
    }

    fn names(home: &Path, folder: &str) -> usize {
        home.join(folder).read_dir().map_or(0, Iterator::count)
    }

    /// Leaves claims behind like a killed process: the names exist, the lock does not.
    fn leave_behind(home: &Path, threads: &[ThreadId]) {
        for folder in [CLAIMS, WRITERS] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        let dead = home.join(WRITERS).join(ThreadId::fresh().to_string());
        std::fs::write(&dead, "").unwrap();
        for thread in threads {
            std::fs::hard_link(&dead, home.join(CLAIMS).join(thread.to_string())).unwrap();
        }
    }

    #[test]
    fn a_thread_is_claimed_once_and_nothing_is_left() {
        let (home, path) = home_with(ThreadId::fresh());
        let claim = Claim::take(home.path(), &path).unwrap().unwrap();
        assert_eq!(Claim::take(home.path(), &path).unwrap_err(), Holder::Own);
        let other = home_with(ThreadId::fresh()).1;
        let other = home.path().join("archived_sessions").join(other.file_name().unwrap());
        std::fs::create_dir(other.parent().unwrap()).unwrap();
        let second = Claim::take(home.path(), &other).unwrap().unwrap();
        assert_eq!((names(home.path(), CLAIMS), names(home.path(), WRITERS)), (2, 1));
        drop((claim, second));
        assert_eq!((names(home.path(), CLAIMS), names(home.path(), WRITERS)), (0, 0));
        Claim::take(home.path(), &path).unwrap().unwrap();
    }

    #[test]
    fn a_home_that_is_reached_through_a_link_is_the_same() {
        let (home, path) = home_with(ThreadId::fresh());
        let link = home.path().join("link");
        std::os::unix::fs::symlink(home.path(), &link).unwrap();
        let _claim = Claim::take(home.path(), &path).unwrap().unwrap();
        assert_eq!(Claim::take(&link, &path.canonicalize().unwrap_or(path)).unwrap_err(), Holder::Own);
    }

    #[test]
    fn files_outside_the_home_are_not_claimed() {
        let (home, path) = home_with(ThreadId::fresh());
        let (elsewhere, _) = home_with(ThreadId::fresh());
        assert!(Claim::take(elsewhere.path(), &path).unwrap().is_none());
        assert!(Claim::take(home.path(), &path.with_extension("part")).unwrap().is_none());
        std::fs::rename(home.path().join("sessions"), home.path().join("shared")).unwrap();
        std::os::unix::fs::symlink(home.path().join("shared"), home.path().join("sessions")).unwrap();
        assert!(Claim::take(home.path(), &path).unwrap().is_none(), "another home may lead there too");
    }

    #[test]
    fn the_claims_of_the_dead_are_void_and_swept() {
        let thread = ThreadId::fresh();
        let (home, path) = home_with(thread);
        leave_behind(home.path(), &[ThreadId::fresh(), thread, ThreadId::fresh()]);
        let claim = Claim::take(home.path(), &path).unwrap().unwrap();
        assert_eq!((names(home.path(), CLAIMS), names(home.path(), WRITERS)), (1, 1));
        // Leftovers that appear while this process already has claims are taken over one by one.
        let next = ThreadId::fresh();
        leave_behind(home.path(), &[next]);
        let path = path.with_file_name(format!("rollout-2026-01-02T03-04-05-{next}.jsonl"));
        let second = Claim::take(home.path(), &path).unwrap().unwrap();
        assert_eq!(Claim::take(home.path(), &path).unwrap_err(), Holder::Own);
        drop((claim, second));
        assert_eq!(names(home.path(), CLAIMS), 0);
    }

    #[test]
    fn a_removed_folder_is_recreated() {
        let (home, path) = home_with(ThreadId::fresh());
        let claim = Claim::take(home.path(), &path).unwrap().unwrap();
        std::fs::remove_dir_all(home.path().join("run")).unwrap();
        let other = path.with_file_name(format!("rollout-2026-01-02T03-04-05-{}.jsonl", ThreadId::fresh()));
        assert!(Claim::take(home.path(), &other).unwrap().is_some());
        drop(claim);
    }
}
