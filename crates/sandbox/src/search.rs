//! Looks for repositories and protected names in the folders of a workspace, within a budget.
//!
//! Invariant: shallow folders come first, so that what the budget leaves out is what lies deepest.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::git;
use crate::layout::Builder;
use crate::names::{DOT_GIT, NOT_SEARCHED, PROJECT};

/// How many levels of folders below the root are searched.
pub(crate) const MAX_DEPTH: usize = 4;
/// How many directory entries are looked at.
const MAX_ENTRIES: usize = 10_000;
/// How many nested repositories stay usable; the git folders of the others are closed as a whole.
const MAX_REPOSITORIES: usize = 16;
/// When so much was found, the search ends.
const MAX_FOUND: usize = 300;

/// What was found in the folders of a workspace.
#[derive(Debug, Default)]
pub(crate) struct Nested {
    /// Checkouts of other repositories.
    repositories: Vec<PathBuf>,
    /// Settings of agents and editors.
    settings: Vec<PathBuf>,
    /// Roots that were too big to be searched wholly.
    unfinished: Vec<PathBuf>,
}

/// Closes what was found: nested repositories' own dangerous names, and settings.
pub(crate) fn protect(builder: &mut Builder, nested: &Nested) {
    for (index, repository) in nested.repositories.iter().enumerate() {
        if index < MAX_REPOSITORIES {
            git::protect_checkout(builder, repository, git::Outside::Left);
        } else {
            builder.close(&repository.join(DOT_GIT.path), None);
        }
    }
    for path in &nested.settings {
        builder.close(path, None);
    }
    for root in &nested.unfinished {
        builder.note(format!("{}: too big to be searched wholly for repositories and settings", root.display()));
    }
}

/// Looks below every root, shallow folders first.
pub(crate) fn search(roots: &[PathBuf]) -> Nested {
    let mut nested = Nested::default();
    for root in roots {
        search_root(root, &mut nested);
    }
    nested
}

fn search_root(root: &Path, nested: &mut Nested) {
    let mut queue = VecDeque::from([(root.to_owned(), 0)]);
    let mut seen = 0;
    while let Some((folder, depth)) = queue.pop_front() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MAX_ENTRIES || nested.repositories.len() + nested.settings.len() > MAX_FOUND {
                return nested.unfinished.push(root.to_owned());
            }
            let (Ok(kind), name) = (entry.file_type(), entry.file_name()) else { continue };
            if depth > 0 && name == DOT_GIT.path {
                nested.repositories.push(folder.clone());
            } else if depth > 0 && PROJECT.iter().any(|known| name == known.path) {
                nested.settings.push(entry.path());
            } else if kind.is_dir() && depth < MAX_DEPTH && is_searched(&name) {
                queue.push_back((entry.path(), depth + 1));
            }
        }
    }
}

/// Whether a folder is one that people keep projects in.
fn is_searched(name: &OsStr) -> bool {
    let known = PROJECT.iter().chain([&DOT_GIT]).map(|known| known.path);
    !known.chain(NOT_SEARCHED.iter().copied()).any(|known| name == known)
}
