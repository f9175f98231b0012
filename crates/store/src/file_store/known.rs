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
    /// Whether the thread was created here and has no preview in the index yet.
    is_unannounced: bool,
    /// The length of the file when it was read for the index.
    read_length: u64,
}

impl Known {
    fn at(path: &Path, is_unannounced: bool) -> Self {
        Self { path: path.to_owned(), is_unannounced, read_length: 0 }
    }
}

impl KnownPlaces {
    pub(super) fn path(&self, thread: ThreadId) -> Option<PathBuf> {
        self.lock().get(&thread).map(|known| known.path.clone())
    }

    /// Records the path of a thread that was created here.
    pub(super) fn began(&self, thread: ThreadId, path: &Path) {
        self.put(thread, Known::at(path, true));
    }

    /// Records the path of a thread, unless another of its files is in use.
    pub(super) fn found(&self, thread: ThreadId, path: &Path) {
        if self.path(thread).is_none_or(|known| known != path && known.symlink_metadata().is_err()) {
            self.named(thread, path);
        }
    }

    /// Records a path of a thread that a client has given.
    pub(super) fn named(&self, thread: ThreadId, path: &Path) {
        self.put(thread, Known::at(path, false));
    }

    /// The file of a thread that has to be added to the index, if it has grown since the last call: threads that only
    /// wait for their first turn cost a list nothing but a look at their length.
    pub(super) fn unannounced(&self, thread: ThreadId) -> Option<PathBuf> {
        let mut places = self.lock();
        let known = places.get_mut(&thread).filter(|known| known.is_unannounced)?;
        let length = known.path.symlink_metadata().map_or(0, |file| file.len());
        let has_grown = length != std::mem::replace(&mut known.read_length, length);
        has_grown.then(|| known.path.clone())
    }

    /// All threads that have to be added to the index.
    pub(super) fn all_unannounced(&self) -> Vec<ThreadId> {
        self.lock().iter().filter(|(_, known)| known.is_unannounced).map(|(thread, _)| *thread).collect()
    }

    /// Records that a thread is in the index.
    pub(super) fn announced(&self, thread: ThreadId) {
        if let Some(known) = self.lock().get_mut(&thread) {
            known.is_unannounced = false;
        }
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
