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
    let is_repository = |folder: &&Path| codex_files::is_checkout(folder) || codex_files::is_git_folder(folder);
    folder.ancestors().find(is_repository).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_nested_repository_of_any_kind_is_another() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        for git in ["w/.git", "w/nested/.git", "w/bare"] {
            for folder in ["objects", "refs"] {
                fs::create_dir_all(at(git).join(folder)).unwrap();
            }
            fs::write(at(git).join("HEAD"), "").unwrap();
        }
        for folder in ["w/src/deep", "w/empty/.git", "w/link", "w/parted", "other"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        // A git folder whose settings are elsewhere once counted as an ordinary one.
        fs::write(at("w/parted/HEAD"), "").unwrap();
        fs::write(at("w/parted/commondir"), "../../other").unwrap();
        fs::write(at("w/link/.git"), "gitdir: ../../other").unwrap();
        std::os::unix::fs::symlink(at("other"), at("w/out")).unwrap();
        for (folder, is_same) in [
            ("w", true),
            ("w/src/deep", true),
            ("w/src/../src", true),
            ("w/nested", false),
            ("w/empty", true),
            ("w/parted", false),
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
