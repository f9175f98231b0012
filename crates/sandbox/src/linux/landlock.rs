//! Landlock rules: on the first level a second line of defence behind the mounts, on the second level the only
//! protection of files.
//!
//! Landlock can only add rights: a right on a folder extends to everything below it. So if a folder contains a closed
//! name, the second level grants the entries of that folder one by one and leaves out the closed ones. New entries
//! cannot be created directly in such a folder, because the right to create them would extend to the closed ones. Read
//! access is granted in the same way around the secrets of the home, so running commands cannot read a file that
//! appears next to one later.
//!
//! Invariant: a right that this kernel does not know is never assumed to be refused.

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;

use super::sys;
use crate::layout::Layout;
use codex_guard::roots::Root;
use codex_guard::secrets::Secrets;

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_BLOCK: u64 = 1 << 11;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

/// Everything may be listed and executed.
const LOOK: u64 = EXECUTE | READ_DIR;

/// The devices that every program may use.
pub(super) const DEVICES: [&std::ffi::CStr; 6] =
    [c"/dev/null", c"/dev/zero", c"/dev/full", c"/dev/random", c"/dev/urandom", c"/dev/tty"];

/// The first version that covers truncation; with an older one the second level would leak.
pub(super) const OLDEST: u32 = 3;
/// The first version that scopes signals and abstract sockets.
const SCOPES_SINCE: u32 = 6;

/// The file rights that a version knows.
fn known(abi: u32) -> u64 {
    match abi {
        0 => 0,
        1 => 0x1fff,
        2 => 0x3fff,
        3 | 4 => 0x7fff,
        _ => 0xffff,
    }
}

/// A ruleset that only scopes signals, for [`super::scope`]; `None` if the kernel cannot.
pub(super) fn signal_scope(abi: u32) -> Option<Result<OwnedFd, Errno>> {
    const SIGNALS: u64 = 0b10;
    let scope = sys::Ruleset { files: 0, network: 0, scopes: SIGNALS };
    (abi >= SCOPES_SINCE).then(|| sys::landlock_create(&scope, size_of::<sys::Ruleset>()))
}

/// The rights below an open folder: all except creating devices and sending ioctls to them.
fn write_access(abi: u32) -> u64 {
    known(abi) & !(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)
}

/// The rights below the sandbox's own `/dev`.
pub(super) fn own_dev_access(abi: u32) -> u64 {
    known(abi) & !(MAKE_CHAR | MAKE_BLOCK)
}

