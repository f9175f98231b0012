//! Finding files by a few letters of their path: `fuzzyFileSearch` and its sessions.
//!
//! Invariants: nothing is written, no link is followed, `.git` is never entered, and what is kept in memory is bounded
//! whatever the size of the tree. No file is waited for, and every search ends soon after it is told to, or after a while
//! by itself. No async code.

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

use codex_protocol::v2::search::FuzzyFileSearchResult;

use crate::{ranking::Ranking, walk::Walk};

pub use session::{Report, Session};

/// How many results clients of every release expect at most.
pub const DEFAULT_LIMIT: NonZeroUsize = NonZeroUsize::new(50).unwrap();

/// How long a search may look around.
const SEARCH_TIME: Duration = Duration::from_secs(20);

/// Where to look and how much to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The folders to look in.
    pub roots: Vec<PathBuf>,
    /// How many results there are at most.
    pub limit: NonZeroUsize,
    /// Whether folders are results too, as in 0.166, or files alone, as in 0.77.
    pub folders: bool,
}

impl Scope {
    /// Files below some folders.
    #[must_use]
    pub fn files(roots: Vec<PathBuf>) -> Self {
        Self { roots, limit: DEFAULT_LIMIT, folders: false }
    }
}

/// Looks for a query below the roots and returns the best matches, the best first.
///
/// An empty query matches nothing. When the flag goes up or the time is over, what was found until then is returned.
#[must_use]
pub fn search(query: &str, scope: &Scope, cancelled: &AtomicBool) -> Vec<FuzzyFileSearchResult> {
    let Some(mut ranking) = Ranking::new(query, scope.limit) else { return Vec::new() };
    for entry in Walk::new(scope, SEARCH_TIME) {
        if cancelled.load(Ordering::Relaxed) {
            break;
        }
        ranking.consider(&entry);
    }
    ranking.results(scope)
}

#[cfg(test)]
mod tests;
