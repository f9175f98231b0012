//! Threads for people and for other homes.

mod bundle;
mod import;
mod markdown;

use std::io;
use std::path::PathBuf;

pub use bundle::export_bundle;
pub use import::ImportError;
pub use markdown::{MarkdownReader, export_markdown};

use crate::rollout::ReadError;

/// Why a thread could not be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// It could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Its file is not named as that of a thread.
    #[error("{path} is not the file of a thread", path = .path.display())]
    NotAThread {
        /// Its file.
        path: PathBuf,
    },
    /// What was read could not be written.
    #[error("could not write what is exported")]
    Write(#[from] io::Error),
}
