//! Whether a folder is the root of a git checkout.

use std::path::Path;

/// Whether git would take a folder for the root of a checkout, by its `.git`. An empty one is none: a sandbox holds the name
/// with it while a command runs, also in folders that everybody shares.
#[must_use]
pub fn is_checkout(folder: &Path) -> bool {
    let git = folder.join(".git");
    match git.symlink_metadata() {
        Ok(found) if found.is_dir() => std::fs::read_dir(git).is_ok_and(|mut entries| entries.next().is_some()),
        Ok(_) => true,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_folder_is_no_repository() {
        let temp = tempfile::tempdir().unwrap();
        let git = temp.path().join(".git");
        assert!(!is_checkout(temp.path()));
        std::fs::create_dir(&git).unwrap();
        assert!(!is_checkout(temp.path()));
        std::fs::write(git.join("HEAD"), "").unwrap();
        assert!(is_checkout(temp.path()));
        std::fs::remove_dir_all(&git).unwrap();
        std::fs::write(&git, "gitdir: elsewhere").unwrap();
        assert!(is_checkout(temp.path()));
    }
}
