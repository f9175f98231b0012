//! Looks for repositories and protected names in the folders of a workspace, within a budget.
//!
//! Invariant: shallow folders come first, so that what the budget leaves out is what lies deepest.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use crate::git;
use crate::layout::Builder;
use crate::names::{DOT_GIT, NOT_SEARCHED, PROJECT};

/// How many levels of folders below the root are searched.
pub(crate) const MAX_DEPTH: usize = 4;
/// How many directory entries are looked at.
const MAX_ENTRIES: usize = 10_000;
/// How many nested repositories stay usable; the git folders of the others are closed as a whole.
const MAX_REPOSITORIES: usize = 16;
/// When there are so many places already, the search ends.
const MAX_PLACES: usize = 600;

/// Closes what exists below `root`: nested repositories' own dangerous names, and agents' settings.
pub(crate) fn protect_nested(builder: &mut Builder, root: &Path) {
    let mut queue = VecDeque::from([(root.to_owned(), 0)]);
    let (mut seen, mut repositories) = (0, 0);
    while let Some((folder, depth)) = queue.pop_front() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MAX_ENTRIES || builder.len() > MAX_PLACES {
                let root = root.display();
                return builder.note(format!("{root}: too big to search wholly for nested repositories and settings"));
            }
            let (Ok(kind), name) = (entry.file_type(), entry.file_name()) else { continue };
            let protected = PROJECT.iter().any(|known| name == known.path);
            if depth > 0 && protected {
                builder.close(&entry.path(), None);
            } else if depth > 0 && name == DOT_GIT.path {
                repositories += 1;
                if repositories <= MAX_REPOSITORIES {
                    git::protect_checkout(builder, &folder, git::Outside::Left);
                } else {
                    builder.close(&entry.path(), None);
                }
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
