//! The changes that an inspection makes: each in one open folder, to one name in it.
//!
//! Invariant: no link is followed, nothing is overwritten, and nothing is deleted. A concurrent command can make a step
//! fail or come too late, but never redirect it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, chmod, fchmod, fstat, openat, renameat, renameat_with, statat};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::walk::Folder;

/// The start of the suffix of a disarmed name. A random number follows, so that no command can know the name before and
/// lead git there.
pub const SUFFIX: &str = ".disabled-by-codex-";
/// The number of bytes of the old name in the new one, so that the file system takes it.
const KEPT_NAME: usize = 200;
/// The maximum number of names tried.
const ATTEMPTS: usize = 8;
/// The maximum number of bytes read from a file.
pub const MAX_FILE: usize = 1024 * 1024;

/// Renames an entry in place and returns its new name.
pub fn move_aside(folder: &Folder, name: &OsStr) -> Result<OsString, Errno> {
    match rename(folder, name) {
        // A process that may change the mode of a folder may also have removed our access.
        Err(Errno::ACCESS) if reopen(folder) => rename(folder, name),
        done => done,
    }
}

fn rename(folder: &Folder, name: &OsStr) -> Result<OsString, Errno> {
    for _ in 0..ATTEMPTS {
        let mut aside = OsStr::from_bytes(name.as_bytes().get(..KEPT_NAME).unwrap_or(name.as_bytes())).to_owned();
        aside.push(format!("{SUFFIX}{:016x}", unpredictable()?));
        match renameat_with(&folder.handle, name, &folder.handle, &*aside, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(aside),
            Err(Errno::EXIST) => {}
            // Not every file system supports renaming without replacing.
            Err(Errno::INVAL | Errno::NOSYS) => {
                if matches!(statat(&folder.handle, &*aside, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT)) {
                    return renameat(&folder.handle, name, &folder.handle, &*aside).map(|()| aside);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}

fn unpredictable() -> Result<u64, Errno> {
    let mut bytes = [0; 8];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Restores the owner's access to a folder.
fn reopen(folder: &Folder) -> bool {
    fstat(&folder.handle).is_ok_and(|found| open_up(&folder.handle, found.st_mode).is_ok())
}

fn open_up(folder: impl AsFd, mode: u32) -> Result<(), Errno> {
    // Also works for `O_PATH` descriptors.
    chmod(format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd()), Mode::from_raw_mode(mode & 0o7777 | 0o700))
}

/// Renames an entry and takes all access to a folder away, because nobody knows what is in it.
pub fn seal(folder: &Folder, name: &OsStr) -> Result<OsString, Errno> {
    let aside = move_aside(folder, name)?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if let Ok(unknown) = openat(&folder.handle, &*aside, flags, Mode::empty()) {
        chmod(format!("/proc/self/fd/{}", unknown.as_raw_fd()), Mode::empty())?;
    }
    Ok(aside)
}

/// Makes a folder readable for its owner, by its name in the parent folder.
pub fn make_readable(around: &Folder, name: &Path) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(&around.handle, name, flags, Mode::empty())?;
    open_up(&folder, fstat(&folder)?.st_mode)
}

/// Reads a regular file. A file that is too long is truncated.
pub fn read(folder: &Folder, name: impl AsRef<Path>) -> Option<Vec<u8>> {
    let file = open(folder, name.as_ref())?;
    let mut text = Vec::new();
    file.take(MAX_FILE as u64).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Opens a regular file for reading, without waiting for anything.
#[must_use]
pub fn open(folder: &Folder, name: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(&folder.handle, name, flags, Mode::empty()).ok()?);
    file.metadata().ok()?.is_file().then_some(file)
}

/// Creates a file; fails if the name exists.
pub fn write_new(folder: &Folder, name: &OsStr, text: &[u8]) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(&folder.handle, name, flags, Mode::from_raw_mode(0o644))?);
    file.write_all(text).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Renames a file and creates another in its place. Returns the new name of the old one.
pub fn replace(folder: &Folder, name: &OsStr, text: &[u8]) -> Result<OsString, Errno> {
    let aside = move_aside(folder, name)?;
    write_new(folder, name, text)?;
    Ok(aside)
}

/// Removes the executable bits of a file.
pub fn take_execute_bits(folder: &Folder, name: &OsStr) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(&folder.handle, name, flags, Mode::empty())?;
    let mode = fstat(&file)?.st_mode & 0o7777 & !0o6111;
    fchmod(&file, Mode::from_raw_mode(mode))
}
