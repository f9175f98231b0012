//! All changes of a checkout since the newest pushed commit.

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    DiffToRemote, refs,
    repository::Repository,
    run::{Git, RunError, Runner},
    stage::Stage,
};

/// The maximum size of a diff.
pub(crate) const MAX_DIFF: usize = 32 * 1024 * 1024;
/// The maximum size of a list of names.
pub(crate) const MAX_LIST: usize = 8 * 1024 * 1024;
/// The maximum number of untracked files.
pub(crate) const MAX_UNTRACKED: usize = 5_000;

/// The reason why there is no diff.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The folder is in no repository, or in one that does not belong to it.
    #[error("{} is not in a git repository", .0.display())]
    NoRepository(PathBuf),
    #[error("{} has no commits", .0.display())]
    NoCommits(PathBuf),
    /// No known remote has any of the commits.
    #[error("no remote of {} has a commit of the branch that is checked out", .0.display())]
    NoRemote(PathBuf),
    #[error("{} has more than {most} untracked files", .root.display())]
    TooManyFiles { root: PathBuf, most: usize },
    #[error("could not read the git folder of {}", .root.display())]
    Read { root: PathBuf, source: io::Error },
    /// `git` is missing, failed, took too long or printed too much.
    #[error("could not ask git about {}", .root.display())]
    Git { root: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
}

pub(crate) fn diff_to_remote(cwd: &Path, runner: &Runner, within: Duration) -> Result<DiffToRemote, GitError> {
    let deadline = Instant::now() + within;
    let repository = Repository::find(cwd).ok_or_else(|| GitError::NoRepository(cwd.to_owned()))?;
    let root = || repository.root.clone();
    let head = refs::head(&repository).commit.ok_or_else(|| GitError::NoCommits(root()))?;
    let remotes = refs::of_remotes(&repository);
    if remotes.is_empty() {
        return Err(GitError::NoRemote(root()));
    }
    let read = |source| GitError::Read { root: root(), source };
    let failed = |source: RunError| GitError::Git { root: root(), source: source.into() };
    let stage = Stage::new(runner, Some(&repository)).map_err(read)?;
    let git = stage.git(&repository.root, deadline);
    let input = stage.input("commits", revisions(&head, &remotes).as_bytes()).map_err(read)?;
    let sha = newest_shared(&git, &head, &input).map_err(failed)?.ok_or_else(|| GitError::NoRemote(root()))?;
    let untracked = untracked(&git).map_err(failed)?;
    if untracked.len() > MAX_UNTRACKED {
        return Err(GitError::TooManyFiles { root: root(), most: MAX_UNTRACKED });
    }
    if !untracked.is_empty() {
        // Once added to our copy of the index, new files are part of the same diff as changed ones.
        let names = stage.input("untracked", &untracked.join(&0)).map_err(read)?;
        let add = ["add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul"];
        git.run(&add, Some(&names), MAX_LIST).map_err(failed)?;
    }
    let diff = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty", &sha, "--"];
    let diff = git.run(&diff, None, MAX_DIFF).map_err(failed)?;
    Ok(DiffToRemote { sha, diff: String::from_utf8_lossy(&diff).into_owned() })
}

/// The commits of the branch without those of the remotes, as input for `git rev-list`.
fn revisions(head: &str, remotes: &[String]) -> String {
    let mut text = format!("{head}\n");
    for commit in remotes {
        text.push('^');
        text.push_str(commit);
        text.push('\n');
    }
    text
}

/// The first ancestor, parent by parent, that a remote has: the boundary of the unpushed commits.
fn newest_shared(git: &Git<'_>, head: &str, revisions: &Path) -> Result<Option<String>, RunError> {
    // A removed remote whose commits are gone is no reason to fail.
    let list = ["rev-list", "--first-parent", "--boundary", "--topo-order", "--ignore-missing", "--stdin"];
    let list = git.run(&list, Some(revisions), MAX_LIST)?;
    let list = String::from_utf8_lossy(&list);
    let own = list.lines().any(|line| !line.starts_with('-'));
    if !own {
        return Ok(Some(head.to_owned()));
    }
    Ok(list.lines().filter_map(|line| line.strip_prefix('-')).next_back().map(str::to_owned))
}

/// Files that are neither tracked nor ignored. Nested repositories are not entered.
pub(crate) fn untracked(git: &Git<'_>) -> Result<Vec<Vec<u8>>, RunError> {
    let list = git.run(&["ls-files", "--others", "--exclude-standard", "-z"], None, MAX_LIST)?;
    let names = list.split(|byte| *byte == 0).filter(|name| !name.is_empty() && !name.ends_with(b"/"));
    Ok(names.map(<[u8]>::to_vec).collect())
}
