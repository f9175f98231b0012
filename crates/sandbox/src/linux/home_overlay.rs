//! The home as commands see it: everything in it but its secrets.
//!
//! A folder of memory is put over the home, and what may be seen is mounted into it, entry by entry. To mount something over
//! the secrets alone would not do: when a login is written anew the file takes the place of the old one, and what was
//! mounted there goes with that.
//!
//! Invariant: after `clone` plain system calls only, and no path is followed through a symbolic link.

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

/// What is put over the home, and over secrets elsewhere.
#[derive(Default)]
pub(super) struct HomeOverlay {
    home: Option<CString>,
    entries: Vec<(CString, Entry)>,
    elsewhere: Vec<(CString, bool)>,
}

/// What is seen through it.
enum Entry {
    Folder,
    File,
    /// A link, and where it leads.
    Link(CString),
}

impl HomeOverlay {
    /// Looks at what there is. What cannot be named is left out.
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

    /// Mounts it. What is mounted below the home is seen through it as it is.
    pub(super) fn put(&self) -> Result<(), Errno> {
        if let Some(home) = &self.home {
            let below = match open_path(home) {
                Ok(below) => below,
                // There is nothing to hide any more.
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

/// Puts an empty folder of memory over a folder.
fn cover(path: &CStr) -> Result<OwnedFd, Errno> {
    mount(c"tmpfs", path, c"tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(c"mode=0700"))?;
    open_path(path)
}

/// Lets an entry of the folder below be seen in the one over it. One that has gone meanwhile, or has become something else,
/// stays empty.
fn show(below: &OwnedFd, over: &OwnedFd, name: &CStr) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(entry) = openat(below, name, flags, Mode::empty()) else { return Ok(()) };
    match put(&take(&entry)?, &openat(over, name, flags, Mode::empty())?) {
        Ok(()) | Err(Errno::NOTDIR | Errno::INVAL) => Ok(()),
        Err(error) => Err(error),
    }
}
