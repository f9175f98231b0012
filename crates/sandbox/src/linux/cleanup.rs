//! Sandboxes that have ended and whose placeholders are still being removed.
//!
//! A command is over when its processes are gone; removing its mounts and placeholders takes about as long again as a
//! short command. The next command need not wait for that; only code that looks at the folders does.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use super::running::Running;
use crate::inspect::{Due, inspect_aside, inspect_now};
use crate::profile::Profile;
use codex_guard::findings::Findings;

/// The maximum wait for placeholders and inspections. They take a millisecond, unless the workspace is very large or
/// the machine hangs.
const PATIENCE: Duration = Duration::from_secs(60);

static PENDING: Mutex<Pending> = Mutex::new(Pending { next: 0, numbers: BTreeSet::new() });
static CLEANED: Notify = Notify::const_new();

struct Pending {
    next: u64,
    numbers: BTreeSet<u64>,
}

fn pending() -> MutexGuard<'static, Pending> {
    // Every critical section leaves the state consistent.
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

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

/// Lets a command that has ended clean up in the background, if anything is left of it.
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

/// The inspection of a command that is still running.
#[derive(Debug)]
pub(crate) struct Inspection(Option<Due>);

impl Inspection {
    pub(crate) fn of(running: &Running) -> Self {
        Self(running.inspection())
    }

    /// Starts the inspection in the background.
    pub(crate) fn inspect(&self) {
        if let Some(due) = &self.0 {
            inspect_aside(due.clone(), PendingCleanup::new());
        }
    }
}

/// The inspection of changes that this program makes by itself, such as those of a patch.
#[derive(Debug)]
pub struct OwnChanges {
    due: Option<Due>,
    findings: Findings,
}

impl OwnChanges {
    /// Records what is there before the changes.
    #[must_use]
    pub fn expected(profile: &Profile) -> Self {
        Self { due: Due::new(profile, &profile.layout()), findings: profile.findings().clone() }
    }

    /// Disarms what the changes would make other programs run. Blocks until that is done.
    pub fn inspect(self) {
        if let Some(due) = self.due {
            self.findings.add(&inspect_now(&due));
        }
    }
}

/// Waits until the commands that [`run`](crate::run) has returned from are cleaned up and their changes inspected.
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
    // Waiting any longer would not help.
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
