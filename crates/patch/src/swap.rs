//! Atomic name changes within one folder.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, RenameFlags, linkat, renameat, renameat_with, statat, unlinkat};
use rustix::io::Errno;

/// Whether an error means that the file system does not support the operation, as opposed to refusing it.
fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}

/// Exchanges the names of two files in a folder.
pub(crate) fn exchange(folder: &OwnedFd, one: &OsStr, other: &OsStr) -> Result<(), Errno> {
    match renameat_with(folder, one, folder, other, RenameFlags::EXCHANGE) {
        Err(error) if is_unsupported(error) => exchange_by_three(folder, one, other),
        done => done,
    }
}

/// The same for file systems without that operation: for a moment both names lead to the same file or to none.
fn exchange_by_three(folder: &OwnedFd, one: &OsStr, other: &OsStr) -> Result<(), Errno> {
    let mut third = one.to_owned();
    third.push("~");
    if linkat(folder, other, folder, &third, AtFlags::empty()).is_err() {
        rename_new(folder, other, &third)?;
    }
    if let Err(error) = renameat(folder, one, folder, other) {
        renameat(folder, &third, folder, other)?;
        let _ = unlinkat(folder, &third, AtFlags::empty());
        return Err(error);
    }
    renameat(folder, &third, folder, one)
}

/// Renames a file in a folder to an unused name; fails with [`Errno::EXIST`] if it is taken.
pub(crate) fn rename_new(folder: &OwnedFd, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    match renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
        Err(error) if is_unsupported(error) => rename_new_by_link(folder, from, to),
        done => done,
    }
}

/// The same for file systems without that operation.
fn rename_new_by_link(folder: &OwnedFd, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    match linkat(folder, from, folder, to, AtFlags::empty()) {
        Ok(()) => unlinkat(folder, from, AtFlags::empty()),
        Err(Errno::EXIST) => Err(Errno::EXIST),
        // There are no hard links either, so checking first is all that is left.
        Err(_) => match statat(folder, to, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => renameat(folder, from, folder, to),
            Ok(_) => Err(Errno::EXIST),
            Err(error) => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::{CWD, Mode, OFlags, openat};

    use super::*;

    #[test]
    fn names_change_without_help_of_the_file_system() {
        let temp = tempfile::tempdir().unwrap();
        let read = |name: &str| fs::read_to_string(temp.path().join(name)).ok();
        fs::write(temp.path().join("a"), "1").unwrap();
        fs::write(temp.path().join("b"), "2").unwrap();
        let folder = openat(CWD, temp.path(), OFlags::DIRECTORY, Mode::empty()).unwrap();
        let [a, b, c] = ["a", "b", "c"].map(OsStr::new);
        exchange_by_three(&folder, a, b).unwrap();
        assert_eq!((read("a").as_deref(), read("b").as_deref()), (Some("2"), Some("1")));
        assert_eq!(rename_new_by_link(&folder, a, b), Err(Errno::EXIST));
        rename_new_by_link(&folder, a, c).unwrap();
        assert_eq!((read("a"), read("c").as_deref()), (None, Some("2")));
        assert_eq!(exchange_by_three(&folder, a, b), Err(Errno::NOENT));
        assert_eq!(read("b").as_deref(), Some("1"));
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 2);
    }
}
