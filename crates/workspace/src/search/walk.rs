//! Walks the files below some folders, without those that the project ignores.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
    vec,
};

use ignore::{DirEntry, WalkBuilder};

use super::{Scope, ignored::Ignored};

/// A file or folder below one of the roots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The index of the root.
    pub(crate) root: usize,
    /// The path below the root, with `/` as separator.
    pub(crate) path: Arc<str>,
    pub(crate) folder: bool,
}

/// A walk through all roots, one after the other.
pub(crate) struct Walk {
    roots: vec::IntoIter<(usize, Arc<Path>)>,
    current: Option<(usize, Arc<Path>, ignore::Walk)>,
    folders: bool,
    /// The time limit, and the deadline once the walk has begun.
    limit: Duration,
    deadline: Option<Instant>,
}

impl Walk {
    /// A walk that ends after `limit`, wherever it is. The time starts with the first entry.
    pub(crate) fn new(scope: &Scope, limit: Duration) -> Self {
        let roots: Vec<_> = scope.roots.iter().map(|root| Arc::from(root.as_path())).enumerate().collect();
        Self { roots: roots.into_iter(), current: None, folders: scope.folders, limit, deadline: None }
    }

    fn is_over(&mut self) -> bool {
        Instant::now() >= *self.deadline.get_or_insert_with(|| Instant::now() + self.limit)
    }

    fn entry(&self, number: usize, root: &Path, found: &DirEntry) -> Option<Entry> {
        let folder = found.file_type().is_some_and(|kind| kind.is_dir());
        if folder && !self.folders {
            return None;
        }
        let below = found.path().strip_prefix(root).ok()?;
        let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
        (!parts.is_empty()).then(|| Entry { root: number, path: parts.join("/").into(), folder })
    }
}

impl Iterator for Walk {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            if self.is_over() {
                return None;
            }
            if self.current.is_none() {
                let (number, root) = self.roots.next()?;
                let walk = walk(&root);
                self.current = Some((number, root, walk));
            }
            let Some((number, root, walk)) = &mut self.current else { continue };
            match walk.next() {
                // Unreadable folders are skipped; the rest is still worth finding.
                Some(Err(_)) => {}
                Some(Ok(found)) => {
                    let (number, root) = (*number, root.clone());
                    if let Some(entry) = self.entry(number, &root, &found) {
                        return Some(entry);
                    }
                }
                None => self.current = None,
            }
        }
    }
}

/// Walks one root as `ripgrep --hidden` would. Rules of folders above the root apply only within a repository, so that
/// a stray file in the user's home does not hide everything.
fn walk(root: &Path) -> ignore::Walk {
    let ignored = Ignored::new(root, in_repository(root));
    WalkBuilder::new(root)
        .standard_filters(false)
        .follow_links(false)
        .filter_entry(move |entry| entry.file_name() != ".git" && !ignored.is_ignored(entry))
        .build()
}

fn in_repository(root: &Path) -> bool {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    root.ancestors().any(codex_files::is_checkout)
}
