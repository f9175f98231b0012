//! The writer of a thread that another process may write in the meantime.

use codex_log::store::{Commit, LogWriter, Payload, StoreError, StoreErrorKind};

/// Stands where the log ended, and refuses lines: they would be lost, or mixed with those of the other process.
#[derive(Debug)]
pub(crate) struct LentWriter {
    position: u64,
}

impl LentWriter {
    /// The writer of a log of this length.
    pub(crate) fn at(position: u64) -> Self {
        Self { position }
    }
}

impl LogWriter for LentWriter {
    fn append(&mut self, _: i64, _: &str, _: Payload<'_>) -> Result<(), StoreError> {
        Err(StoreError::new(StoreErrorKind::Locked, "the thread was given to another process".to_owned()))
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn commit(&mut self, _durably: bool) -> Commit {
        Commit::Done(Ok(()))
    }

    fn discard(self: Box<Self>) {}
}
