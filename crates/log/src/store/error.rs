//! The errors of a store.

use std::error::Error;
use std::fmt;

/// An error of a store: its kind, which callers distinguish, and the store's own error.
///
/// Its text and causes are those of the store's own error.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    error: Box<dyn Error + Send + Sync>,
}

/// The kinds of errors that callers distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// Another process writes the thread.
    Locked,
    /// The thread was moved while it was opened.
    Moved,
    /// There is no such thread.
    Missing,
    /// The stored data cannot be read.
    Unreadable,
    /// Something cannot be written.
    Unwritable,
    /// A line cannot be encoded. Another attempt would not help.
    Unencodable,
    /// The request is invalid; the caller has to correct it.
    Refused,
    /// Metadata of threads cannot be read or written.
    Metadata,
    /// The store itself does not work.
    Failed,
}

impl StoreError {
    /// An error of a store with its kind.
    #[must_use]
    pub fn new(kind: StoreErrorKind, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind, error: error.into() }
    }

    /// The kinds of errors that callers distinguish.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}
