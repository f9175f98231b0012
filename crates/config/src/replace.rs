//! Files of the home folder are replaced as a whole: whoever reads one sees the old text or the new, never a part.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// Longer chains of links are taken for a circle, as the kernel does.
const MAX_LINKS: usize = 40;

/// Puts a text in the place of a file, which need not exist. A link is followed and stays. The mode is kept; a new
/// file is for this user's eyes only, since configuration and login may hold keys.
pub(crate) fn replace_file(path: &Path, text: &str, mode: Mode) -> io::Result<()> {
    let target = follow(path)?;
    let folder = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let permissions = match (mode, fs::metadata(&target)) {
        (Mode::Kept, Ok(metadata)) => Some(metadata.permissions()),
        (Mode::Kept | Mode::Private, _) => None,
    };
    let temporary = Temporary::create(folder)?;
    temporary.fill(text, permissions)?;
    fs::rename(&temporary.path, &target)?;
    // The rename itself has happened; a folder that cannot be synced does not undo it.
    let _ = fs::File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Who may read the file afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Whoever could before.
    Kept,
    /// This user alone, whoever could before.
    Private,
}

/// Where the links at the end of a path lead, also if nothing is there yet.
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

/// A file that is gone when it is not renamed.
struct Temporary {
    path: PathBuf,
    file: fs::File,
}

impl Temporary {
    fn create(folder: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let name = format!(".codex-{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
            let path = folder.join(name);
            let mut options = fs::OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            match options.open(&path) {
                Ok(file) => return Ok(Self { path, file }),
                // Left behind by a process that was killed and had the same number.
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
        // After the rename there is nothing of this name, which is as it should be.
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
        replace_file(&path, "1", Mode::Kept).unwrap();
        assert_eq!(mode_of(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        replace_file(&path, "2", Mode::Kept).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode_of(&path)), ("2", 0o644));
        replace_file(&path, "3", Mode::Private).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode_of(&path)), ("3", 0o600));
        assert_eq!(names(temp.path()), ["f"]);
    }

    #[test]
    fn links_are_followed_and_stay() {
        let temp = TempDir::new().unwrap();
        fs::create_dir(temp.path().join("real")).unwrap();
        let (link, real) = (temp.path().join("link"), temp.path().join("real/f"));
        symlink("second", &link).unwrap();
        symlink("real/f", temp.path().join("second")).unwrap();
        replace_file(&link, "1", Mode::Kept).unwrap();
        replace_file(&link, "2", Mode::Kept).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "2");
        assert_eq!(names(temp.path()), ["link", "real", "second"]);
    }

    #[test]
    fn a_circle_of_links_is_an_error() {
        let temp = TempDir::new().unwrap();
        symlink("b", temp.path().join("a")).unwrap();
        symlink("a", temp.path().join("b")).unwrap();
        assert!(replace_file(&temp.path().join("a"), "1", Mode::Kept).is_err());
    }

    #[test]
    fn a_failure_leaves_nothing_behind() {
        let temp = TempDir::new().unwrap();
        fs::create_dir_all(temp.path().join("f/below")).unwrap();
        assert!(replace_file(&temp.path().join("f"), "1", Mode::Kept).is_err());
        assert_eq!(names(temp.path()), ["f"]);
    }
}
