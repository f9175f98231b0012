//! Endless files, for tests of code that reads files.

use std::fs::File;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};

/// The maximum wait for something that should not block at all.
const PATIENCE: Duration = Duration::from_secs(30);

/// An endless file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endless {
    /// A pipe that nobody writes to.
    Pipe,
    /// A link to a device that returns zeros.
    Device,
    /// A terabyte of zeros that takes no space on disk.
    Sparse,
}

impl Endless {
    pub const ALL: [Self; 3] = [Self::Pipe, Self::Device, Self::Sparse];

    /// Creates the file.
    pub fn make(self, path: &Path) -> io::Result<()> {
        match self {
            Self::Pipe => Ok(mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?),
            Self::Device => symlink("/dev/zero", path),
            Self::Sparse => File::create(path)?.set_len(1 << 40),
        }
    }

    /// The error for a reader with this limit; `None` for a streaming reader.
    #[must_use]
    pub fn complaint(self, limit: Option<u64>) -> String {
        match (self, limit) {
            (Self::Pipe | Self::Device, _) => "it is not a regular file".to_owned(),
            (Self::Sparse, Some(limit)) => format!("it is longer than {limit} bytes"),
            (Self::Sparse, None) => "it is a sparse file".to_owned(),
        }
    }
}

/// Runs `work` on a separate thread. Returns `None` if it does not finish, so that a test fails instead of hanging.
pub fn soon<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(PATIENCE).ok()
}
