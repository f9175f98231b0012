//! Finds the repository around a folder from its files alone.

use std::{
    fs,
    path::{Path, PathBuf},
};

use codex_files::is_git_folder;

use super::{file::read, settings::Settings};

/// A checkout and its git folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repository {
    /// The folder of the checkout.
    pub(crate) root: PathBuf,
    /// The folder of this checkout's own files: `HEAD` and the index.
    pub(crate) own: PathBuf,
    /// The folder that all checkouts share: objects, refs and configuration.
    pub(crate) common: PathBuf,
}

impl Repository {
    /// The repository of the nearest folder that has one.
    ///
    /// A folder that merely looks like a bare repository does not count, and a `.git` file counts only if the folder
    /// that it names points back, so that a checkout cannot expose somebody else's repository.
    pub(crate) fn find(cwd: &Path) -> Option<Self> {
        let cwd = cwd.canonicalize().ok()?;
        cwd.ancestors().find_map(|root| Self::at(root, &root.join(".git")))
    }

    /// The repository with this git folder, apart from all checkouts.
    pub(crate) fn without_checkout(common: &Path) -> Option<Self> {
        let common = common.canonicalize().ok()?;
        is_git_folder(&common).then(|| Self { root: common.clone(), own: common.clone(), common })
    }

    fn at(root: &Path, dot_git: &Path) -> Option<Self> {
        let kind = fs::symlink_metadata(dot_git).ok()?;
        let root = root.to_owned();
        if kind.is_dir() {
            let own = dot_git.to_owned();
            return is_git_folder(&own).then(|| Self { root, common: own.clone(), own });
        }
        if !kind.is_file() {
            return None;
        }
        let text = read(dot_git)?;
        let own = root.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
        let common = match read(&own.join("commondir")) {
            Some(text) => own.join(text.trim()).canonicalize().ok()?,
            None => own.clone(),
        };
        let found = Self { root, own, common };
        (is_git_folder(&found.own) && is_git_folder(&found.common) && found.points_back(dot_git)).then_some(found)
    }

    /// Whether a git folder elsewhere names this checkout as its own: as a linked worktree or as a submodule.
    fn points_back(&self, dot_git: &Path) -> bool {
        let worktree = read(&self.own.join("gitdir")).map(|text| self.own.join(text.trim()));
        if let Some(worktree) = worktree {
            return self.own.starts_with(self.common.join("worktrees")) && is_same(&worktree, dot_git);
        }
        let settings = self.settings();
        settings.get("core", "", "worktree").is_some_and(|checkout| is_same(&self.own.join(checkout), &self.root))
    }

    /// The configuration of the repository, from its one file.
    pub(crate) fn settings(&self) -> Settings {
        Settings::parse(&read(&self.common.join("config")).unwrap_or_default())
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}
