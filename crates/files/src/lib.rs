//! The one way to open and read a file that others can write.
//!
//! Whoever can write to a folder can put a pipe, a device or a sparse file of many gigabytes where a text is expected. To
//! open or read such a file in the ordinary way blocks for ever or exhausts the memory.
//!
//! Invariants: only regular files are opened. No open waits for another process longer than a second. A read takes no more
//! memory than its caller allows. Nothing is locked. No async code.

mod checkout;
mod open;
mod read;
mod stamp;
#[cfg(feature = "testing")]
pub mod testing;

pub use checkout::is_checkout;
pub use open::{Links, check_whole, open, open_with};
pub use read::{read, read_open, read_start, read_text};
pub use stamp::Stamp;

use std::io;

/// Why a file could not be read. The caller knows the path and names it.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is a pipe, a device or a socket.
    #[error("it is not a regular file")]
    NotRegular,
    /// It is longer than the caller allows.
    #[error("it is longer than {limit} bytes")]
    TooLong {
        /// How many bytes the caller allows.
        limit: u64,
    },
    /// It is a long file with holes, which reading would fill with zeros.
    #[error("it is a sparse file")]
    Sparse,
    /// Another process holds a lease on it and has not given it up in time. Trying again later may help.
    #[error("another process holds a lease on it")]
    Leased,
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl FileError {
    /// What kind of error of the system it is closest to.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::NotRegular | Self::Sparse => io::ErrorKind::InvalidInput,
            Self::TooLong { .. } => io::ErrorKind::FileTooLarge,
            Self::Leased => io::ErrorKind::ResourceBusy,
            Self::Io(error) => error.kind(),
        }
    }

    /// Whether there is no such file.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind() == io::ErrorKind::NotFound
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io(error) => error,
            FileError::NotRegular | FileError::TooLong { .. } | FileError::Sparse | FileError::Leased => {
                Self::new(error.kind(), error)
            }
        }
    }
}

#[cfg(test)]
mod tests;
