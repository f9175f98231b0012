//! Files of this crate below the home, which only this user can read, and which are replaced as a whole.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The ending of files that are not finished.
const UNFINISHED: &str = "tmp";

/// Replaces a file, and creates its folder if there is none.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let unfinished = path.with_extension(format!("{}-{number}.{UNFINISHED}", std::process::id()));
    // The leftover of a killed process with the same number.
    let _: io::Result<()> = std::fs::remove_file(&unfinished);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    let replaced = file.write_all(bytes).and_then(|()| std::fs::rename(&unfinished, path));
    if replaced.is_err() {
        let _: io::Result<()> = std::fs::remove_file(&unfinished);
    }
    replaced
}

/// Keeps the newest files of a folder and removes the others, among them what killed processes have left unfinished.
pub(crate) fn keep_newest(folder: &Path, most: usize) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut files: Vec<_> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let found = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some((found.modified().ok()?, entry.path()))
        })
        .collect();
    if files.len() <= most {
        return;
    }
    files.sort_unstable();
    for (_, path) in &files[..files.len() - most] {
        // Another process may have removed it.
        let _: io::Result<()> = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_is_private_and_a_link_is_replaced_instead_of_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a/b/file"), folder.path().join("other"));
        replace(&path, b"one").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(&other, "theirs").unwrap();
        std::fs::remove_file(&path).unwrap();
        symlink(&other, &path).unwrap();
        replace(&path, b"two").unwrap();
        let read = |path: &Path| codex_files::read_text(path, 100).unwrap();
        assert_eq!((read(&path), read(&other)), ("two".to_owned(), "theirs".to_owned()));
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left unfinished");
    }

    #[test]
    fn a_folder_keeps_its_newest_files() {
        let folder = tempfile::tempdir().unwrap();
        for (number, name) in ["old", "older.1-2.tmp", "new"].into_iter().enumerate() {
            let path = folder.path().join(name);
            replace(&path, name.as_bytes()).unwrap();
            let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number as u64);
            OpenOptions::new().write(true).open(&path).unwrap().set_modified(time).unwrap();
        }
        keep_newest(folder.path(), 1);
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["new"]);
        keep_newest(&folder.path().join("missing"), 1);
    }
}
