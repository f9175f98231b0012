//! The files of git's configuration and the files that they include.
//!
//! Invariant: reading is bounded and never blocks. Conditions of `includeIf` are not evaluated: a file that may be
//! included counts as included.

use std::path::{Path, PathBuf};

use codex_guard::git::config::{Entry, parse};

use super::read;

/// The maximum include depth, as in git.
const MAX_DEPTH: usize = 10;
/// The maximum number of files read for one repository.
const MAX_FILES: usize = 64;

/// The combined settings of some files and everything that they include.
#[derive(Debug, Default)]
pub(crate) struct Effective {
    pub(crate) entries: Vec<Entry>,
    /// The included paths, whether they exist or not.
    pub(crate) included: Vec<PathBuf>,
    seen: Vec<PathBuf>,
}

impl Effective {
    /// The files that apply to every repository of this user.
    pub(crate) fn of_user() -> Self {
        let mut user = Self::default();
        user.add(Path::new("/etc/gitconfig"));
        let home = std::env::home_dir();
        let own = std::env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let own = own.or_else(|| home.as_ref().map(|home| home.join(".config")));
        for file in [own.map(|folder| folder.join("git/config")), home.map(|home| home.join(".gitconfig"))] {
            user.add(&file.unwrap_or_default());
        }
        user
    }

    /// Reads another file.
    pub(crate) fn add(&mut self, file: &Path) {
        self.add_included(file, MAX_DEPTH);
    }

    fn add_included(&mut self, file: &Path, depth_left: usize) {
        if self.seen.len() >= MAX_FILES || self.seen.iter().any(|seen| seen == file) {
            return;
        }
        self.seen.push(file.to_owned());
        let Some(text) = read(file) else { return };
        for entry in parse(&text).entries {
            let includes = entry.is("include", "path") || entry.is("includeif", "path");
            if let Some(path) = file.parent().filter(|_| includes).and_then(|folder| entry.path(folder)) {
                self.included.push(path.clone());
                if depth_left > 0 {
                    self.add_included(&path, depth_left - 1);
                }
            }
            self.entries.push(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_with_what_they_include() {
        let base = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(base.path().join(name), text).unwrap();
        write("config", "[include]\npath = one ; shared\n[includeIf \"gitdir:~/x\"]\npath=./sub/../two\n");
        write("one", "[include]\npath = config\n[core]\nhooksPath = a\n");
        let mut read = Effective::default();
        read.add(&base.path().join("config"));
        let included: Vec<_> = read.included.iter().map(|path| path.strip_prefix(base.path()).unwrap()).collect();
        assert_eq!(included, [Path::new("one"), Path::new("config"), Path::new("two")]);
        assert!(read.entries.iter().any(|entry| entry.is("core", "hookspath")));
    }
}
