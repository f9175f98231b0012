//! Fuzzy file search: `fuzzyFileSearch` and its sessions.
//!
//! Invariants: nothing is written, no link is followed, `.git` is never entered, and memory is bounded whatever the
//! size of the tree. No file blocks the search, and every search ends soon after it is stopped, or at its time limit.
//! No async code.

mod global;
mod ignored;
mod ranking;
mod session;
mod walk;

use std::{
    num::NonZeroUsize,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use self::{ranking::Ranking, walk::Walk};

pub use session::{Report, Session};

/// The maximum number of results that clients of every release expect.
pub const DEFAULT_LIMIT: NonZeroUsize = NonZeroUsize::new(50).unwrap();

/// The time limit of a search.
const SEARCH_TIME: Duration = Duration::from_secs(20);

/// A file or folder that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The root it was found in, as given.
    pub root: PathBuf,
    /// Its path below the root.
    pub path: String,
    pub is_folder: bool,
    pub file_name: String,
    /// The quality of the match; higher is better.
    pub score: u32,
    /// The matching characters of the path, starting at 0.
    pub indices: Vec<u32>,
}

/// The scope of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    pub roots: Vec<PathBuf>,
    /// The maximum number of results.
    pub limit: NonZeroUsize,
    /// Whether folders are results too, as in 0.166, or only files, as in 0.77.
    pub folders: bool,
}

impl Scope {
    /// Files below some folders.
    #[must_use]
    pub fn files(roots: Vec<PathBuf>) -> Self {
        Self { roots, limit: DEFAULT_LIMIT, folders: false }
    }
}

/// Searches below the roots and returns the best matches, best first.
///
/// An empty query matches nothing. When the flag is set or the time is up, the results so far are returned.
#[must_use]
pub fn search(query: &str, scope: &Scope, cancelled: &AtomicBool) -> Vec<Match> {
    let Some(mut ranking) = Ranking::new(query, scope.limit) else { return Vec::new() };
    for entry in Walk::new(scope, SEARCH_TIME) {
        if cancelled.load(Ordering::Relaxed) {
            break;
        }
        ranking.consider(&entry);
    }
    ranking.results(&scope.roots)
}

#[cfg(test)]
mod tests;
