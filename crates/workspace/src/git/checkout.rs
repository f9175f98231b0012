//! A checkout as seen from outside: its folder, and its repository.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use super::{GitError, repository::Repository, run::Runner, stage::Stage, without_credentials};

/// The maximum number of bytes of git's output about a commit.
const MAX_SAID: usize = 1024;

/// The maximum number of root commits that are listed, each with the longest kind of hash. Merges of other repositories
/// add theirs.
const MAX_ROOTS: usize = 8;
const MAX_ROOT_BYTES: usize = MAX_ROOTS * 65;

/// The checkout around a folder.
#[derive(Debug, Clone)]
pub struct Checkout(Repository);

impl Checkout {
    /// The checkout of the nearest folder that has one.
    #[must_use]
    pub fn find(folder: &Path) -> Option<Self> {
        Repository::find(folder).map(Self)
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// The origin of its repository, without user name and password.
    #[must_use]
    pub fn origin(&self) -> Option<String> {
        self.0.settings().get("remote", "origin", "url").map(without_credentials)
    }

    /// Whether it was cloned from there, however the address is written.
    #[must_use]
    pub fn has_origin(&self, origin: &str) -> bool {
        self.origin().is_some_and(|own| bare(&own) == bare(origin))
    }

    /// Whether both are worktrees of one repository.
    #[must_use]
    pub fn shares_repository(&self, other: &Self) -> bool {
        self.0.common == other.0.common
    }

    /// Whether it is a clone without the beginning of its history.
    #[must_use]
    pub fn is_shallow(&self) -> bool {
        self.0.common.join("shallow").symlink_metadata().is_ok_and(|file| file.len() > 0)
    }

    /// The commits without a parent that a commit descends from. A shallow clone does not know them.
    pub(crate) fn root_commits(
        &self,
        commit: &str,
        runner: &Runner,
        within: Duration,
    ) -> Result<Vec<String>, GitError> {
        if !is_hash(commit) || self.is_shallow() {
            return Ok(Vec::new());
        }
        let stage = self.stage(runner)?;
        let git = stage.git(&self.0.root, Instant::now() + within);
        let most = format!("--max-count={MAX_ROOTS}");
        let listed = git.run(&["rev-list", "--max-parents=0", &most, commit], None, MAX_ROOT_BYTES);
        let listed = listed.map_err(|source| GitError::Git { root: self.0.root.clone(), source: source.into() })?;
        let listed = String::from_utf8_lossy(&listed);
        Ok(listed.lines().filter(|line| is_hash(line)).map(str::to_owned).collect())
    }

    fn stage<'a>(&self, runner: &'a Runner) -> Result<Stage<'a>, GitError> {
        Stage::new(runner, Some(&self.0)).map_err(|source| GitError::Read { root: self.0.root.clone(), source })
    }

    pub(crate) fn has_commit(&self, commit: &str, runner: &Runner, within: Duration) -> Result<bool, GitError> {
        if !is_hash(commit) {
            return Ok(false);
        }
        let stage = self.stage(runner)?;
        let git = stage.git(&self.0.root, Instant::now() + within);
        Ok(git.run(&["cat-file", "-e", &format!("{commit}^{{commit}}")], None, MAX_SAID).is_ok())
    }
}

/// Whether a text is the whole hash of a commit, and nothing that git could take for an option or a name.
fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The host and path of an address, whatever the protocol.
fn bare(address: &str) -> String {
    let end = address.trim_end_matches('/');
    let end = end.strip_suffix(".git").unwrap_or(end);
    let (host, path) = match end.split_once("://") {
        Some((_, rest)) => rest.split_once('/').unwrap_or((rest, "")),
        None => match end.split_once(':') {
            Some((host, path)) if !host.contains('/') => (host, path),
            _ => return end.to_owned(),
        },
    };
    let host = host.rsplit('@').next().unwrap_or(host).to_ascii_lowercase();
    format!("{host}/{}", path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_same_in_all_spellings() {
        for address in [
            "https://github.com/o/r.git",
            "https://GitHub.com/o/r/",
            "ssh://git@github.com/o/r",
            "git@github.com:o/r.git",
            "https://name:key@github.com/o/r",
        ] {
            assert_eq!(bare(address), "github.com/o/r", "{address}");
        }
        assert_eq!(bare("/srv/r.git/"), "/srv/r");
        assert_eq!(bare("../r:1"), "../r:1");
        assert_ne!(bare("https://github.com/o/r"), bare("https://github.com/o/R"));
    }
}
