//! Sandboxes that have ended and whose placeholders are still being removed.
//!
//! A command is over when its processes are gone; to take down its mounts and placeholders takes about as long again as a short
//! command. Whoever runs one command after the other need not wait for that, only who looks at the folders then.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use super::running::Running;
use crate::inspect::{Due, inspect_aside};

/// How long placeholders and inspections are waited for. They are over in a millisecond, unless the workspace is very large or
/// the machine hangs.
const PATIENCE: Duration = Duration::from_secs(4);

static PENDING: Mutex<Pending> = Mutex::new(Pending { next: 0, numbers: BTreeSet::new() });
static CLEANED: Notify = Notify::const_new();

struct Pending {
    next: u64,
    numbers: BTreeSet<u64>,
}

fn pending() -> MutexGuard<'static, Pending> {
    // No change can be left half done.
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of them.
#[derive(Debug)]
pub(crate) struct PendingCleanup(u64);

impl PendingCleanup {
    pub(crate) fn new() -> Self {
        let mut pending = pending();
        let number = pending.next;
        pending.next += 1;
        pending.numbers.insert(number);
        Self(number)
    }
}

impl Drop for PendingCleanup {
    fn drop(&mut self) {
        pending().numbers.remove(&self.0);
        CLEANED.notify_waiters();
    }
}

/// Lets a command that has ended clean up after itself, if anything is left of it.
pub(crate) fn clean_up_aside(mut running: Running) {
    let inspection = running.take_inspection();
    if running.is_all() && inspection.is_none() {
        return;
    }
    let pending = PendingCleanup::new();
    tokio::spawn(async move {
        running.wait().await;
        match inspection {
            Some(due) => inspect_aside(due, pending),
            None => drop(pending),
        }
    });
}

/// What can be inspected of a command while it still runs.
#[derive(Debug)]
pub(crate) struct Inspection(Option<Due>);

impl Inspection {
    pub(crate) fn of(running: &Running) -> Self {
        Self(running.inspection())
    }

    /// Has it inspected aside.
    pub(crate) fn inspect(&self) {
        if let Some(due) = &self.0 {
            inspect_aside(due.clone(), PendingCleanup::new());
        }
    }
}

/// Waits until nothing is left in the folders by the commands that [`run`](crate::run) has come back from so far, and what
/// they have changed there was inspected.
pub async fn cleanup_done() {
    let before = pending().next;
    let all = async {
        loop {
            let changed = CLEANED.notified();
            if pending().numbers.range(..before).next().is_none() {
                return;
            }
            changed.await;
        }
    };
    // Whoever waits longer is not helped by it.
    let _ = timeout(PATIENCE, all).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_what_was_untidy_before_is_waited_for() {
        cleanup_done().await;
        let (first, second) = (PendingCleanup::new(), PendingCleanup::new());
        let waiting = tokio::spawn(cleanup_done());
        tokio::task::yield_now().await;
        let later = PendingCleanup::new();
        drop(second);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        waiting.await.unwrap();
        drop(later);
    }
}
