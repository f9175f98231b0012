//! `git` as this program runs it for itself, outside of every sandbox.
//!
//! Invariant: neither the program nor its working folder is in a place that sandboxed commands can write.

use std::path::{Path, PathBuf};

use codex_config::{Env, Home, HomeError, Programs, TemporaryFolder};
use codex_wire::policy::SandboxPolicy;
use codex_workspace::git::Runner;
pub use codex_workspace::git::{Applied, Checkout, DiffToRemote, GitError};

use codex_config::project_doc::repository_root;

/// The reason why `git` cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum GitUnavailable {
    /// There is no trusted program.
    #[error("no git on PATH outside of workspaces and temporary folders")]
    NotFound,
    /// There is no folder for it to work in.
    #[error("git has no folder to work in")]
    Folder(#[from] HomeError),
}

/// `git`, ready to run. Its temporary files are removed when this is dropped.
#[derive(Debug)]
pub struct TrustedGit {
    runner: Runner,
    folder: TemporaryFolder,
}

impl TrustedGit {
    /// Finds the program, which must not be in a place that commands can write.
    pub fn find(home: &Home, env: &Env, writable: &[PathBuf]) -> Result<Self, GitUnavailable> {
        let programs = Programs::new(env, writable);
        let program = programs.find("git").ok_or(GitUnavailable::NotFound)?;
        let folder = home.temporary_folder()?;
        let runner = Runner {
            program,
            path: programs.path(),
            folder: folder.path().to_owned(),
            excludes: settings_folder(env).map(|folder| folder.join("git/ignore")),
        };
        Ok(Self { runner, folder })
    }

    pub(crate) fn runner(&self) -> &Runner {
        &self.runner
    }

    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The unpushed changes of a checkout.
    pub fn diff_to_remote(&self, cwd: &Path) -> Result<DiffToRemote, GitError> {
        codex_workspace::git::git_diff_to_remote(cwd, &self.runner)
    }

    /// Whether the repository of a checkout has a commit, as far as git can tell.
    #[must_use]
    pub fn has_commit(&self, checkout: &Checkout, commit: &str) -> bool {
        codex_workspace::git::has_commit(checkout, commit, &self.runner).unwrap_or(false)
    }

    /// The commits without a parent that a commit of a checkout descends from, as far as git can tell within a second.
    #[must_use]
    pub fn root_commits(&self, checkout: &Checkout, commit: &str) -> Vec<String> {
        codex_workspace::git::root_commits(checkout, commit, &self.runner).unwrap_or_default()
    }

    /// Applies a diff to the files of a folder.
    pub fn apply(&self, folder: &Path, diff: &str) -> Result<Applied, GitError> {
        codex_workspace::git::apply(folder, diff, &self.runner)
    }
}

/// The folder of the user's settings. A relative one would be inside the checkout.
fn settings_folder(env: &Env) -> Option<PathBuf> {
    let own = env.get("XDG_CONFIG_HOME").map(PathBuf::from);
    let usual = || env.get("HOME").map(|home| PathBuf::from(home).join(".config"));
    own.or_else(usual).filter(|folder| folder.is_absolute())
}

/// The writable folders of commands in `cwd`, except temporary ones; with the whole project, whose other parts are
/// workspaces at other times.
#[must_use]
pub fn writable_folders(cwd: &Path, policy: Option<&SandboxPolicy>) -> Vec<PathBuf> {
    let mut folders = vec![cwd.to_owned()];
    folders.extend(repository_root(cwd));
    if let Some(SandboxPolicy::WorkspaceWrite(limits)) = policy {
        folders.extend(limits.writable_roots.iter().map(|root| cwd.join(root)));
    }
    folders
}
