//! Files that never end, for the tests of whoever reads files.

use std::fs::File;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};

/// How long a test waits for something that should not wait at all.
const PATIENCE: Duration = Duration::from_secs(30);

/// A file that never ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endless {
    /// A pipe that nobody writes to.
    Pipe,
    /// A link to a device that gives zeros.
    Device,
    /// A terabyte of zeros that takes no place on the disk.
    Sparse,
}

impl Endless {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Pipe, Self::Device, Self::Sparse];

    /// Makes such a file.
    pub fn make(self, path: &Path) -> io::Result<()> {
        match self {
            Self::Pipe => Ok(mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?),
            Self::Device => symlink("/dev/zero", path),
            Self::Sparse => File::create(path)?.set_len(1 << 40),
        }
    }

    /// What is wrong with it, for a reader who allows so many bytes; none for one who reads it as a stream.
    #[must_use]
    pub fn complaint(self, limit: Option<u64>) -> String {
        match (self, limit) {
            (Self::Pipe | Self::Device, _) => "it is not a regular file".to_owned(),
            (Self::Sparse, Some(limit)) => format!("it is longer than {limit} bytes"),
            (Self::Sparse, None) => "it is a sparse file".to_owned(),
        }
    }
}

/// Does something on a thread of its own. None if it does not end, so that a test fails instead of waiting for ever.
pub fn soon<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(PATIENCE).ok()
}