/// A ruleset that allows reading everything except hidden paths.
pub(super) fn ruleset(abi: u32, network: bool, hidden: &[PathBuf]) -> Result<OwnedFd, Errno> {
    let tcp = if abi >= 4 && !network { 0b11 } else { 0 };
    let scopes = if abi >= SCOPES_SINCE { 0b11 } else { 0 };
    let size = match abi {
        0..=3 => 8,
        4 | 5 => 16,
        _ => 24,
    };
    let ruleset = sys::landlock_create(&sys::Ruleset { files: known(abi), network: tcp, scopes }, size)?;
    let everywhere = if hidden.is_empty() { LOOK | READ_FILE } else { LOOK };
    sys::landlock_allow(ruleset.as_fd(), open(Path::new("/"))?.as_fd(), everywhere)?;
    if hidden.is_empty() {
        return Ok(ruleset);
    }
    let hidden: Vec<&Path> = hidden.iter().map(PathBuf::as_path).collect();
    for (path, _) in without(&hidden, vec![PathBuf::from("/")], &Opened::default()) {
        if let Ok(place) = open(&path) {
            match sys::landlock_allow(ruleset.as_fd(), place.as_fd(), READ_FILE) {
                // Landlock does not apply to the kernel's own files, such as a namespace that is mounted somewhere.
                Ok(()) | Err(Errno::BADFD) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(ruleset)
}

/// First level: the open folders as a whole; the mounts protect the closed places.
pub(super) fn allow_open(ruleset: BorrowedFd<'_>, layout: &Layout, opened: &Opened, abi: u32) -> Result<(), Errno> {
    for folder in layout.open() {
        sys::landlock_allow(ruleset, opened.open(folder)?.as_fd(), write_access(abi))?;
    }
    Ok(())
}

/// Second level: only entries with nothing closed below them, and the usual devices.
pub(super) fn allow_apart(
    ruleset: BorrowedFd<'_>,
    granted: &[(PathBuf, bool)],
    opened: &Opened,
    abi: u32,
) -> Result<(), Errno> {
    for (path, is_folder) in granted {
        let access = if *is_folder { write_access(abi) } else { (WRITE_FILE | READ_FILE | TRUNCATE) & known(abi) };
        // An entry that is gone needs no rule; one that has become a link is not followed.
        if let Ok(place) = opened.open(path) {
            sys::landlock_allow(ruleset, place.as_fd(), access)?;
        }
    }
    for device in DEVICES {
        if let Ok(device) = rustix::fs::open(device, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            sys::landlock_allow(ruleset, device.as_fd(), (READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV) & known(abi))?;
        }
    }
    Ok(())
}

/// The entries that the second level grants: folders and files with nothing closed below them.
pub(crate) fn apart(layout: &Layout, secrets: &Secrets, opened: &Opened) -> Vec<(PathBuf, bool)> {
    let closed: Vec<&Path> = layout.closed_by_rules().chain(secrets.paths().iter().map(PathBuf::as_path)).collect();
    let is_writable = |(path, is_folder): &(PathBuf, bool)| *is_folder || path.is_file();
    without(&closed, layout.open().map(Path::to_owned).collect(), opened).into_iter().filter(is_writable).collect()
}

/// The folders without the closed places: the largest folders with nothing closed below them, and single files.
fn without(closed: &[&Path], mut waiting: Vec<PathBuf>, opened: &Opened) -> Vec<(PathBuf, bool)> {
    let mut granted = Vec::new();
    while let Some(folder) = waiting.pop() {
        if !closed.iter().any(|closed| closed.starts_with(&folder)) {
            granted.push((folder, true));
            continue;
        }
        let Ok(entries) = opened.list(&folder) else { continue };
        for entry in entries.flatten() {
            let (name, kind) = (OsStr::from_bytes(entry.file_name().to_bytes()), entry.file_type());
            let path = folder.join(name);
            if name == "." || name == ".." || closed.contains(&path.as_path()) {
                continue;
            }
            // Some file systems do not report the type of an entry.
            let kind = match kind {
                FileType::Unknown => opened.kind(&path),
                kind => kind,
            };
            match kind {
                FileType::Directory => waiting.push(path),
                FileType::Symlink => {}
                _ => granted.push((path, false)),
            }
        }
    }
    granted
}

/// The roots of a sandbox, kept open while its rules are made: a running command may move them in the meantime.
#[derive(Default)]
pub(crate) struct Opened {
    roots: Vec<(PathBuf, OwnedFd)>,
}

impl Opened {
    /// Opens every root, which has to be the folder that the plan was made for.
    pub(crate) fn roots(roots: &[Root]) -> Result<Self, Errno> {
        let mut opened = Vec::with_capacity(roots.len());
        for root in roots {
            let place = open(&root.path)?;
            let found = fstat(&place)?;
            if (found.st_dev, found.st_ino) != (root.identity.device, root.identity.inode) {
                return Err(Errno::STALE);
            }
            opened.push((root.path.clone(), place));
        }
        Ok(Self { roots: opened })
    }

    /// Opens a path relative to the innermost root around it, wherever that root is by now.
    fn open(&self, path: &Path) -> Result<OwnedFd, Errno> {
        self.open_with(path, OFlags::PATH | OFlags::NOFOLLOW)
    }

    fn kind(&self, path: &Path) -> FileType {
        let found = self.open(path).and_then(|place| fstat(&place));
        found.map_or(FileType::Symlink, |found| FileType::from_raw_mode(found.st_mode))
    }

    fn list(&self, folder: &Path) -> Result<Dir, Errno> {
        Dir::new(self.open_with(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW)?)
    }

    fn open_with(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let around = self.roots.iter().filter_map(|(root, fd)| path.strip_prefix(root).ok().map(|below| (below, fd)));
        let (from, below) = match around.min_by_key(|(below, _)| below.components().count()) {
            Some((below, fd)) if below.as_os_str().is_empty() => (fd.as_fd(), Path::new(".")),
            Some((below, fd)) => (fd.as_fd(), below),
            None => (CWD, path),
        };
        let links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        openat2(from, below, flags | OFlags::CLOEXEC, Mode::empty(), links)
    }
}

fn open(path: &Path) -> Result<OwnedFd, Errno> {
    Opened::default().open(path)
}
