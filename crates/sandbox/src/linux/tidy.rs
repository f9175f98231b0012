//! Sandboxes that have ended and whose stand-ins are still being removed.
//!
//! A command is over when its processes are gone; to take down its mounts and stand-ins takes about as long again as a short
//! command. Whoever runs one command after the other need not wait for that, only who looks at the folders then.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use super::running::Running;
use crate::inspect::{Due, inspect_aside};

/// How long stand-ins and inspections are waited for. They are over in a millisecond, unless the workspace is very large or
/// the machine hangs.
const PATIENCE: Duration = Duration::from_secs(4);

static UNTIDY: Mutex<Untidy> = Mutex::new(Untidy { next: 0, numbers: BTreeSet::new() });
static TIDIED: Notify = Notify::const_new();

struct Untidy {
    next: u64,
    numbers: BTreeSet<u64>,
}

fn untidy() -> MutexGuard<'static, Untidy> {
    // No change can be left half done.
    UNTIDY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Mess(u64);

impl Mess {
    pub(crate) fn new() -> Self {
        let mut untidy = untidy();
        let number = untidy.next;
        untidy.next += 1;
        untidy.numbers.insert(number);
        Self(number)
    }
}

impl Drop for Mess {
    fn drop(&mut self) {
        untidy().numbers.remove(&self.0);
        TIDIED.notify_waiters();
    }
}

/// Lets a command that has ended be tidied up by itself, if anything is left of it.
pub(crate) fn tidy_aside(mut running: Running) {
    let inspection = running.take_inspection();
    if running.is_all() && inspection.is_none() {
        return;
    }
    let mess = Mess::new();
    tokio::spawn(async move {
        running.wait().await;
        match inspection {
            Some(due) => inspect_aside(due, mess),
            None => drop(mess),
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
            inspect_aside(due.clone(), Mess::new());
        }
    }
}

/// Waits until nothing is left in the folders by the commands that [`run`](crate::run) has come back from so far, and what
/// they have changed there was inspected.
pub async fn tidied() {
    let before = untidy().next;
    let all = async {
        loop {
            let changed = TIDIED.notified();
            if untidy().numbers.range(..before).next().is_none() {
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
        tidied().await;
        let (first, second) = (Mess::new(), Mess::new());
        let waiting = tokio::spawn(tidied());
        tokio::task::yield_now().await;
        let later = Mess::new();
        drop(second);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        waiting.await.unwrap();
        drop(later);
    }
}
