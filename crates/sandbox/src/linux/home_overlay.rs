//! The home as commands see it: everything in it except its secrets.
//!
//! An in-memory folder is mounted over the home, and the visible entries are mounted into it one by one. Mounting
//! something over only the secrets would not be enough: when a login is rewritten, the new file replaces the old one
//! and the mount on it is lost.
//!
//! Invariant: plain system calls only after `clone`, and no path is followed through a symbolic link.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags, mkdirat, openat, symlinkat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use super::sys::{self, READ_ONLY};
use super::world::{open_path, put, take, take_path};
use codex_guard::secrets::Secrets;

/// The folders to cover: the home, and secrets elsewhere.
#[derive(Default)]
pub(super) struct HomeOverlay {
    home: Option<CString>,
    entries: Vec<(CString, Entry)>,
    elsewhere: Vec<(CString, bool)>,
}

/// A visible entry of the home.
enum Entry {
    Folder,
    File,
    /// A link and its target.
    Link(CString),
}

impl HomeOverlay {
    /// Lists the entries. An entry whose name cannot be passed to the kernel is left out.
    pub(super) fn over(secrets: &Secrets) -> Self {
        let name = |path: &Path| CString::new(path.as_os_str().as_bytes()).ok();
        let mut overlay = Self::default();
        if let Some((home, entries)) = secrets.beside() {
            overlay.home = name(home);
            for entry in entries {
                let Ok(kind) = entry.file_type() else { continue };
                let shown = if kind.is_symlink() {
                    std::fs::read_link(entry.path()).ok().and_then(|to| name(&to)).map(Entry::Link)
                } else {
                    Some(if kind.is_dir() { Entry::Folder } else { Entry::File })
                };
                overlay.entries.extend(name(Path::new(&entry.file_name())).zip(shown));
            }
        }
        overlay.elsewhere =
            secrets.elsewhere().filter_map(|(path, is_folder)| Some((name(path)?, is_folder))).collect();
        overlay
    }

    /// Mounts the overlay. Mounts below the home stay visible through it.
    pub(super) fn put(&self) -> Result<(), Errno> {
        if let Some(home) = &self.home {
            let below = match open_path(home) {
                Ok(below) => below,
                // There is nothing left to hide.
                Err(Errno::NOENT) => return Ok(()),
                Err(error) => return Err(error),
            };
            let over = cover(home)?;
            for (name, entry) in &self.entries {
                match entry {
                    Entry::Folder => mkdirat(&over, name.as_c_str(), Mode::from_raw_mode(0o700))?,
                    Entry::File => {
                        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                        drop(openat(&over, name.as_c_str(), flags, Mode::from_raw_mode(0o600))?);
                    }
                    Entry::Link(to) => {
                        symlinkat(to.as_c_str(), &over, name.as_c_str())?;
                        continue;
                    }
                }
                show(&below, &over, name)?;
            }
            sys::set_mount_attributes(over.as_fd(), READ_ONLY, false)?;
        }
        for (path, is_folder) in &self.elsewhere {
            if *is_folder {
                sys::set_mount_attributes(cover(path)?.as_fd(), READ_ONLY, false)?;
            } else {
                put(&take_path(c"/dev/null")?, &open_path(path)?)?;
            }
        }
        Ok(())
    }
}

/// Mounts an empty in-memory folder over a folder.
fn cover(path: &CStr) -> Result<OwnedFd, Errno> {
    mount(c"tmpfs", path, c"tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(c"mode=0700"))?;
    open_path(path)
}

/// Makes an entry of the covered folder visible. An entry that is gone, or has changed its type, stays empty.
fn show(below: &OwnedFd, over: &OwnedFd, name: &CStr) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(entry) = openat(below, name, flags, Mode::empty()) else { return Ok(()) };
    match put(&take(&entry)?, &openat(over, name, flags, Mode::empty())?) {
        Ok(()) | Err(Errno::NOTDIR | Errno::INVAL) => Ok(()),
        Err(error) => Err(error),
    }
}
