//! Runs inspections in the background, one at a time for each workspace.
//!
//! Commands that end while an inspection runs share the next one, so many short commands in a large workspace need only
//! a few inspections.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::due::Due;
use super::inspector::{self, LiveInspection};
use crate::linux::PendingCleanup;
use codex_guard::findings::{Findings, Report};

/// The pause between two inspections of a command that goes on, and how many times their own duration it is at least.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
const PAUSE_PER_TIME: u32 = 20;

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

/// Inspects without waiting for others.
pub(crate) fn inspect_now(due: &Due) -> Report {
    inspector::inspect(due)
}

/// Inspects what a command leaves while it goes on. Dropping it ends that.
#[derive(Debug)]
pub(crate) struct Ticker(JoinHandle<()>);

impl Ticker {
    pub(crate) fn start(due: &Due) -> Self {
        let due = due.clone();
        Self(tokio::spawn(async move {
            let mut watch = Some(LiveInspection::new(due));
            let mut pause = LEAST_PAUSE;
            while let Some(mut watched) = watch.take() {
                tokio::time::sleep(pause).await;
                let inspecting = tokio::task::spawn_blocking(move || {
                    let since = Instant::now();
                    watched.inspect();
                    (watched, since.elapsed())
                });
                if let Ok((watched, took)) = inspecting.await {
                    pause = LEAST_PAUSE.max(took * PAUSE_PER_TIME);
                    watch = Some(watched);
                }
            }
        }))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs inspections until none is left for the workspace.
fn serve(first: Request) {
    let mut next = Some(first);
    while let Some(Request { due, reports, waiting }) = next.take() {
        let report = inspector::inspect(&due);
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
