//! What is known of the repository around a folder: commit, branch, origin, and the changes that no remote has. And
//! diffs, applied to the files of a folder.
//!
//! Assume that the repository is hostile. Commit, branch and origin are read from its files without running anything.
//! For the rest, `git` is run on a git folder of our own that borrows objects and index from the real one, so the
//! repository's configuration, hooks and attributes outside the checkout are not even seen: no filter, monitor, pager
//! or diff program of it can run, because none is ever named. The folder lies where the caller says ([`Runner`]), in a
//! place that nobody can write who may write the checkout.
//!
//! Invariants: the git folder of the repository is never written, a forged `.git` file leads nowhere, every run of `git`
//! has a deadline and a limit on its output. No async code.

mod apply;
mod changes;
mod checkout;
mod file;
mod innermost;
mod refs;
mod repository;
mod run;
mod settings;
mod stage;

use std::{path::Path, time::Duration};

use codex_wire::rollout::GitInfo;

use self::repository::Repository;

pub use apply::Applied;
pub use changes::GitError;
pub use checkout::Checkout;
pub use innermost::is_same_repository;
pub use run::Runner;

/// How long `git` may take for all that one question needs.
pub const DEADLINE: Duration = Duration::from_secs(5);
/// How long `git` may take to apply a diff. Somebody waits for it who can stop it.
const APPLY_DEADLINE: Duration = Duration::from_secs(60);

/// What a checkout has that no remote has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffToRemote {
    /// The newest commit that a remote has too.
    pub sha: String,
    /// What has changed since, untracked files included.
    pub diff: String,
}

/// The commit, branch and origin of the repository around a folder, as rollouts keep them; nothing outside of one.
///
/// An address is given without the name and password in it.
#[must_use]
pub fn git_info(cwd: &Path) -> Option<GitInfo> {
    let repository = Repository::find(cwd)?;
    let head = refs::head(&repository);
    let settings = repository.settings();
    let url = settings.get("remote", "origin", "url").map(without_credentials);
    Some(GitInfo { commit_hash: head.commit, branch: head.branch, repository_url: url })
}

/// The newest commit of the checked-out branch that a remote has too, and all changes since, with untracked files.
pub fn git_diff_to_remote(cwd: &Path, runner: &Runner) -> Result<DiffToRemote, GitError> {
    changes::diff_to_remote(cwd, runner, DEADLINE)
}

/// Applies a diff to the files of a folder, all of it or nothing. Its names count from the folder.
///
/// Attributes of the checkout that name a filter or another program have no effect.
pub fn apply(folder: &Path, diff: &str, runner: &Runner) -> Result<Applied, GitError> {
    apply::apply(folder, diff, runner, APPLY_DEADLINE)
}

/// Whether the repository of a checkout has a commit.
pub fn has_commit(checkout: &Checkout, commit: &str, runner: &Runner) -> Result<bool, GitError> {
    checkout.has_commit(commit, runner, DEADLINE)
}

/// Takes the user part out of a web address: it is where tokens are put.
fn without_credentials(url: &str) -> String {
    let scheme = ["https://", "http://"].iter().find(|scheme| url.starts_with(**scheme));
    match scheme.and_then(|scheme| url.strip_prefix(scheme).map(|rest| (scheme, rest))) {
        Some((scheme, rest)) => {
            let host = rest.find('/').unwrap_or(rest.len());
            let begin = rest.get(..host).and_then(|host| host.rfind('@')).map_or(0, |at| at + 1);
            format!("{scheme}{}", rest.get(begin..).unwrap_or_default())
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests;
