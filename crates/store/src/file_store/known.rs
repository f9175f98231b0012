//! Caches the paths of threads.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use codex_wire::ids::ThreadId;

/// The maximum number of cached paths. The index knows them all.
const MOST: usize = 4096;

/// The cached paths of threads. Others may move the files in the meantime.
#[derive(Debug, Default)]
pub(super) struct KnownPlaces {
    places: Mutex<HashMap<ThreadId, Known>>,
}

#[derive(Debug)]
struct Known {
    path: PathBuf,
    /// Whether the thread was created here and is not in the index yet.
    is_unannounced: bool,
}

impl KnownPlaces {
    pub(super) fn path(&self, thread: ThreadId) -> Option<PathBuf> {
        self.lock().get(&thread).map(|known| known.path.clone())
    }

    /// Records the path of a thread that was created here.
    pub(super) fn began(&self, thread: ThreadId, path: &Path) {
        self.put(thread, Known { path: path.to_owned(), is_unannounced: true });
    }

    /// Records the path of a thread, unless another of its files is in use.
    pub(super) fn found(&self, thread: ThreadId, path: &Path) {
        if self.path(thread).is_none_or(|known| known != path && known.symlink_metadata().is_err()) {
            self.named(thread, path);
        }
    }

    /// Records a path of a thread that a client has given.
    pub(super) fn named(&self, thread: ThreadId, path: &Path) {
        self.put(thread, Known { path: path.to_owned(), is_unannounced: false });
    }

    /// Returns, once, the file of a thread that has to be added to the index.
    pub(super) fn take_unannounced(&self, thread: ThreadId) -> Option<PathBuf> {
        let mut places = self.lock();
        let known = places.get_mut(&thread).filter(|known| known.is_unannounced)?;
        known.is_unannounced = false;
        Some(known.path.clone())
    }

    pub(super) fn forget(&self, thread: ThreadId) {
        self.lock().remove(&thread);
    }

    fn put(&self, thread: ThreadId, known: Known) {
        let mut places = self.lock();
        if places.len() >= MOST {
            places.clear();
        }
        places.insert(thread, known);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, Known>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
