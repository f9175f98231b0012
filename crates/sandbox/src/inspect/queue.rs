//! Runs inspections in the background, one at a time for each workspace.
//!
//! Commands that end while an inspection runs share the next one, so many short commands in a large workspace need only
//! a few inspections.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;

use super::due::Due;
use super::workspace;
use crate::linux::PendingCleanup;
use codex_guard::findings::Findings;

/// A queued inspection and its waiters.
struct Request {
    due: Due,
    reports: Vec<Findings>,
    /// Dropped when the inspection is over.
    waiting: Vec<PendingCleanup>,
}

struct Queue {
    running: Vec<crate::profile::Profile>,
    waiting: Vec<Request>,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { running: Vec::new(), waiting: Vec::new() });

fn queue() -> MutexGuard<'static, Queue> {
    // Every critical section leaves the queue consistent.
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Schedules an inspection after a command. `pending` is dropped when it is done.
pub(crate) fn inspect_aside(due: Due, pending: PendingCleanup) {
    let mut queue = queue();
    let report = due.profile.findings().clone();
    if let Some(request) = queue.waiting.iter_mut().find(|request| request.due.has_same_cause(&due)) {
        request.due.join(due);
        request.waiting.push(pending);
        if !request.reports.iter().any(|known| known.is_same(&report)) {
            request.reports.push(report);
        }
        return;
    }
    let is_running = queue.running.contains(&due.profile);
    let request = Request { due, reports: vec![report], waiting: vec![pending] };
    if is_running {
        return queue.waiting.push(request);
    }
    queue.running.push(request.due.profile.clone());
    drop(queue);
    let run = move || serve(request);
    if let Ok(runtime) = Handle::try_current() {
        drop(runtime.spawn_blocking(run));
    } else {
        let _ = std::thread::Builder::new().name("codex-inspect".to_owned()).spawn(run);
    }
}

/// Runs inspections until none is left for the workspace.
fn serve(first: Request) {
    let mut next = Some(first);
    while let Some(Request { due, reports, waiting }) = next.take() {
        let report = workspace::inspect(&due);
        for findings in reports {
            findings.add(&report);
        }
        let mut queue = queue();
        match queue.waiting.iter().position(|request| request.due.has_same_cause(&due)) {
            Some(at) => next = Some(queue.waiting.swap_remove(at)),
            None => queue.running.retain(|profile| *profile != due.profile),
        }
        drop(queue);
        drop(waiting);
    }
}
