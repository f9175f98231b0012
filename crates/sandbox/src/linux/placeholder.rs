//! Placeholders: empty folders and harmless files that reserve a protected name while a command runs.
//!
//! Several commands may need the same one, in this process and in others. Each holds a shared lock on it; when a
//! command ends, it tries to take the exclusive lock, and removes the placeholder only if it succeeds. Removing a name
//! that another sandbox has mounted over would undo that mount. A placeholder left behind by a crash is recognised by
//! its mode; the next command adopts and removes it.
//!
//! Invariant: nothing is created or removed through a symbolic link.

use std::ffi::{CStr, CString};
use std::fs;
use std::os::fd::{AsFd as _, BorrowedFd, IntoRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, ResolveFlags, Stat, Timespec, flock, fstat, mkdirat, openat, openat2,
    statat, unlinkat,
};
use rustix::io::{Errno, write};

use crate::layout::{PLACEHOLDER_FILE, PLACEHOLDER_FOLDER, is_placeholder_mode};
use codex_guard::names::{DOT_GIT, Names, Placeholder};

/// The maximum number of attempts while others create and remove the same name.
const ATTEMPTS: usize = 200;
/// After this many attempts, each further one is preceded by a pause.
const EAGER_ATTEMPTS: usize = 20;
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000 };
/// The mode of a folder in which everybody may create names, and remove only their own.
const SHARED: u32 = 0o1002;

/// The placeholders of one command.
#[derive(Default)]
pub(super) struct Placeholders {
    parents: Vec<(PathBuf, OwnedFd)>,
    wanted: Vec<Wanted>,
}

struct Wanted {
    parent: usize,
    name: CString,
    placeholder: Placeholder,
    /// The place in the plan that it is for.
    place: usize,
    /// Its descriptor in the supervisor, which never closes it.
    lock: Option<RawFd>,
}

/// The outcome for a name.
enum Placed {
    /// Ours, or shared with other commands.
    Held(OwnedFd),
    /// Something else exists there by now, and can be closed as it is.
    Taken,
    /// We cannot create it, so the command cannot either.
    Impossible,
}

impl Placeholders {
    /// Records that `path`, number `place` in the plan, needs a placeholder.
    pub(super) fn want(&mut self, path: &Path, placeholder: Placeholder, place: usize) -> Result<(), Errno> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::INVAL) };
        let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
        let parent = self.parent(folder)?;
        self.wanted.push(Wanted { parent, name, placeholder, place, lock: None });
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// The descriptors that the supervisor needs.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.parents.iter().map(|(_, parent)| parent.as_fd())
    }

    /// Creates every placeholder and keeps it until [`Self::remove`]. Makes only plain system calls, for the
    /// supervisor.
    ///
    /// Marks in `mountable` the places that cannot exist. An error comes with the place it concerns.
    pub(super) fn place(&mut self, mountable: &mut [u8]) -> Result<(), (Errno, usize)> {
        for wanted in &mut self.wanted {
            let Some((_, parent)) = self.parents.get(wanted.parent) else { continue };
            let placed = match hold(parent, &wanted.name, wanted.placeholder) {
                // Another user can hold a name in a shared folder for as long as they like.
                Err(Errno::AGAIN) if is_shared(parent) => Placed::Impossible,
                placed => placed.map_err(|errno| (errno, wanted.place))?,
            };
            match placed {
                Placed::Held(lock) => wanted.lock = Some(lock.into_raw_fd()),
                Placed::Taken => {}
                Placed::Impossible => {
                    if let Some(mark) = mountable.get_mut(wanted.place) {
                        *mark = 0;
                    }
                }
            }
        }
        Ok(())
    }

    /// Removes the placeholders that nobody else holds. Makes only plain system calls, for the supervisor.
    pub(super) fn remove(&self) {
        // Later ones may be inside earlier ones.
        for wanted in self.wanted.iter().rev() {
            let (Some((_, parent)), Some(lock)) = (self.parents.get(wanted.parent), wanted.lock) else { continue };
            // SAFETY: this process has opened it and never closes it.
            let lock = unsafe { BorrowedFd::borrow_raw(lock) };
            if flock(lock, FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            let name = wanted.name.as_c_str();
            let (Ok(ours), Ok(now)) = (fstat(lock), statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)) else { continue };
            if same(&now, &ours) {
                let is_folder = wanted.placeholder == Placeholder::Folder;
                let _ = unlinkat(parent, name, if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() });
            }
        }
    }

    fn parent(&mut self, folder: &Path) -> Result<usize, Errno> {
        if let Some(index) = self.parents.iter().position(|(path, _)| path == folder) {
            return Ok(index);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat2(CWD, folder, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS)?;
        self.parents.push((folder.to_owned(), super::spawn::above_stdio(fd)?));
        Ok(self.parents.len() - 1)
    }
}

/// Removes leftover placeholders from a folder while no command runs, for example after a power failure. Nothing else
/// is touched.
pub fn remove_left_placeholders(folder: &Path, names: &Names) {
    for path in names.reserved().map(Path::new).chain([Path::new(DOT_GIT.path)]).map(|name| folder.join(name)) {
        let is_placeholder = |found: &fs::Metadata| found.is_dir() && is_placeholder_mode(found.mode());
        if fs::symlink_metadata(&path).is_ok_and(|found| is_placeholder(&found)) {
            // A placeholder that is locked or not empty stays.
            let _ = remove_unheld(&path);
        }
    }
}

fn remove_unheld(path: &Path) -> Result<(), Errno> {
    let lock =
        openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    if same(&statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?, &fstat(&lock)?) {
        unlinkat(CWD, path, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

fn is_shared(folder: &OwnedFd) -> bool {
    fstat(folder).is_ok_and(|found| found.st_mode & SHARED == SHARED)
}

/// Creates the placeholder or joins the existing one.
fn hold(parent: &OwnedFd, name: &CStr, placeholder: Placeholder) -> Result<Placed, Errno> {
    for attempt in 0..ATTEMPTS {
        if attempt > EAGER_ATTEMPTS {
            let _ = rustix::thread::nanosleep(&PAUSE);
        }
        match create(parent, name, placeholder) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => return Ok(Placed::Impossible),
            Err(error) => return Err(error),
        }
        let lock = match openat(parent, name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
            Ok(lock) => lock,
            Err(Errno::NOENT) => continue,
            Err(_) => return Ok(Placed::Taken),
        };
        let found = fstat(&lock)?;
        if !is_placeholder_mode(found.st_mode) {
            return Ok(Placed::Taken);
        }
        match flock(&lock, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                // Its last holder is about to remove it.
                rustix::thread::sched_yield();
                continue;
            }
            Err(error) => return Err(error),
        }
        if statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|now| same(&now, &found)) {
            return Ok(Placed::Held(lock));
        }
    }
    Err(Errno::AGAIN)
}

fn create(parent: &OwnedFd, name: &CStr, placeholder: Placeholder) -> Result<(), Errno> {
    match placeholder {
        Placeholder::Folder => mkdirat(parent, name, Mode::from_raw_mode(PLACEHOLDER_FOLDER)),
        Placeholder::File(text) => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = openat(parent, name, flags, Mode::from_raw_mode(PLACEHOLDER_FILE))?;
            if text.is_empty() { Ok(()) } else { write(&file, text.as_bytes()).map(drop) }
        }
    }
}

fn same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}
