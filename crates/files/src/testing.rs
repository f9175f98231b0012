//! Endless files, and crashes at any point, for tests of code that reads and writes files.

use std::fs::File;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};

/// The maximum wait for something that should not block at all.
const PATIENCE: Duration = Duration::from_secs(30);

/// Makes an empty git folder, which git and this program recognise as one.
pub fn make_git_folder(path: &Path) -> io::Result<()> {
    for name in ["objects", "refs"] {
        std::fs::create_dir_all(path.join(name))?;
    }
    std::fs::write(path.join("HEAD"), "ref: refs/heads/main\n")
}

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

thread_local! {
    /// The number of steps that this thread may still do before it crashes.
    static STEPS_LEFT: std::cell::Cell<Option<usize>> = const { std::cell::Cell::new(None) };
}

/// The end of a program that was killed.
struct Crash;

/// Runs something that is killed at the crash point with this number, and returns its result if it ends before that.
/// Everything that goes with a process is released: locks of files, and child processes.
pub fn crash_at<T>(point: usize, work: impl FnOnce() -> T) -> Option<T> {
    STEPS_LEFT.set(Some(point));
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    STEPS_LEFT.set(None);
    match ended {
        Ok(result) => Some(result),
        Err(payload) if payload.is::<Crash>() => None,
        Err(payload) => std::panic::resume_unwind(payload),
    }
}

pub(crate) fn pass_crash_point() {
    match STEPS_LEFT.get() {
        None => {}
        Some(0) => std::panic::resume_unwind(Box::new(Crash)),
        Some(left) => STEPS_LEFT.set(Some(left - 1)),
    }
}
