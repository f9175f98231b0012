//! The files of a checkout as a tree of git: what is committed, staged, changed and new.
//!
//! Everything is written into the stage. Objects that a repository has to keep are packed there and copied as one file.

use std::{
    fs::{self, File},
    io::{self, Read as _},
};

use super::{
    changes::{self, GitError, MAX_LIST, MAX_UNTRACKED},
    folder::{Folder, Missing},
    repository::Repository,
    run::{Git, RunError},
    stage::Stage,
};

/// The maximum length of an id and the line around it.
const MAX_ID: usize = 1024;
/// The largest pack that is copied into a repository.
const MAX_PACK: u64 = 4 * 1024 * 1024 * 1024;

/// Writes the tree of a checkout's files, and leaves it in the index of the stage. Ignored files and nested repositories
/// are not part of it.
pub(crate) fn tree(repository: &Repository, stage: &Stage<'_>, git: &Git<'_>) -> Result<String, GitError> {
    let failed = |source: RunError| GitError::Git { root: repository.root.clone(), source: source.into() };
    // Submodules are left as they are recorded: a look at their changes would use their own configuration.
    let changed = ["diff-files", "--name-only", "-z", "--ignore-submodules=all"];
    let changed = git.run(&changed, None, MAX_LIST).map_err(failed)?;
    let untracked = changes::untracked(git).map_err(failed)?;
    if untracked.len() > MAX_UNTRACKED {
        return Err(GitError::TooManyFiles { root: repository.root.clone(), most: MAX_UNTRACKED });
    }
    let mut names = changed;
    for name in untracked {
        names.extend(name);
        names.push(0);
    }
    if !names.is_empty() {
        let read = |source| GitError::Read { root: repository.root.clone(), source };
        let names = stage.input("names", &names).map_err(read)?;
        let update = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
        git.run(&update, Some(&names), MAX_LIST).map_err(failed)?;
    }
    id(git, &["write-tree"]).map_err(failed)
}

/// The id that a command prints.
pub(crate) fn id(git: &Git<'_>, arguments: &[&str]) -> Result<String, RunError> {
    let printed = git.run(arguments, None, MAX_ID)?;
    Ok(String::from_utf8_lossy(&printed).trim().to_owned())
}

/// The tree of a commit.
pub(crate) fn tree_of(git: &Git<'_>, commit: &str) -> Result<String, RunError> {
    id(git, &["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{commit}^{{tree}}")])
}

/// Writes a commit.
pub(crate) fn commit(git: &Git<'_>, tree: &str, parents: &[&str], message: &str) -> Result<String, RunError> {
    let mut arguments = vec!["commit-tree", tree, "-m", message];
    for parent in parents {
        arguments.extend(["-p", parent]);
    }
    id(git, &arguments)
}

/// Copies a commit of the stage into the repository, with everything that `known` commits do not have.
pub(crate) fn keep(
    repository: &Repository,
    stage: &Stage<'_>,
    git: &Git<'_>,
    commit: &str,
    known: &[&str],
) -> Result<(), GitError> {
    let read = |source| GitError::Read { root: repository.root.clone(), source };
    let known: String = known.iter().flat_map(|known| ["^", known, "\n"]).collect();
    let revisions = format!("{commit}\n{known}");
    let revisions = stage.input("revisions", revisions.as_bytes()).map_err(read)?;
    let prefix = stage.path("pack").display().to_string();
    let pack = ["pack-objects", "--revs", "--local", "--quiet", &prefix];
    let hash = git
        .run(&pack, Some(&revisions), MAX_ID)
        .map_err(|source| GitError::Git { root: repository.root.clone(), source: source.into() })?;
    let hash = String::from_utf8_lossy(&hash).trim().to_owned();
    copy_pack(repository, stage, &hash).map_err(read)
}

fn copy_pack(repository: &Repository, stage: &Stage<'_>, hash: &str) -> io::Result<()> {
    let packs = Folder::open(&repository.common)?.below("objects/pack", Missing::Created)?;
    // A reader looks for the index first, so it comes last.
    for kind in ["pack", "rev", "idx"] {
        let from = stage.path(&format!("pack-{hash}.{kind}"));
        let file = match File::open(&from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && kind == "rev" => continue,
            opened => opened?,
        };
        // The same objects have the same name.
        let name = format!("pack-{hash}.{kind}");
        if !packs.has(&name) {
            packs.copy_whole(&name, &mut file.take(MAX_PACK))?;
        }
        fs::remove_file(&from)?;
    }
    Ok(())
}
