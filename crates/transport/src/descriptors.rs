//! Detects and reports a shortage of descriptors.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use tokio::sync::Notify;

/// The number of free descriptors that counts as a shortage, unless that is too large a share of all.
const RESERVE: u64 = 64;
/// The largest share of all descriptors that counts as a shortage: one in this many.
const LARGEST_PART: u64 = 4;

/// Notifies a receiver that can free descriptors about a shortage.
#[derive(Debug, Clone, Default)]
pub struct Shortage(Arc<Notify>);

impl Shortage {
    /// Waits for a shortage. A report while nobody waited counts, once.
    pub async fn reported(&self) {
        self.0.notified().await;
    }

    pub(crate) fn report(&self) {
        self.0.notify_one();
    }
}

/// Whether the system had no descriptor or no memory for another connection.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let short = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|error| short.contains(&error))
}

/// Whether hardly any descriptors are left, judging by the number of the newest one: the lowest free number is always
/// used.
pub(crate) fn are_short(newest: &impl AsFd) -> bool {
    let number = u64::try_from(newest.as_fd().as_raw_fd()).unwrap_or_default();
    getrlimit(Resource::Nofile).current.is_some_and(|limit| is_in_reserve(number, limit))
}

fn is_in_reserve(number: u64, limit: u64) -> bool {
    number >= limit.saturating_sub(RESERVE.min(limit / LARGEST_PART))
}

/// A spare descriptor that is given up to tell a client that there are no more.
#[derive(Debug)]
pub(crate) struct Spare(Option<File>);

impl Spare {
    pub(crate) fn new() -> Self {
        let mut spare = Self(None);
        spare.restore();
        spare
    }

    /// Closes the descriptor.
    pub(crate) fn release(&mut self) {
        self.0 = None;
    }

    /// Takes a descriptor again, if there is one.
    pub(crate) fn restore(&mut self) {
        if self.0.is_none() {
            self.0 = File::open("/dev/null").ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_descriptors_are_a_reserve() {
        let first = |limit| (0..limit).find(|number| is_in_reserve(*number, limit));
        assert_eq!([first(200), first(1024), first(1 << 20)], [Some(150), Some(960), Some((1 << 20) - 64)]);
    }
}
