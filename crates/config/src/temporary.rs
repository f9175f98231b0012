//! Our own temporary folders, below `CODEX_HOME/tmp`.
//!
//! `$TMPDIR` is not suitable: sandboxed commands may write there, and a program that runs outside of the sandbox uses
//! the files in its folder. No sandbox lets a command write below `CODEX_HOME`.
//!
//! Invariants: a new folder is empty and accessible only to this user, it is removed when its owner drops it, and the
//! leftover of a killed process is removed by a later one, but never while its owner lives.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use crate::{Home, HomeError};

/// The prefix of the folders; nothing else is ever removed.
const PREFIX: &str = "codex-";
/// The number of random letters that follow.
const RANDOM_LETTERS: usize = 22;
/// The maximum number of entries that one call checks for abandoned folders.
const MAX_LOOKED_AT: usize = 64;
/// The maximum number of attempts with other names while other processes clean up.
const MAX_ATTEMPTS: usize = 100;

/// A private temporary folder. It is removed when this is dropped.
#[derive(Debug)]
pub struct TemporaryFolder {
    path: PathBuf,
    /// Held as long as the folder has an owner. Without locks, abandoned folders stay.
    _lock: File,
}

impl TemporaryFolder {
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // If this fails, a later process removes it.
        let _ = fs::remove_dir_all(&self.path);
        if let Some(parent) = self.path.parent() {
            // This fails while another folder is there.
            let _ = fs::remove_dir(parent);
        }
    }
}

