//! The loaded threads.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use codex_thread::{LoadedThreads, OpenQuestions, OpeningTurn, Thread};
use codex_wire::ids::ThreadId;
use tokio::time::timeout;

use super::lock;

/// The time limit for a thread to report whether it is idle.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time limit for running turns to stop.
const LAST_TURNS: Duration = Duration::from_secs(10);

/// The loaded threads, by id.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    threads: Mutex<BTreeMap<ThreadId, Thread>>,
    /// Threads that are being loaded, so that no thread is loaded twice.
    prepared: Mutex<HashMap<ThreadId, Arc<tokio::sync::Mutex<()>>>>,
}

impl LoadedThreads for Loaded {
    fn get(&self, id: ThreadId) -> Option<Thread> {
        Self::get(self, id)
    }

    fn loaded(&self) -> Vec<Thread> {
        self.all()
    }
}

impl Loaded {
    /// The thread with this id. One that has ended by itself has to be loaded again.
    pub(crate) fn get(&self, id: ThreadId) -> Option<Thread> {
        self.entry(id).filter(|thread| !thread.has_ended())
    }

    /// The thread with this id, even if it has ended.
    fn entry(&self, id: ThreadId) -> Option<Thread> {
        lock(&self.threads).get(&id).cloned()
    }

    /// Adds a thread.
    pub(crate) fn add(&self, thread: Thread) {
        lock(&self.threads).insert(thread.id(), thread);
    }

    /// Removes a thread.
    pub(crate) fn remove(&self, id: ThreadId) -> Option<Thread> {
        lock(&self.threads).remove(&id)
    }

    /// All of them, oldest first.
    pub(super) fn all(&self) -> Vec<Thread> {
        lock(&self.threads).values().cloned().collect()
    }

    /// Waits until no other task is loading this thread. The caller holds the result while it loads the thread.
    pub(crate) async fn turn_to_open(&self, id: ThreadId) -> OpeningTurn {
        let mutex = Arc::clone(lock(&self.prepared).entry(id).or_default());
        let guard = mutex.lock_owned().await;
        lock(&self.prepared).retain(|_, mutex| Arc::strong_count(mutex) > 1);
        guard.into()
    }

    /// Whether a thread could be unloaded: it has no subscriber, and is idle or only asks a person.
    pub(super) async fn is_idle(&self, id: ThreadId, questions: OpenQuestions) -> bool {
        let Some(thread) = self.entry(id) else { return false };
        // A thread that has ended by itself is idle, and one that is too busy to answer is not.
        matches!(timeout(PATIENCE, thread.is_retirable(questions)).await, Ok(Ok(true) | Err(_)))
    }

    /// Unloads a thread unless it has become busy; returns whether it is unloaded.
    pub(super) async fn unload(&self, id: ThreadId, questions: OpenQuestions) -> bool {
        // A client that resumes it in the meantime waits, and then reads it from disk.
        let _turn = self.turn_to_open(id).await;
        let Some(thread) = self.entry(id) else { return false };
        let is_gone = thread.retire(questions).await != Ok(false);
        if is_gone {
            self.remove(id);
        }
        is_gone
    }

    /// Ends all threads after everything is written. A thread that does not end in time is abandoned.
    pub(super) async fn close(&self) {
        let threads = std::mem::take(&mut *lock(&self.threads));
        let closing = threads.into_values().map(|thread| async move { thread.close().await });
        let _: Result<_, _> = timeout(LAST_TURNS, futures_util::future::join_all(closing)).await;
    }
}
