//! Finds the repository that `git` would take its settings from.
//!
//! Unlike [`Repository`](super::repository::Repository) this is not about the data of a repository but about the
//! settings that `git` would use, so anything that it could recognise as one counts: a `.git` of any kind, and a folder
//! that looks like a bare repository.

use std::path::{Path, PathBuf};

/// Whether `git` takes its settings from the same repository in two folders, or from none in both.
#[must_use]
pub fn is_same_repository(one: &Path, other: &Path) -> bool {
    if one == other {
        return true;
    }
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other || innermost(&one) == innermost(&other),
        // A missing folder may become anything.
        _ => false,
    }
}

/// The nearest folder around this one that `git` would recognise as a repository.
fn innermost(folder: &Path) -> Option<PathBuf> {
    let is_there = |path: PathBuf| path.symlink_metadata().is_ok();
    let is_bare = |folder: &Path| ["HEAD", "objects", "refs"].iter().all(|name| is_there(folder.join(name)));
    let found = folder.ancestors().find(|folder| is_there(folder.join(".git")) || is_bare(folder));
    found.map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_nested_repository_of_any_kind_is_another() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        for folder in ["w/.git", "w/src/deep", "w/nested/.git", "w/bare/objects", "w/bare/refs", "w/link", "other"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at("w/bare/HEAD"), "").unwrap();
        fs::write(at("w/link/.git"), "gitdir: ../../other").unwrap();
        std::os::unix::fs::symlink(at("other"), at("w/out")).unwrap();
        for (folder, is_same) in [
            ("w", true),
            ("w/src/deep", true),
            ("w/src/../src", true),
            ("w/nested", false),
            ("w/bare", false),
            ("w/bare/refs", false),
            ("w/link", false),
            ("w/out", false),
            ("other", false),
            ("w/gone", false),
        ] {
            assert_eq!(is_same_repository(&at("w"), &at(folder)), is_same, "{folder}");
            assert_eq!(is_same_repository(&at("w/src"), &at(folder)), is_same, "{folder} from below");
        }
        assert!(is_same_repository(&at("w/nested"), &at("w/nested")));
        assert!(is_same_repository(&at("other"), temp.path()), "no repository in both");
    }
}
