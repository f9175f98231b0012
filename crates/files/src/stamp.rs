//! Whether a file has changed since it was read.

use std::path::Path;
use std::time::SystemTime;

/// What a file looked like when it was read: its last change, its length, and which file it is. A file that is put in
/// the place of another may have the age and the length of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp(Option<(SystemTime, u64, u64)>);

impl Stamp {
    /// How a file looks now.
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
