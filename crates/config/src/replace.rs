//! Replaces files of the home folder atomically: a reader sees the old text or the new, never a part.
//!
//! Invariant: a login that is being written is in a place that no sandbox exposes, and the leftovers of a killed
//! process are removed by the next write.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Longer chains of links are treated as a cycle, as in the kernel.
const MAX_LINKS: usize = 40;

/// The age from which an unfinished file counts as abandoned.
const ABANDONED: Duration = Duration::from_secs(60);

/// Replaces a file, which need not exist. A link is followed and stays. The mode is kept; a new file is accessible only
/// to this user, because configuration may contain keys.
pub(crate) fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let target = follow(path)?;
    let folder = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let permissions = fs::metadata(&target).ok().map(|metadata| metadata.permissions());
    remove_leftovers(folder, ABANDONED);
    let temporary = Temporary::create(folder)?;
    temporary.fill(text, permissions)?;
    fs::rename(&temporary.path, &target)?;
    sync(folder);
    Ok(())
}

/// Replaces a secret file, as above, accessible only to this user, whatever its mode was before. Until then it is in a
/// folder that no sandbox exposes.
pub(crate) fn replace_secret(path: &Path, text: &str, hidden: &Path) -> io::Result<()> {
    let target = follow(path)?;
    let folder = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(hidden)?;
    let _lock = forget_unfinished(hidden, folder);
    let temporary = Temporary::create(hidden)?;
    temporary.fill(text, None)?;
    match fs::rename(&temporary.path, &target) {
        // A link has led to another file system.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let temporary = Temporary::create(folder)?;
            temporary.fill(text, None)?;
            fs::rename(&temporary.path, &target)?;
        }
        renamed => renamed?,
    }
    sync(folder);
    Ok(())
}

/// Removes leftover secrets of killed processes, and keeps others from writing one until the result is dropped.
pub(crate) fn forget_unfinished(hidden: &Path, folder: &Path) -> io::Result<fs::File> {
    // Only the lock holder writes, so an unfinished file was left by a process that is gone.
    let lock = fs::File::open(hidden).and_then(|folder| folder.lock().map(|()| folder));
    remove_leftovers(hidden, if lock.is_ok() { Duration::ZERO } else { ABANDONED });
    remove_leftovers(folder, ABANDONED);
    lock
}

/// The rename itself has happened; a failed sync of the folder does not undo it.
fn sync(folder: &Path) {
    let _ = fs::File::open(folder).and_then(|folder| folder.sync_all());
}

/// Removes the unfinished files of killed processes, if they are old enough.
fn remove_leftovers(folder: &Path, age: Duration) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        let is_old = || {
            let changed = entry.metadata().ok().filter(fs::Metadata::is_file)?.modified().ok()?;
            Some(age.is_zero() || changed.elapsed().is_ok_and(|elapsed| elapsed >= age))
        };
        if is_ours && is_old() == Some(true) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The prefix and suffix of unfinished files.
const PREFIX: &str = ".codex-";
const SUFFIX: &str = ".tmp";

/// Resolves the links at the end of a path, even if the target does not exist yet.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(next) => path = path.parent().unwrap_or(Path::new("/")).join(next),
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotFound) => {
                return Ok(path);
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many links"))
}

/// A file that is removed unless it is renamed.
struct Temporary {
    path: PathBuf,
    file: fs::File,
}

impl Temporary {
    fn create(folder: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let name = format!("{PREFIX}{}-{}{SUFFIX}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
            let path = folder.join(name);
            let mut options = fs::OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            match options.open(&path) {
                Ok(file) => return Ok(Self { path, file }),
                // Left behind by a killed process with the same id.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn fill(&self, text: &str, permissions: Option<fs::Permissions>) -> io::Result<()> {
        (&self.file).write_all(text.as_bytes())?;
        if let Some(permissions) = permissions {
            self.file.set_permissions(permissions)?;
        }
        self.file.sync_all()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After the rename there is no file with this name, as intended.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use tempfile::TempDir;

    use super::*;

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_file_is_private_and_an_old_one_keeps_its_mode() {
        let temp = TempDir::new().unwrap();
        let path = temp.path().join("f");
        replace_file(&path, "1").unwrap();
        assert_eq!(mode_of(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        replace_file(&path, "2").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode_of(&path)), ("2", 0o644));
        replace_secret(&path, "3", &temp.path().join("run")).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode_of(&path)), ("3", 0o600));
        assert_eq!(names(temp.path()), ["f", "run"]);
        assert_eq!((names(&temp.path().join("run")).len(), mode_of(&temp.path().join("run"))), (0, 0o700));
    }

    #[test]
    fn leftovers_of_a_killed_process_are_gone_after_the_next_write() {
        let temp = TempDir::new().unwrap();
        let run = temp.path().join("run");
        fs::create_dir(&run).unwrap();
        let old = std::time::SystemTime::now() - 2 * ABANDONED;
        for (path, is_old) in [
            (run.join(".codex-1-0.tmp"), false),
            (temp.path().join(".codex-1-0.tmp"), true),
            (temp.path().join(".codex-2-0.tmp"), false),
            (run.join("app-server.token"), true),
        ] {
            let file = fs::File::create(path).unwrap();
            if is_old {
                file.set_modified(old).unwrap();
            }
        }
        replace_secret(&temp.path().join("f"), "1", &run).unwrap();
        assert_eq!(names(temp.path()), [".codex-2-0.tmp", "f", "run"], "somebody may be writing the new one");
        assert_eq!(names(&run), ["app-server.token"]);
    }

    #[test]
    fn a_secret_is_never_unfinished_where_a_sandbox_could_show_it() {
        let temp = TempDir::new().unwrap();
        let (run, folder) = (temp.path().join("run"), temp.path().join("home"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("f"), "old").unwrap();
        replace_secret(&folder.join("f"), "new", &run).unwrap();
        assert_eq!((names(&folder), names(&run)), (vec!["f".to_owned()], Vec::new()));
        // A folder in its place makes the last step fail; the text is removed from both places.
        fs::create_dir(folder.join("g")).unwrap();
        assert!(replace_secret(&folder.join("g"), "new", &run).is_err());
        assert_eq!((names(&folder), names(&run)), (vec!["f".to_owned(), "g".to_owned()], Vec::new()));
    }

    #[test]
    fn links_are_followed_and_stay() {
        let temp = TempDir::new().unwrap();
        fs::create_dir(temp.path().join("real")).unwrap();
        let (link, real) = (temp.path().join("link"), temp.path().join("real/f"));
        symlink("second", &link).unwrap();
        symlink("real/f", temp.path().join("second")).unwrap();
        replace_file(&link, "1").unwrap();
        replace_file(&link, "2").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "2");
        assert_eq!(names(temp.path()), ["link", "real", "second"]);
    }

    #[test]
    fn a_circle_of_links_is_an_error() {
        let temp = TempDir::new().unwrap();
        symlink("b", temp.path().join("a")).unwrap();
        symlink("a", temp.path().join("b")).unwrap();
        assert!(replace_file(&temp.path().join("a"), "1").is_err());
    }

    #[test]
    fn a_failure_leaves_nothing_behind() {
        let temp = TempDir::new().unwrap();
        fs::create_dir_all(temp.path().join("f/below")).unwrap();
        assert!(replace_file(&temp.path().join("f"), "1").is_err());
        assert_eq!(names(temp.path()), ["f"]);
    }
}
