//! The thread files that this process has open.
//!
//! While a file is open, its own lock keeps other writers away. Before it is closed the thread is claimed ([`Claim`]),
//! and a process that opens a file checks for a claim once it has the lock. So there is no moment in which two
//! processes can write a thread, whichever comes first.
//!
//! Invariant: at most [`MOST_OPEN`] of them are open, besides those that are being written and those that cannot be
//! claimed, however many threads are loaded. The most recently used ones stay open; a file in the middle of a write is
//! never closed.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codex_files::Links;
use rustix::io::Errno;

use crate::claim::{Claim, Writer};

/// The maximum number of open thread files.
const MOST_OPEN: usize = 128;
/// The number of open files from which the descriptor for the first claim is opened in advance: when there are none
/// left, it is too late.
const OPEN_BEFORE_CLAIMS: usize = 16;

/// The open files, the most recently used one last.
static OPEN: Mutex<Vec<(u64, Arc<Mutex<SlotState>>)>> = Mutex::new(Vec::new());

/// A slot for an open file, which may be empty.
#[derive(Debug)]
pub(crate) struct Slot {
    number: u64,
    state: Arc<Mutex<SlotState>>,
}

/// A thread's file, or else the claim to the thread. The holder of its lock takes no other lock.
#[derive(Debug)]
struct SlotState {
    home: PathBuf,
    path: PathBuf,
    file: Option<Arc<File>>,
    claim: Option<Claim>,
    /// Keeps the claim file alive.
    _writer: Option<Arc<Writer>>,
    /// Whether the file is no longer needed.
    is_over: bool,
}

impl SlotState {
    fn is_idle(&self) -> bool {
        self.file.as_ref().is_none_or(|file| Arc::strong_count(file) == 1)
    }
}

/// The result of closing a file.
enum Closing {
    Closed,
    /// Not now: it is in use, or another process claims the thread for a moment.
    Busy,
    /// Never: the thread cannot be claimed.
    Impossible,
}

impl Slot {
    /// A slot for the file of a thread of a home. It is open, and locked or claimed.
    pub(crate) fn with(home: &Path, path: &Path, file: Arc<File>, claim: Option<Claim>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let are_many = open_files().len() >= OPEN_BEFORE_CLAIMS;
        let state = SlotState {
            home: home.to_owned(),
            path: path.to_owned(),
            file: Some(file),
            claim,
            _writer: are_many.then(|| Writer::of(home).ok()).flatten(),
            is_over: false,
        };
        let slot = Self { number, state: Arc::new(Mutex::new(state)) };
        slot.use_last();
        slot
    }

    /// The file, unless it was closed in the meantime. It stays open as long as the result is held.
    pub(crate) fn get(&self) -> Option<Arc<File>> {
        let file = lock(&self.state).file.clone()?;
        self.use_last();
        Some(file)
    }

    /// Keeps a reopened file.
    pub(crate) fn put(&self, file: Arc<File>) {
        lock(&self.state).file = Some(file);
        self.use_last();
    }

    /// Marks this file as most recently used, and closes the least recently used one if there are too many.
    fn use_last(&self) {
        let mut open = open_files();
        match open.iter().rposition(|(number, _)| *number == self.number) {
            Some(place) => open[place..].rotate_left(1),
            None => open.push((self.number, Arc::clone(&self.state))),
        }
        let surplus = open.len().saturating_sub(MOST_OPEN);
        drop(open);
        if surplus > 0 {
            close_idle(surplus);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        // Another thread may be about to close it, and would claim the thread again.
        state.is_over = true;
        let (file, claim) = (state.file.take(), state.claim.take());
        drop(state);
        drop(file);
        drop(claim);
        open_files().retain(|(number, _)| *number != self.number);
    }
}

/// Opens a file. If there are no descriptors left, files of idle threads are closed.
pub(crate) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let opened = open_if_possible(options, path);
    match &opened {
        Err(error) if is_exhausted(error) => {
            close_idle(MOST_OPEN);
            open_if_possible(options, path)
        }
        Ok(_) | Err(_) => opened,
    }
}

/// Opens a file, if there are descriptors left.
pub(crate) fn open_if_possible(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    codex_files::open_with(options, Links::Followed, path).map_err(io::Error::from)
}

fn is_exhausted(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Closes up to `most` unused files, the least recently used first.
fn close_idle(most: usize) {
    let mut left = most;
    let idle: Vec<_> = open_files()
        .extract_if(.., |(_, state)| {
            let is_taken = left > 0 && state.try_lock().is_ok_and(|state| state.is_idle());
            left -= usize::from(is_taken);
            is_taken
        })
        .collect();
    // A claim takes longer than everything else, and nobody else should wait for it.
    for (number, state) in idle {
        if let Closing::Busy = close(&state) {
            let mut open = open_files();
            let is_over = state.try_lock().is_ok_and(|state| state.is_over);
            if !is_over && !open.iter().any(|(other, _)| *other == number) {
                open.push((number, state));
            }
        }
    }
}

/// Claims a thread and closes its file.
fn close(state: &Mutex<SlotState>) -> Closing {
    // The lock is held by a user of the file.
    let Ok(mut state) = state.try_lock() else { return Closing::Busy };
    if state.is_over {
        return Closing::Closed;
    }
    if !state.is_idle() {
        return Closing::Busy;
    }
    if state.claim.is_none() {
        match Claim::take(&state.home, &state.path) {
            Ok(Some(claim)) => state.claim = Some(claim),
            Ok(None) => return Closing::Impossible,
            Err(_) => return Closing::Busy,
        }
    }
    let file = state.file.take();
    drop(state);
    drop(file);
    Closing::Closed
}

fn lock(state: &Mutex<SlotState>) -> MutexGuard<'_, SlotState> {
    // Every critical section leaves the state consistent.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open_files() -> MutexGuard<'static, Vec<(u64, Arc<Mutex<SlotState>>)>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}
