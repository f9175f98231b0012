//! Writes into a git folder by descriptors, so that no link in it leads elsewhere.
//!
//! Sandboxed commands may write most of a git folder. Everything here walks it part by part and follows no link.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Write as _},
    os::fd::OwnedFd,
    path::Path,
};

use rustix::{
    fs::{AtFlags, Mode, OFlags},
    io::Errno,
};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

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

    /// A folder below, given by its parts.
    pub(crate) fn below(&self, parts: &str, missing: Missing) -> io::Result<Self> {
        let mut at = Self(self.0.try_clone()?);
        for part in parts.split('/').filter(|part| !part.is_empty()) {
            if missing == Missing::Created {
                match rustix::fs::mkdirat(&at.0, part, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            at = Self(rustix::fs::openat(&at.0, part, FOLDER, Mode::empty())?);
        }
        Ok(at)
    }

    /// Creates a folder, which must not exist.
    pub(crate) fn create(&self, name: &str) -> io::Result<Self> {
        rustix::fs::mkdirat(&self.0, name, Mode::from_raw_mode(0o777))?;
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
        let written = io::copy(from, &mut file).and_then(|_| file.flush());
        if written.is_err() {
            let _ = self.remove(name);
        }
        written
    }

    /// Replaces a file, or creates it, the way git does: a lock that another process holds is an error.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let lock = format!("{name}.lock");
        self.write_new(&lock, bytes)?;
        rustix::fs::renameat(&self.0, &lock, &self.0, name).map_err(|error| {
            let _ = self.remove(&lock);
            error.into()
        })
    }

    /// Removes a file, if it is there.
    pub(crate) fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.0, name.as_ref(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes an empty folder; anything else stays.
    pub(crate) fn remove_empty(&self, name: &str) {
        let _: Result<(), Errno> = rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR);
    }
}
