//! The files of threads that this process has open.
//!
//! While a file is open, its own lock keeps other writers away. Before it is closed the thread is claimed
//! ([`Claim`]), and whoever opens a file looks for a claim once it has the lock. So there is no moment in which two
//! processes can write a thread, whichever comes first.
//!
//! Invariant: at most [`MOST_OPEN`] of them are open, besides those that are written at this moment and those that cannot
//! be claimed, however many threads are loaded. The ones that were used last stay open; a file in the middle of a write is
//! never closed.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codex_files::Links;
use rustix::io::Errno;

use crate::claim::{Claim, Writer};

/// How many files of threads stay open.
const MOST_OPEN: usize = 128;
/// From so many open files on, what the first claim needs a descriptor for is made beforehand: when there are none left, it
/// is too late.
const OPEN_BEFORE_CLAIMS: usize = 16;

/// The open files, the one that was used last at the end.
static OPEN: Mutex<Vec<(u64, Arc<Mutex<Held>>)>> = Mutex::new(Vec::new());

/// A place among the open files, which may be empty.
#[derive(Debug)]
pub(crate) struct Slot {
    number: u64,
    held: Arc<Mutex<Held>>,
}

/// A thread's file, or else the claim to the thread. Who has it locked takes no other lock.
#[derive(Debug)]
struct Held {
    home: PathBuf,
    path: PathBuf,
    file: Option<Arc<File>>,
    claim: Option<Claim>,
    /// Held, not used: it keeps what claims are made with.
    _writer: Option<Arc<Writer>>,
    /// Whether nobody wants the file any more.
    is_over: bool,
}

impl Held {
    fn is_idle(&self) -> bool {
        self.file.as_ref().is_none_or(|file| Arc::strong_count(file) == 1)
    }
}

/// What became of a file that was to be closed.
enum Closing {
    Closed,
    /// Not now: somebody uses it, or claims the thread for a moment.
    Busy,
    /// Never: the thread cannot be claimed.
    Impossible,
}

impl Slot {
    /// A place for the file of a thread of a home. It is open, and locked or claimed.
    pub(crate) fn with(home: &Path, path: &Path, file: Arc<File>, claim: Option<Claim>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let are_many = open_files().len() >= OPEN_BEFORE_CLAIMS;
        let held = Held {
            home: home.to_owned(),
            path: path.to_owned(),
            file: Some(file),
            claim,
            _writer: are_many.then(|| Writer::of(home).ok()).flatten(),
            is_over: false,
        };
        let slot = Self { number, held: Arc::new(Mutex::new(held)) };
        slot.use_last();
        slot
    }

    /// The file, unless it was closed meanwhile. It stays open for as long as somebody holds it.
    pub(crate) fn get(&self) -> Option<Arc<File>> {
        let file = lock(&self.held).file.clone()?;
        self.use_last();
        Some(file)
    }

    /// Keeps a file that was opened anew.
    pub(crate) fn put(&self, file: Arc<File>) {
        lock(&self.held).file = Some(file);
        self.use_last();
    }

    /// Notes that this file is used now, and closes the one that has not been used for longest if there are too many.
    fn use_last(&self) {
        let mut open = open_files();
        match open.iter().rposition(|(number, _)| *number == self.number) {
            Some(place) => open[place..].rotate_left(1),
            None => open.push((self.number, Arc::clone(&self.held))),
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
        let mut held = lock(&self.held);
        // Somebody may be about to close it, and would claim the thread once more.
        held.is_over = true;
        let (file, claim) = (held.file.take(), held.claim.take());
        drop(held);
        drop(file);
        drop(claim);
        open_files().retain(|(number, _)| *number != self.number);
    }
}

/// Opens a file. When there are no descriptors left, those of idle threads make way.
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

/// Closes files that nobody uses, at most so many, those first that were not used for longest.
fn close_idle(most: usize) {
    let mut left = most;
    let idle: Vec<_> = open_files()
        .extract_if(.., |(_, held)| {
            let is_taken = left > 0 && held.try_lock().is_ok_and(|held| held.is_idle());
            left -= usize::from(is_taken);
            is_taken
        })
        .collect();
    // A claim takes longer than all the rest, and nobody else should wait for that.
    for (number, held) in idle {
        if let Closing::Busy = close(&held) {
            let mut open = open_files();
            let is_over = held.try_lock().is_ok_and(|held| held.is_over);
            if !is_over && !open.iter().any(|(other, _)| *other == number) {
                open.push((number, held));
            }
        }
    }
}

/// Claims a thread and closes its file.
fn close(held: &Mutex<Held>) -> Closing {
    // Whoever has it uses the file.
    let Ok(mut held) = held.try_lock() else { return Closing::Busy };
    if held.is_over {
        return Closing::Closed;
    }
    if !held.is_idle() {
        return Closing::Busy;
    }
    if held.claim.is_none() {
        match Claim::take(&held.home, &held.path) {
            Ok(Some(claim)) => held.claim = Some(claim),
            Ok(None) => return Closing::Impossible,
            Err(_) => return Closing::Busy,
        }
    }
    let file = held.file.take();
    drop(held);
    drop(file);
    Closing::Closed
}

fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    // No change can be left half done.
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open_files() -> MutexGuard<'static, Vec<(u64, Arc<Mutex<Held>>)>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}
