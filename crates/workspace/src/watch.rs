//! Watching a path for changes.
//!
//! A folder is watched with the files in it, but not with its subfolders. Anything else is watched through its folder,
//! so that a file that is replaced, removed or not created yet is noticed as well.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{CreateFlags, ReadFlags, WatchFlags, add_watch, init};

/// The size of the fixed part of a change: watch, kind, cookie and the length of the name.
const HEAD_BYTES: usize = 16;

/// A watched path.
#[derive(Debug)]
pub struct Watched {
    /// The path without links.
    pub path: PathBuf,
    folder: PathBuf,
    /// The only name in it that is watched.
    only: Option<OsString>,
}

impl Watched {
    /// Resolves a path and watches it. The descriptor has the changes, and does not block.
    ///
    /// # Errors
    /// When the folder cannot be watched.
    pub fn open(path: &Path) -> io::Result<(Self, OwnedFd)> {
        let real = path.canonicalize();
        let (folder, only) = match &real {
            Ok(real) if real.is_dir() => (real.clone(), None),
            _ => {
                let path = real.as_deref().unwrap_or(path);
                let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
                (path.parent().ok_or(io::ErrorKind::InvalidInput)?.canonicalize()?, Some(name.to_owned()))
            }
        };
        let inotify = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let kinds = WatchFlags::ATTRIB
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MODIFY
            | WatchFlags::MOVE
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        add_watch(&inotify, &folder, kinds)?;
        let path = only.as_ref().map_or_else(|| folder.clone(), |name| folder.join(name));
        Ok((Self { path, folder, only }, inotify))
    }

    /// Adds the changed paths that bytes of the descriptor tell, and returns whether the folder is gone.
    pub fn add(&self, mut bytes: &[u8], changed: &mut BTreeSet<PathBuf>) -> bool {
        let mut is_gone = false;
        while let Some((kind, name, rest)) = split(bytes) {
            bytes = rest;
            is_gone |= kind.contains(ReadFlags::IGNORED);
            match &self.only {
                // After an overflow of the kernel's queue, anything may have changed.
                _ if kind.contains(ReadFlags::QUEUE_OVERFLOW) => drop(changed.insert(self.path.clone())),
                Some(only) if name != Some(only) && !kind.contains(ReadFlags::IGNORED) => {}
                _ => drop(changed.insert(name.map_or_else(|| self.path.clone(), |name| self.folder.join(name)))),
            }
        }
        is_gone
    }
}

/// Splits off the first change: its kind, the name that it is about, and the remaining bytes.
fn split(bytes: &[u8]) -> Option<(ReadFlags, Option<&OsStr>, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let number = |at: usize| Some(u32::from_ne_bytes(*head.get(at..)?.first_chunk()?));
    let (kind, length) = (number(4)?, usize::try_from(number(12)?).ok()?);
    let (name, rest) = rest.split_at_checked(length)?;
    let name = name.split(|byte| *byte == 0).next().filter(|name| !name.is_empty());
    Some((ReadFlags::from_bits_retain(kind), name.map(OsStr::from_bytes), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(watched: &Watched, inotify: &OwnedFd) -> (BTreeSet<PathBuf>, bool) {
        let (mut buffer, mut changed) = (vec![0; 4096], BTreeSet::new());
        let length = rustix::io::read(inotify, &mut buffer).unwrap();
        let is_gone = watched.add(&buffer[..length], &mut changed);
        (changed, is_gone)
    }

    #[test]
    fn a_file_is_noticed_before_it_is_created_and_its_neighbours_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = folder.path().canonicalize().unwrap().join("wanted");
        let (watched, inotify) = Watched::open(&wanted).unwrap();
        std::fs::write(folder.path().join("other"), "").unwrap();
        std::fs::write(&wanted, "").unwrap();
        assert_eq!(changes(&watched, &inotify), (BTreeSet::from([wanted]), false));
    }

    #[test]
    fn a_removed_folder_is_the_last_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let (watched, inotify) = Watched::open(&path).unwrap();
        drop(folder);
        assert_eq!(changes(&watched, &inotify), (BTreeSet::from([path]), true));
    }

    #[test]
    fn bytes_that_are_cut_off_tell_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (watched, _) = Watched::open(folder.path()).unwrap();
        for length in 0..HEAD_BYTES {
            assert!(!watched.add(&vec![255; length], &mut BTreeSet::new()));
        }
        assert!(!watched.add(&[255; HEAD_BYTES], &mut BTreeSet::new()), "the name is missing");
    }
}
