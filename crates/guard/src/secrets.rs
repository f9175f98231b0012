//! The files in `CODEX_HOME` that no command may read: logins, and the token and log of a running server.
//!
//! With the token, a command that may use the network could drive the server itself, which runs commands outside of any
//! sandbox.
//!
//! Invariant: a secret is closed under the name that programs use and, if that is a link, under its target. A secret
//! directly in the home that appears or is replaced while a command runs stays hidden from it.

#[cfg(target_os = "linux")]
use std::fs;
use std::path::{Path, PathBuf};

use crate::names::SECRETS;

/// The secrets of a home.
#[derive(Debug, Default)]
pub struct Secrets {
    /// The home; empty if the caller named none.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only namespaces cover a folder as a whole"))]
    home: PathBuf,
    /// The paths where secrets are or would be, links included.
    paths: Vec<PathBuf>,
}

impl Secrets {
    /// The secrets of a home whose links are resolved.
    #[must_use]
    pub fn of(home: &Path) -> Self {
        // If the home were `/`, hiding around it would hide everything.
        if home.parent().is_none() {
            return Self::default();
        }
        let mut paths = Vec::with_capacity(SECRETS.len());
        for name in SECRETS {
            let path = home.join(name);
            if let Ok(real) = path.canonicalize()
                && real != path
            {
                paths.push(real);
            }
            paths.push(path);
        }
        Self { home: home.to_owned(), paths }
    }

    /// The paths where secrets are or would be.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The home, if it exists, and its other entries.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn beside(&self) -> Option<(&Path, Vec<fs::DirEntry>)> {
        let entries = fs::read_dir(&self.home).ok()?.flatten();
        Some((&self.home, entries.filter(|entry| !self.paths.contains(&entry.path())).collect()))
    }

    /// Secrets outside of the home, and whether each is a folder.
    #[cfg(target_os = "linux")]
    pub fn elsewhere(&self) -> impl Iterator<Item = (&Path, bool)> {
        let is_elsewhere = |path: &&PathBuf| path.parent() != Some(&self.home);
        self.paths.iter().filter(is_elsewhere).map(|path| (path.as_path(), path.is_dir()))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_secret_behind_a_link_is_closed_at_both_ends() {
        let base = tempfile::tempdir().expect("a folder");
        let base = base.path().canonicalize().expect("it exists");
        let home = base.join("home");
        fs::create_dir(&home).expect("mkdir");
        fs::write(base.join("login"), "secret").expect("write");
        std::os::unix::fs::symlink("../login", home.join("auth.json")).expect("symlink");
        let secrets = Secrets::of(&home);
        assert!(secrets.paths().contains(&home.join("auth.json")) && secrets.paths().contains(&base.join("login")));
        assert!(secrets.paths().contains(&home.join("run")), "what is not there yet counts too");
    }

    #[test]
    fn without_a_home_there_are_none() {
        for home in ["", "/"] {
            assert!(Secrets::of(Path::new(home)).paths().is_empty(), "{home}");
        }
    }
}
