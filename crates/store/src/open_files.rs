//! The files of threads that this process has open.
//!
//! Invariant: at most [`MOST_OPEN`] of them are, besides those that are written at this moment, however many threads are
//! loaded. The ones that were used last stay open; a file in the middle of a write is never closed.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codex_files::Links;
use rustix::io::Errno;

/// How many files of threads stay open.
const MOST_OPEN: usize = 128;

/// The open files, the one that was used last at the end.
static OPEN: Mutex<Vec<(u64, Arc<File>)>> = Mutex::new(Vec::new());

/// A place among the open files, which may be empty.
#[derive(Debug)]
pub(crate) struct Slot(u64);

impl Slot {
    /// A place for a file that is open.
    pub(crate) fn with(file: Arc<File>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let slot = Self(NEXT.fetch_add(1, Ordering::Relaxed));
        slot.put(file);
        slot
    }

    /// The file, unless it was closed meanwhile. It stays open for as long as somebody holds it.
    pub(crate) fn get(&self) -> Option<Arc<File>> {
        let mut open = open_files();
        let place = open.iter().rposition(|(slot, _)| *slot == self.0)?;
        open[place..].rotate_left(1);
        open.last().map(|(_, file)| Arc::clone(file))
    }

    /// Keeps a file that was opened anew, and closes the one that has not been used for longest.
    pub(crate) fn put(&self, file: Arc<File>) {
        let mut open = open_files();
        open.push((self.0, file));
        let surplus = open.len().saturating_sub(MOST_OPEN);
        let closed = take_idle(&mut open, surplus);
        // Closing may take a while on some file systems, and nobody should wait for that.
        drop(open);
        drop(closed);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        open_files().retain(|(slot, _)| *slot != self.0);
    }
}

/// Opens a file. When there are no descriptors left, those of idle threads make way.
pub(crate) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let mut open = || codex_files::open_with(options, Links::Followed, path).map_err(io::Error::from);
    let opened = open();
    match &opened {
        Err(error) if is_exhausted(error) => {
            let closed = take_idle(&mut open_files(), MOST_OPEN);
            drop(closed);
            open()
        }
        Ok(_) | Err(_) => opened,
    }
}

fn is_exhausted(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Takes out files that nobody uses, at most so many, those first that were not used for longest.
fn take_idle(open: &mut Vec<(u64, Arc<File>)>, most: usize) -> Vec<(u64, Arc<File>)> {
    let mut left = most;
    open.extract_if(.., |(_, file)| {
        let is_taken = left > 0 && Arc::strong_count(file) == 1;
        left -= usize::from(is_taken);
        is_taken
    })
    .collect()
}

fn open_files() -> MutexGuard<'static, Vec<(u64, Arc<File>)>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}
