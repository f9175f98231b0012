//! Folders by descriptor.
//!
//! Invariant: a folder is opened from the root that allows it, by a path without links, so that a link planted in the
//! meantime causes an error and does not lead outside. All operations are then relative to the descriptor.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;

/// The maximum number of folders kept open.
const KEPT_OPEN: usize = 128;

#[cfg(any(target_os = "linux", target_os = "android"))]
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Folders below the roots, opened on demand.
pub(crate) struct Folders {
    roots: Vec<PathBuf>,
    open: HashMap<PathBuf, Arc<OwnedFd>>,
    /// Folders that were created here, outer ones first.
    made: Vec<PathBuf>,
}

impl Folders {
    pub(crate) fn new(roots: Option<&[PathBuf]>) -> Self {
        let roots = roots.map_or_else(|| vec![PathBuf::from("/")], <[_]>::to_vec);
        Self { roots, open: HashMap::new(), made: Vec::new() }
    }

    /// Opens a folder, and creates it first if it is missing and `make` is set.
    pub(crate) fn open(&mut self, folder: &Path, make: bool) -> io::Result<Arc<OwnedFd>> {
        if let Some(open) = self.open.get(folder) {
            return Ok(Arc::clone(open));
        }
        let root = self.roots.iter().find(|root| folder.starts_with(root)).cloned();
        let root = root.ok_or(io::ErrorKind::PermissionDenied)?;
        let inside = folder.strip_prefix(&root).unwrap_or(Path::new(""));
        let slash = openat(CWD, "/", FOLDER, Mode::empty())?;
        let base = open_below(&slash, root.strip_prefix("/").unwrap_or(&root))?;
        let opened = match open_below(&base, inside) {
            Err(Errno::NOENT) if make => self.make(base, &root, inside)?,
            opened => opened?,
        };
        if self.open.len() >= KEPT_OPEN {
            self.open.clear();
        }
        let opened = Arc::new(opened);
        self.open.insert(folder.to_owned(), Arc::clone(&opened));
        Ok(opened)
    }

    /// Creates the missing part of a path below an open root, and opens its end.
    fn make(&mut self, base: OwnedFd, root: &Path, inside: &Path) -> Result<OwnedFd, Errno> {
        let (mut at, mut path) = (base, root.to_owned());
        for name in inside {
            path.push(name);
            match mkdirat(&at, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => self.made.push(path.clone()),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            at = openat(&at, name, FOLDER, Mode::empty())?;
        }
        Ok(at)
    }

    /// Removes the empty folders among those created here.
    pub(crate) fn remove_made(&mut self) {
        self.open.clear();
        while let Some(folder) = self.made.pop() {
            if let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) {
                // A folder that is not empty stays, and so do its parents.
                let _ = self.open(parent, false).map(|parent| unlinkat(&parent, name, AtFlags::REMOVEDIR));
            }
        }
    }
}

/// Opens a folder below another by a path without links.
fn open_below(base: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    if path.as_os_str().is_empty() {
        return openat(base, ".", FOLDER, Mode::empty());
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(base, path, FOLDER, Mode::empty(), resolve) {
            // Old kernels lack the call, and some containers forbid it.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return opened,
        }
    }
    walk(base, path)
}

/// Opens a folder below another, component by component.
fn walk(base: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let step = |at: OwnedFd, name: &OsStr| openat(at.as_fd(), name, FOLDER, Mode::empty());
    path.iter().try_fold(openat(base, ".", FOLDER, Mode::empty())?, step)
}
