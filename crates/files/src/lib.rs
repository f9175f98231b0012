//! The only way to open and read a file that others can write.
//!
//! Anyone who can write to a folder can put a pipe, a device or a sparse file of many gigabytes where a text is
//! expected. Opening or reading such a file in the ordinary way blocks forever or exhausts memory.
//!
//! Files that the user names on the command line may be pipes and devices as well: [`read_input`] reads one, and
//! [`OutputFile`] writes one.
//!
//! Invariants: apart from those, only regular files are opened. No open waits longer than a second for another process,
//! and no transfer longer than ten. A read uses no more memory than its caller allows. Nothing is locked. No async code.

mod checkout;
mod crash_point;
mod input_file;
mod open;
mod output_file;
mod read;
mod stamp;
#[cfg(feature = "testing")]
pub mod testing;

pub use checkout::{GIT_FOLDER_MARKS, GitMarks, is_checkout, is_git_folder};
pub use crash_point::crash_point;
pub use input_file::read_input;
pub use open::{Links, check_whole, open, open_with};
pub use output_file::{OutputError, OutputFile, TimedWriter};
pub use read::{read, read_open, read_start, read_text};
pub use stamp::Stamp;

use std::io;

/// The reason why a file could not be read. The caller knows the path and adds it.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is a pipe, a device or a socket.
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it is longer than {limit} bytes")]
    TooLong { limit: u64 },
    /// It is a long file with holes, which would be read as zeros.
    #[error("it is a sparse file")]
    Sparse,
    /// Another process holds a lease on it and has not released it in time. Retrying later may help.
    #[error("another process holds a lease on it")]
    Leased,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl FileError {
    /// The closest system error kind.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::NotRegular | Self::Sparse => io::ErrorKind::InvalidInput,
            Self::TooLong { .. } => io::ErrorKind::FileTooLarge,
            Self::Leased => io::ErrorKind::ResourceBusy,
            Self::Io(error) => error.kind(),
        }
    }

    /// Whether the file does not exist.
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
