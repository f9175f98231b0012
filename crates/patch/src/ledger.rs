//! The combined effect of several changes on each path.
//!
//! Invariant: before and after describe the original and the current state of a path, whatever happened in between. A
//! move is recorded only as the origin of the current file, and reported only while nothing else is at either end of
//! it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The original and the current state of one path.
#[derive(Debug, Clone)]
pub(crate) struct Entry<S> {
    pub(crate) before: Option<S>,
    pub(crate) after: Option<S>,
    /// The original path of the current file.
    origin: Option<PathBuf>,
    /// Whether anything was done to it.
    pub(crate) touched: bool,
}

/// All paths that were read or changed.
#[derive(Debug, Clone)]
pub(crate) struct Ledger<S> {
    entries: BTreeMap<PathBuf, Entry<S>>,
}

/// The net effect on a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Net<'a, S> {
    Add { path: &'a Path, after: &'a S },
    Delete { path: &'a Path, before: &'a S },
    Update { path: &'a Path, to: &'a Path, before: &'a S, after: &'a S },
}

impl<S> Default for Ledger<S> {
    fn default() -> Self {
        Self { entries: BTreeMap::new() }
    }
}

impl<S> Ledger<S> {
    pub(crate) fn get(&self, path: &Path) -> Option<&Entry<S>> {
        self.entries.get(path)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Path, &Entry<S>)> {
        self.entries.iter().map(|(path, entry)| (path.as_path(), entry))
    }

    /// Records the state of a path that was not known yet.
    pub(crate) fn look(&mut self, path: &Path, found: Option<S>) -> &mut Entry<S>
    where
        S: Clone,
    {
        self.entries.entry(path.to_owned()).or_insert_with(|| Entry {
            before: found.clone(),
            after: found,
            origin: None,
            touched: false,
        })
    }

    /// Records new content, or none, at a known path.
    pub(crate) fn set(&mut self, path: &Path, after: Option<S>) {
        if let Some(entry) = self.entries.get_mut(path) {
            if after.is_none() {
                entry.origin = None;
            }
            entry.after = after;
            entry.touched = true;
        }
    }

    /// Records that the file at one known path moved to another, with new content.
    pub(crate) fn shift(&mut self, from: &Path, to: &Path, after: S) {
        let origin = self.entries.get_mut(from).and_then(|entry| {
            entry.touched = true;
            entry.after = None;
            entry.origin.take()
        });
        if let Some(entry) = self.entries.get_mut(to) {
            entry.after = Some(after);
            entry.touched = true;
            entry.origin = Some(origin.unwrap_or_else(|| from.to_owned()));
        }
    }

    /// Whether the original file of a path is now at another one.
    pub(crate) fn is_elsewhere(&self, path: &Path) -> bool {
        self.entries.values().any(|entry| entry.after.is_some() && entry.origin.as_deref() == Some(path))
    }

    /// The net effects, ordered by path.
    pub(crate) fn net(&self) -> Vec<Net<'_, S>> {
        let mut net = Vec::new();
        let mut moved: BTreeMap<&Path, (&Path, &S)> = BTreeMap::new();
        for (path, entry) in self.entries() {
            if let (None, Some(after), Some(origin)) = (&entry.before, &entry.after, &entry.origin) {
                let left = self.get(origin).is_some_and(|left| left.before.is_some() && left.after.is_none());
                if left && !moved.contains_key(origin.as_path()) {
                    moved.insert(origin, (path, after));
                }
            }
        }
        let targets: BTreeSet<&Path> = moved.values().map(|(to, _)| *to).collect();
        for (path, entry) in self.entries().filter(|(_, entry)| entry.touched) {
            match (&entry.before, &entry.after) {
                (None, None) => {}
                (None, Some(_)) if targets.contains(path) => {}
                (None, Some(after)) => net.push(Net::Add { path, after }),
                (Some(before), Some(after)) => net.push(Net::Update { path, to: path, before, after }),
                (Some(before), None) => net.push(match moved.get(path) {
                    Some((to, after)) => Net::Update { path, to, before, after },
                    None => Net::Delete { path, before },
                }),
            }
        }
        net
    }
}