impl Home {
    /// Creates a temporary folder that no sandboxed command can write, and removes some leftovers.
    pub fn temporary_folder(&self) -> Result<TemporaryFolder, HomeError> {
        self.ensure()?;
        let parent = std::path::absolute(self.path()).unwrap_or_else(|_| self.path().to_owned()).join("tmp");
        let failed = |source| HomeError::Create { path: parent.clone(), source };
        for _ in 0..MAX_ATTEMPTS {
            match prepare(&parent).and_then(|()| create(&parent)) {
                Ok(Some(folder)) if has_same_owner(&parent, &folder.path).map_err(failed)? => return Ok(folder),
                Ok(Some(_)) => return Err(HomeError::Foreign { path: parent }),
                Ok(None) => {}
                // The last process to leave has just removed the parent folder.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(failed(io::ErrorKind::ResourceBusy.into()))
    }
}

/// Creates the parent of all temporary folders, or ensures that nobody else can access it.
fn prepare(parent: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(parent) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let found = fs::symlink_metadata(parent)?;
    if !found.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    close(parent, &found)
}

/// Makes the folder private. Another program of the user may have created it.
#[cfg(unix)]
fn close(parent: &Path, found: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    if found.permissions().mode() & 0o777 == 0o700 {
        return Ok(());
    }
    fs::set_permissions(parent, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn close(_: &Path, _: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// Creates and locks one folder; `None` if another process removed it as abandoned in between.
fn create(parent: &Path) -> io::Result<Option<TemporaryFolder>> {
    remove_abandoned(parent);
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).rand_bytes(RANDOM_LETTERS);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    let path = builder.tempdir_in(parent)?.keep();
    let lock = File::open(&path)?;
    if matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) || !path.is_dir() {
        return Ok(None);
    }
    Ok(Some(TemporaryFolder { path, _lock: lock }))
}

/// Whether both have the same owner. A folder that we have just created is ours.
#[cfg(unix)]
fn has_same_owner(one: &Path, other: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    Ok(fs::symlink_metadata(one)?.uid() == fs::symlink_metadata(other)?.uid())
}

#[cfg(not(unix))]
fn has_same_owner(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Removes folders whose owners are gone: those that can be locked.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten().take(MAX_LOOKED_AT) {
        let is_ours = entry.file_name().to_str().is_some_and(|name| {
            name.strip_prefix(PREFIX).is_some_and(|rest| {
                rest.len() == RANDOM_LETTERS && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
            })
        });
        if !is_ours || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let Ok(folder) = File::open(entry.path()) else { continue };
        if folder.try_lock().is_ok() {
            // A process that has just created it and not locked it yet finds it gone and creates another.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use tempfile::TempDir;

    use super::*;

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_is_private_new_and_gone_afterwards() {
        let temp = TempDir::new().unwrap();
        let home = Home::at(temp.path().join("home"));
        let (one, other) = (home.temporary_folder().unwrap(), home.temporary_folder().unwrap());
        assert_ne!(one.path(), other.path());
        for folder in [&one, &other] {
            assert!(folder.path().is_absolute() && folder.path().starts_with(home.path().join("tmp")));
            assert_eq!((mode_of(folder.path()), names(folder.path())), (0o700, Vec::new()));
        }
        assert_eq!(mode_of(&home.path().join("tmp")), 0o700);
        fs::create_dir(one.path().join("below")).unwrap();
        drop(one);
        assert_eq!(names(&home.path().join("tmp")).len(), 1);
        drop(other);
        assert_eq!(names(home.path()), Vec::<String>::new());
    }

    #[test]
    fn a_folder_of_others_is_closed_to_them() {
        let temp = TempDir::new().unwrap();
        let parent = temp.path().join("tmp");
        fs::create_dir(&parent).unwrap();
        fs::write(parent.join("of-another-program"), "").unwrap();
        fs::set_permissions(&parent, fs::Permissions::from_mode(0o777)).unwrap();
        drop(Home::at(temp.path()).temporary_folder().unwrap());
        assert_eq!((mode_of(&parent), names(&parent)), (0o700, vec!["of-another-program".to_owned()]));
    }

    #[test]
    fn a_link_in_the_place_of_the_folder_is_refused() {
        let temp = TempDir::new().unwrap();
        fs::create_dir(temp.path().join("elsewhere")).unwrap();
        symlink("elsewhere", temp.path().join("tmp")).unwrap();
        let error = Home::at(temp.path()).temporary_folder().unwrap_err();
        assert_eq!(error.to_string(), format!("could not create {}/tmp", temp.path().display()));
        assert_eq!(names(&temp.path().join("elsewhere")), Vec::<String>::new());
    }

    #[test]
    fn only_what_a_dead_process_has_left_is_removed() {
        let temp = TempDir::new().unwrap();
        let home = Home::at(temp.path());
        let alive = home.temporary_folder().unwrap();
        let parent = temp.path().join("tmp");
        let dead = format!("{PREFIX}{}", "d".repeat(RANDOM_LETTERS));
        fs::create_dir_all(parent.join(&dead).join("objects")).unwrap();
        fs::create_dir(temp.path().join("outside")).unwrap();
        fs::write(temp.path().join("outside/file"), "").unwrap();
        let link = format!("{PREFIX}{}", "l".repeat(RANDOM_LETTERS));
        symlink(temp.path().join("outside"), parent.join(&link)).unwrap();
        symlink(temp.path().join("outside"), parent.join(&dead).join("link")).unwrap();
        for name in ["codex-notes", "other"] {
            fs::create_dir(parent.join(name)).unwrap();
        }
        drop(home.temporary_folder().unwrap());
        let name = alive.path().file_name().unwrap().to_string_lossy().into_owned();
        let mut expected = vec![name, link, "codex-notes".to_owned(), "other".to_owned()];
        expected.sort();
        assert_eq!(names(&parent), expected);
        assert_eq!(names(&temp.path().join("outside")), ["file"]);
    }

    #[test]
    fn many_at_once_get_a_folder_each() {
        let temp = TempDir::new().unwrap();
        let home = Home::at(temp.path());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let folder = home.temporary_folder().unwrap();
                        fs::write(folder.path().join("file"), "x").unwrap();
                    }
                });
            }
        });
        assert_eq!(names(temp.path()), Vec::<String>::new());
    }
}
