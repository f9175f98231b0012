//! Exports threads for other homes.

mod bundle;
mod import;
mod new_ids;

use std::io;
use std::path::PathBuf;

pub use bundle::{BundleThread, BundleWriter, export_bundle};
pub use import::{BundleReader, ImportError};
pub use new_ids::NewIds;

use crate::rollout::ReadError;

/// The reason why a thread could not be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file name is not that of a thread.
    #[error("{path} is not the file of a thread", path = .path.display())]
    NotAThread { path: PathBuf },
    #[error("could not write the export")]
    Write(#[from] io::Error),
}
