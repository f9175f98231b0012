//! The things that were there before commands could write, and are not harmless by themselves: settings and hooks of the
//! user.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Things that an inspection leaves alone, by path and fingerprint.
#[derive(Debug, Clone, Default)]
pub(crate) struct Accepted(HashSet<(PathBuf, u64)>);

/// Things of commands that could not be disarmed: they are never accepted.
static REFUSED: Mutex<Vec<(PathBuf, u64)>> = Mutex::new(Vec::new());
/// The maximum number of things that are remembered.
const MAX_REFUSED: usize = 1000;

impl Accepted {
    pub(super) fn insert(&mut self, path: &Path, fingerprint: u64) {
        let thing = (path.to_owned(), fingerprint);
        if !REFUSED.lock().unwrap_or_else(PoisonError::into_inner).contains(&thing) {
            self.0.insert(thing);
        }
    }

    pub(super) fn contains(&self, path: &Path, fingerprint: u64) -> bool {
        // The set is usually empty.
        !self.0.is_empty() && self.0.contains(&(path.to_owned(), fingerprint))
    }

    pub(super) fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
    }

    /// Keeps what the other set has too, among the things that `counts` is about.
    pub(super) fn intersect(&mut self, other: &Self, counts: impl Fn(&Path) -> bool) {
        self.0.retain(|thing| !counts(&thing.0) || other.0.contains(thing));
    }
}

/// Notes that something could not be disarmed.
pub(super) fn refuse(path: &Path, fingerprint: u64) {
    let mut refused = REFUSED.lock().unwrap_or_else(PoisonError::into_inner);
    if refused.len() >= MAX_REFUSED {
        refused.remove(0);
    }
    refused.push((path.to_owned(), fingerprint));
}
