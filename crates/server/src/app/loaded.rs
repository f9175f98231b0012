//! The threads that are loaded.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use codex_engine::Thread;
use codex_wire::ids::ThreadId;
use tokio::time::timeout;

use super::connection::lock;

/// How long running turns may take to stop.
const LAST_TURNS: Duration = Duration::from_secs(10);

/// The threads that are loaded, by name.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    threads: Mutex<BTreeMap<ThreadId, Thread>>,
    /// Threads that somebody is about to load, so that nobody else does at the same time.
    opening: Mutex<HashMap<ThreadId, Arc<tokio::sync::Mutex<()>>>>,
}

impl Loaded {
    /// The thread of that name.
    pub(crate) fn get(&self, id: ThreadId) -> Option<Thread> {
        lock(&self.threads).get(&id).cloned()
    }

    /// Adds a thread.
    pub(crate) fn add(&self, thread: Thread) {
        lock(&self.threads).insert(thread.id(), thread);
    }

    /// Takes a thread out.
    pub(crate) fn remove(&self, id: ThreadId) -> Option<Thread> {
        lock(&self.threads).remove(&id)
    }

    /// The names of all, oldest first.
    pub(crate) fn names(&self) -> Vec<ThreadId> {
        lock(&self.threads).keys().copied().collect()
    }

    /// Waits until nobody else is loading that thread. Whoever loads it holds what this returns.
    pub(crate) async fn turn_to_open(&self, id: ThreadId) -> tokio::sync::OwnedMutexGuard<()> {
        let mutex = Arc::clone(lock(&self.opening).entry(id).or_default());
        let guard = mutex.lock_owned().await;
        lock(&self.opening).retain(|_, mutex| Arc::strong_count(mutex) > 1);
        guard
    }

    /// Ends all threads, each with everything written. One that does not end in time is left behind.
    pub(crate) async fn close(&self) {
        let threads = std::mem::take(&mut *lock(&self.threads));
        let closing = threads.into_values().map(|thread| async move { thread.close().await });
        let _: Result<_, _> = timeout(LAST_TURNS, futures_util::future::join_all(closing)).await;
    }
}
