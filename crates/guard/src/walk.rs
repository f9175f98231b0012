//! Reads folders by descriptor: lists them, and reports when something was changed.
//!
//! Invariant: no link is followed, no file is opened to be listed, and nothing here blocks.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The type of a folder entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    Folder,
    File,
    Link,
    /// A socket, a fifo or a device.
    Other,
}

/// The state of a file, for comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Stamp {
    pub device: u64,
    pub inode: u64,
    /// The last change of the inode (ctime), in nanoseconds. No program can choose this.
    pub changed: i128,
    pub mode: u32,
    /// The number of its names.
    pub names: u64,
    pub size: u64,
}

impl Stamp {
    /// The identity of the file, whatever its state.
    #[must_use]
    pub fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// The state of the file with this path, or of the link.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        platform::stamp_at(path)
    }

    /// The type of the file.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        match self.mode & 0o170_000 {
            0o040_000 => EntryKind::Folder,
            0o100_000 => EntryKind::File,
            0o120_000 => EntryKind::Link,
            _ => EntryKind::Other,
        }
    }
}

/// The reason why a folder could not be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CannotOpen {
    /// There is none with that name.
    Absent,
    /// There is something, which may be a folder.
    Unknown,
}

/// The folder that all lookups are relative to.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    handle: platform::Handle,
}

impl Root {
    /// Opens a folder that is not a link, through no links.
    #[must_use]
    pub fn open(path: &Path) -> Option<Self> {
        Some(Self { path: path.to_owned(), handle: platform::open_root(path)? })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a folder below, by a relative path; the root itself for an empty one.
    #[must_use]
    pub fn folder(&self, below: &Path) -> Option<Folder> {
        self.try_folder(below).ok()
    }

    /// The same, and tells a folder that is there and cannot be opened from one that is not.
    pub fn try_folder(&self, below: &Path) -> Result<Folder, CannotOpen> {
        platform::open_below(&self.handle, below).map(|handle| Folder { handle })
    }

    /// The root as a folder.
    #[must_use]
    pub fn into_folder(self) -> Folder {
        Folder { handle: self.handle }
    }
}

#[derive(Debug)]
pub struct Folder {
    /// A descriptor on Linux, a path elsewhere.
    pub(crate) handle: platform::Handle,
}

impl Folder {
    /// The state of the folder itself.
    #[must_use]
    pub fn stamp(&self) -> Option<Stamp> {
        platform::stamp(&self.handle)
    }

    /// The state of an entry.
    pub fn stamp_of(&self, name: impl AsRef<Path>) -> Option<Stamp> {
        platform::stamp_of(&self.handle, name.as_ref())
    }

    /// Passes every entry to `show`, until it returns `false`.
    pub fn each(&self, show: &mut dyn FnMut(&OsStr, EntryKind) -> bool) {
        platform::each(&self.handle, show);
    }
}

#[cfg(target_os = "linux")]
mod platform {
    use std::ffi::OsStr;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat, fstat, openat2, statat};
    use rustix::io::Errno;

    use super::{CannotOpen, EntryKind, Stamp};

    pub(super) type Handle = OwnedFd;

    /// The buffer size for listing a folder.
    const LISTED: usize = 16 * 1024;

    const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

    pub(super) fn open_root(path: &Path) -> Option<Handle> {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        openat2(CWD, path, FOLDER, Mode::empty(), resolve).ok()
    }

    pub(super) fn open_below(root: &Handle, below: &Path) -> Result<Handle, CannotOpen> {
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        openat2(root, below, FOLDER, Mode::empty(), resolve).map_err(|errno| match errno {
            Errno::NOENT => CannotOpen::Absent,
            _ => CannotOpen::Unknown,
        })
    }

    pub(super) fn stamp(folder: &Handle) -> Option<Stamp> {
        fstat(folder).ok().map(|found| of(&found))
    }

    pub(super) fn stamp_at(path: &Path) -> Option<Stamp> {
        statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok().map(|found| of(&found))
    }

    pub(super) fn stamp_of(folder: &Handle, name: &Path) -> Option<Stamp> {
        statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|found| of(&found))
    }

    #[allow(clippy::useless_conversion, clippy::cast_sign_loss, reason = "the types differ between machines")]
    fn of(found: &Stat) -> Stamp {
        Stamp {
            device: found.st_dev,
            inode: found.st_ino,
            changed: i128::from(found.st_ctime) * 1_000_000_000 + i128::from(found.st_ctime_nsec),
            mode: found.st_mode,
            names: u64::from(found.st_nlink),
            size: found.st_size as u64,
        }
    }

    pub(super) fn each(folder: &Handle, show: &mut dyn FnMut(&OsStr, EntryKind) -> bool) {
        let mut buffer = [MaybeUninit::<u8>::uninit(); LISTED];
        let mut entries = RawDir::new(folder, &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
                    found.map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode))
                }
                kind => kind,
            };
            let kind = match kind {
                FileType::Directory => EntryKind::Folder,
                FileType::RegularFile => EntryKind::File,
                FileType::Symlink => EntryKind::Link,
                _ => EntryKind::Other,
            };
            if !show(OsStr::from_bytes(name.to_bytes()), kind) {
                return;
            }
        }
    }
}

/// By path, on platforms where no concurrent command could swap one.
#[cfg(not(target_os = "linux"))]
mod platform {
    use std::ffi::OsStr;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{CannotOpen, EntryKind, Stamp};

    pub(super) type Handle = PathBuf;

    pub(super) fn open_root(path: &Path) -> Option<Handle> {
        path.is_dir().then(|| path.to_owned())
    }

    pub(super) fn open_below(root: &Handle, below: &Path) -> Result<Handle, CannotOpen> {
        open_root(&root.join(below)).ok_or(CannotOpen::Absent)
    }

    pub(super) fn stamp_at(path: &Path) -> Option<Stamp> {
        stamp(&path.to_owned())
    }

    pub(super) fn stamp(folder: &Handle) -> Option<Stamp> {
        fs::symlink_metadata(folder).ok().map(|found| Stamp { size: found.len(), ..Stamp::default() })
    }

    pub(super) fn stamp_of(folder: &Handle, name: &Path) -> Option<Stamp> {
        stamp(&folder.join(name))
    }

    pub(super) fn each(folder: &Handle, show: &mut dyn FnMut(&OsStr, EntryKind) -> bool) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let kind = match entry.file_type() {
                Ok(kind) if kind.is_dir() => EntryKind::Folder,
                Ok(kind) if kind.is_file() => EntryKind::File,
                Ok(kind) if kind.is_symlink() => EntryKind::Link,
                _ => EntryKind::Other,
            };
            if !show(&entry.file_name(), kind) {
                return;
            }
        }
    }
}
