//! Where threads lie that were asked for before.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use codex_wire::ids::ThreadId;

/// How many places are kept. The index knows them all.
const MOST: usize = 4096;

/// Where threads lie, for those that need not be asked for again. Others may move the files meanwhile.
#[derive(Debug, Default)]
pub(super) struct KnownPlaces {
    places: Mutex<HashMap<ThreadId, Known>>,
}

#[derive(Debug)]
struct Known {
    path: PathBuf,
    /// Whether the thread has begun here and the index was not told of it yet.
    is_unannounced: bool,
}

impl KnownPlaces {
    pub(super) fn path(&self, thread: ThreadId) -> Option<PathBuf> {
        self.lock().get(&thread).map(|known| known.path.clone())
    }

    /// Notes where a thread lies that has begun here.
    pub(super) fn began(&self, thread: ThreadId, path: &Path) {
        self.put(thread, Known { path: path.to_owned(), is_unannounced: true });
    }

    /// Notes where a thread was found, unless another of its files is in use.
    pub(super) fn found(&self, thread: ThreadId, path: &Path) {
        if self.path(thread).is_none_or(|known| known != path && known.symlink_metadata().is_err()) {
            self.named(thread, path);
        }
    }

    /// Notes which file of a thread somebody has named.
    pub(super) fn named(&self, thread: ThreadId, path: &Path) {
        self.put(thread, Known { path: path.to_owned(), is_unannounced: false });
    }

    /// The file of a thread that the index has to be told of, once.
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
