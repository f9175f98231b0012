//! Detects whether a file has changed since it was read.

use std::path::Path;
use std::time::SystemTime;

/// The state of a file when it was read: its last change, its length, and its identity, because a replacement may have
/// the same age and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp(Option<(SystemTime, u64, u64)>);

impl Stamp {
    /// The current state of a file.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let metadata = std::fs::metadata(path).ok();
        Self(metadata.and_then(|metadata| Some((metadata.modified().ok()?, metadata.len(), number(&metadata)))))
    }
}

#[cfg(unix)]
fn number(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn number(_: &std::fs::Metadata) -> u64 {
    0
}
