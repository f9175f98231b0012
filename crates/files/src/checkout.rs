//! Recognises git folders and roots of checkouts, for the whole program.
//!
//! Invariant: git recognises no folder that does not count here. An empty `.git`, which any program can leave in a
//! shared folder such as `/tmp`, is no repository for git, and so it is none here.

use std::ffi::OsStr;
use std::path::Path;

/// The names by which git recognises a git folder.
pub const GIT_FOLDER_MARKS: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// Notes which of the [`GIT_FOLDER_MARKS`] a folder has.
#[derive(Debug, Clone, Copy, Default)]
pub struct GitMarks([bool; GIT_FOLDER_MARKS.len()]);

impl GitMarks {
    /// Notes that the folder has an entry with this name.
    pub fn note(&mut self, name: &OsStr) {
        for (seen, mark) in self.0.iter_mut().zip(GIT_FOLDER_MARKS) {
            *seen |= name == mark;
        }
    }

    /// Whether git would take the folder for a git folder: of its own, or with a `commondir` that leads to the rest.
    #[must_use]
    pub fn is_git_folder(self) -> bool {
        let [head, objects, refs, common] = self.0;
        head && (objects && refs || common)
    }
}

/// Whether git would take a folder for a git folder.
#[must_use]
pub fn is_git_folder(folder: &Path) -> bool {
    let mut marks = GitMarks::default();
    for name in GIT_FOLDER_MARKS {
        if folder.join(name).symlink_metadata().is_ok() {
            marks.note(OsStr::new(name));
        }
    }
    marks.is_git_folder()
}

/// Whether a folder is the root of a checkout: its `.git` is a git folder, or a file that names one elsewhere.
#[must_use]
pub fn is_checkout(folder: &Path) -> bool {
    let git = folder.join(".git");
    git.metadata().is_ok_and(|found| found.is_file() || found.is_dir() && is_git_folder(&git))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// An empty `/tmp/.git` made everything below `/tmp` a repository.
    #[test]
    fn only_a_git_folder_or_a_file_that_names_one_makes_a_checkout() {
        let temp = tempfile::tempdir().unwrap();
        let git = temp.path().join(".git");
        let make = |name: &str| fs::create_dir_all(git.join(name)).unwrap();
        assert!(!is_checkout(temp.path()));
        make("objects");
        make("refs");
        assert!(!is_checkout(temp.path()), "it has no HEAD");
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        assert!(is_checkout(temp.path()) && is_git_folder(&git));
        fs::remove_dir(git.join("refs")).unwrap();
        assert!(!is_git_folder(&git));
        fs::write(git.join("commondir"), "../elsewhere\n").unwrap();
        assert!(is_git_folder(&git), "the rest is in another folder");
        fs::remove_dir_all(&git).unwrap();
        fs::write(&git, "gitdir: elsewhere").unwrap();
        assert!(is_checkout(temp.path()));
    }
}
