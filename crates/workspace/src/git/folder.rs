//! Writes into a git folder by descriptors, so that no link in it leads elsewhere.
//!
//! Sandboxed commands may write most of a git folder. Everything here walks it part by part and follows no link.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Write as _},
    os::fd::OwnedFd,
    path::Path,
    process,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant, SystemTime},
};

use codex_files::crash_point;

use rustix::{
    fs::{AtFlags, Mode, OFlags},
    io::Errno,
};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The age from which the lock of a branch counts as left behind by a killed process. Git holds one for milliseconds.
const STALE: Duration = Duration::from_secs(2);
/// The time to wait for a lock, and the time between two attempts.
const LOCK_TIME: Duration = Duration::from_secs(5);
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// The number of attempts to create something in a folder that others remove when it is empty.
const ATTEMPTS: usize = 20;

/// A folder below a git folder.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

/// Whether missing folders are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Created,
    Refused,
}

impl Folder {
    /// Opens a folder whose path has no links.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::open(path, FOLDER, Mode::empty())?))
    }

    /// The same folder.
    pub(crate) fn again(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// A folder below, given by its parts.
    pub(crate) fn below(&self, parts: &str, missing: Missing) -> io::Result<Self> {
        let mut at = self.again()?;
        for part in parts.split('/').filter(|part| !part.is_empty()) {
            if missing == Missing::Created {
                match rustix::fs::mkdirat(&at.0, part, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                crash_point();
            }
            at = Self(rustix::fs::openat(&at.0, part, FOLDER, Mode::empty())?);
        }
        Ok(at)
    }

    /// Creates something in a folder below, which is created if need be. Another process may remove the folder meanwhile,
    /// as long as it is empty.
    pub(crate) fn create_below<T>(&self, parts: &str, create: impl Fn(&Self) -> io::Result<T>) -> io::Result<T> {
        let attempt = || self.below(parts, Missing::Created).and_then(|below| create(&below));
        let is_gone =
            |created: &io::Result<T>| created.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        (0..ATTEMPTS).map(|_| attempt()).find(|created| !is_gone(created)).unwrap_or_else(attempt)
    }

    /// Creates a folder, which must not exist.
    pub(crate) fn create(&self, name: &str) -> io::Result<Self> {
        rustix::fs::mkdirat(&self.0, name, Mode::from_raw_mode(0o777))?;
        crash_point();
        self.below(name, Missing::Refused)
    }

    /// Whether there is an entry of that name, of any kind.
    pub(crate) fn has(&self, name: &str) -> bool {
        rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Creates a file, which must not exist.
    pub(crate) fn write_new(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.copy_new(name, &mut io::Cursor::new(bytes))
    }

    /// Creates a file with everything that a reader has. If that fails, there is none.
    pub(crate) fn copy_new(&self, name: &str, from: &mut dyn io::Read) -> io::Result<()> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&self.0, name, flags, Mode::from_raw_mode(0o644))?);
        crash_point();
        let written = io::copy(from, &mut file).and_then(|_| file.flush());
        if written.is_err() {
            let _ = self.remove(name);
        }
        crash_point();
        written
    }

    /// Creates or replaces a file at once: there is no moment at which a reader finds a part of it. A copy that breaks
    /// off has a name by which git removes it one day. Several copies of the same file do not disturb each other.
    pub(crate) fn copy_whole(&self, name: &str, from: &mut dyn io::Read) -> io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let temporary = format!("tmp_{}_{}_{name}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        self.copy_new(&temporary, from)?;
        self.rename(&temporary, name)
    }

    /// Replaces a file, or creates it, the way git does: a lock that another process holds is an error.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let lock = format!("{name}.lock");
        self.write_new(&lock, bytes)?;
        self.rename(&lock, name)
    }

    /// Takes the lock of a file of ours, which git respects, and returns its name. To release it, rename or remove it. A
    /// lock that a killed process has left is replaced.
    pub(crate) fn lock(&self, name: &str, bytes: &[u8]) -> io::Result<String> {
        let (lock, begun) = (format!("{name}.lock"), Instant::now());
        loop {
            match self.write_new(&lock, bytes) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && begun.elapsed() < LOCK_TIME => {
                    if self.age(&lock).is_some_and(|age| age >= STALE) {
                        self.remove(&lock)?;
                    } else {
                        thread::park_timeout(LOCK_PAUSE);
                    }
                }
                written => return written.map(|()| lock),
            }
        }
    }

    /// Renames a file. If that fails, it is removed.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let renamed = rustix::fs::renameat(&self.0, from, &self.0, to);
        if renamed.is_err() {
            let _ = self.remove(from);
        }
        crash_point();
        Ok(renamed?)
    }

    /// The time since a file was written.
    fn age(&self, name: &str) -> Option<Duration> {
        let found = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let seconds = u64::try_from(found.st_mtime).ok()?;
        let written = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
        SystemTime::now().duration_since(written).ok()
    }

    /// Removes a file, if it is there.
    pub(crate) fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        let removed = rustix::fs::unlinkat(&self.0, name.as_ref(), AtFlags::empty());
        crash_point();
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes an empty folder; anything else stays.
    pub(crate) fn remove_empty(&self, name: &str) {
        let _: Result<(), Errno> = rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR);
    }
}
