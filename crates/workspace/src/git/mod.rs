//! Information about the repository around a folder: commit, branch, origin, and unpushed changes; applying diffs to the
//! files of a folder; and worktrees of our own.
//!
//! The repository is assumed to be hostile. Commit, branch and origin are read from its files without running anything.
//! For the rest, `git` runs on our own git folder that borrows objects and index from the real one, so the repository's
//! configuration, hooks and attributes outside the checkout are not even seen: none of its filters, monitors, pagers or
//! diff programs can run, because none is ever named. The caller chooses the place of that folder ([`Runner`]), where
//! nobody who may write the checkout can write.
//!
//! Invariants: the git folder of the repository is never written, except by [`Worktree`], and then without following a
//! link; a forged `.git` file leads nowhere; every run of `git` has a deadline and an output limit. No async code.

mod apply;
mod branch;
mod changes;
mod checkout;
mod file;
mod folder;
mod innermost;
mod refs;
mod repository;
mod run;
mod settings;
mod snapshot;
mod stage;
mod worktree;

use std::{path::Path, time::Duration};

use codex_wire::rollout::GitInfo;

use self::repository::Repository;

pub use apply::Applied;
pub use changes::GitError;
pub use checkout::Checkout;
pub use innermost::is_same_repository;
pub use run::Runner;
pub use worktree::{Left, Merge, MergedFile, NewWorktree, Worktree, WorktreeChanges, WorktreeError};

/// The time limit for all runs of `git` that one query needs.
pub const DEADLINE: Duration = Duration::from_secs(5);
/// The time limit for walking a history. A thread waits for it when it starts.
const WALK_DEADLINE: Duration = Duration::from_secs(1);
/// The time limit for applying a diff. The user is waiting and can stop it.
const APPLY_DEADLINE: Duration = Duration::from_secs(60);

/// The unpushed changes of a checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffToRemote {
    /// The newest pushed commit.
    pub sha: String,
    /// The changes since then, untracked files included.
    pub diff: String,
}

/// The commit, branch and origin of the repository around a folder, as stored in rollouts; `None` outside of one.
///
/// The address has no user name and password.
#[must_use]
pub fn git_info(cwd: &Path) -> Option<GitInfo> {
    let repository = Repository::find(cwd)?;
    let head = refs::head(&repository);
    let settings = repository.settings();
    let url = settings.get("remote", "origin", "url").map(without_credentials);
    Some(GitInfo { commit_hash: head.commit, branch: head.branch, repository_url: url, root_commits: Vec::new() })
}

/// The newest pushed commit of the checked-out branch, and all changes since, including untracked files.
pub fn git_diff_to_remote(cwd: &Path, runner: &Runner) -> Result<DiffToRemote, GitError> {
    changes::diff_to_remote(cwd, runner, DEADLINE)
}

/// Applies a diff to the files of a folder, all of it or nothing. Its paths are relative to the folder.
///
/// Attributes of the checkout that name a filter or another program have no effect.
pub fn apply(folder: &Path, diff: &str, runner: &Runner) -> Result<Applied, GitError> {
    apply::apply(folder, diff, runner, APPLY_DEADLINE)
}

/// Whether the repository of a checkout has a commit.
pub fn has_commit(checkout: &Checkout, commit: &str, runner: &Runner) -> Result<bool, GitError> {
    checkout.has_commit(commit, runner, DEADLINE)
}

/// The commits without a parent that a commit of a checkout descends from; none in a shallow clone.
///
/// # Errors
/// When git fails, or the history is too long to be walked in a second.
pub fn root_commits(checkout: &Checkout, commit: &str, runner: &Runner) -> Result<Vec<String>, GitError> {
    checkout.root_commits(commit, runner, WALK_DEADLINE)
}

/// Removes the user part of a web address, because it may contain a token.
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
