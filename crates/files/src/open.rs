//! Opening files without blocking.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::FileError;

/// The maximum wait for another process's lease, and the polling interval. The kernel would wait 45 seconds.
const LEASE_WAIT: Duration = Duration::from_secs(1);
const LEASE_STEP: Duration = Duration::from_millis(20);

/// The length from which a file with holes is refused. It matches the longest line of a thread's file, so a reader of
/// lines cannot be made to read more zeros than that.
const LONGEST_SPARSE: u64 = 64 << 20;

/// The treatment of a symbolic link in place of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// It is followed; its target must be a regular file.
    Followed,
    /// It is refused.
    Refused,
}

/// Opens a regular file for streaming. A long file with holes is refused, because reading it would take hours and
/// creating it costs nothing.
pub fn open(path: &Path) -> Result<File, FileError> {
    let file = open_limited(path)?;
    check_whole(&file)?;
    Ok(file)
}

/// Refuses a long file with holes, for readers that read to the end.
pub fn check_whole(file: &File) -> Result<(), FileError> {
    if file.metadata()?.len() > LONGEST_SPARSE && has_holes(file) { Err(FileError::Sparse) } else { Ok(()) }
}

/// Opens or creates a regular file with the given options. Their custom flags are replaced, and they must not truncate:
/// the file is checked only after it is opened.
pub fn open_with(options: &mut OpenOptions, links: Links, path: &Path) -> Result<File, FileError> {
    // Opening a device may have side effects, so the path is checked first.
    match path.metadata() {
        Ok(found) => check(&found)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    open_checked(options, links, path)
}

/// Opens a regular file whose reader has its own limit.
pub(crate) fn open_limited(path: &Path) -> Result<File, FileError> {
    check(&path.metadata()?)?;
    open_checked(OpenOptions::new().read(true), Links::Followed, path)
}

fn open_checked(options: &mut OpenOptions, links: Links, path: &Path) -> Result<File, FileError> {
    add_flags(options, links);
    let deadline = Instant::now() + LEASE_WAIT;
    let file = loop {
        match options.open(path) {
            // Regular files return this only while another process holds a lease on them.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(FileError::Leased);
                }
                std::thread::park_timeout(left.min(LEASE_STEP));
            }
            opened => break opened?,
        }
    };
    // Another file may have taken its place in the meantime.
    check(&file.metadata()?)?;
    Ok(file)
}

/// Checks that it is a regular file. A folder gets its own error, as from the system.
fn check(found: &Metadata) -> Result<(), FileError> {
    match found {
        found if found.is_file() => Ok(()),
        found if found.is_dir() => Err(io::Error::from(rustix::io::Errno::ISDIR).into()),
        _ => Err(FileError::NotRegular),
    }
}

fn add_flags(options: &mut OpenOptions, links: Links) {
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    flags.set(OFlags::NOFOLLOW, links == Links::Refused);
    options.custom_flags(flags.bits().cast_signed());
}

#[cfg(target_os = "linux")]
fn has_holes(file: &File) -> bool {
    let Ok(length) = file.metadata().map(|found| found.len()) else { return false };
    // Every file has an implicit hole at its end. A file system that does not support holes reports none.
    let first = rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(0));
    let is_rewound = rustix::fs::seek(file, rustix::fs::SeekFrom::Start(0)).is_ok();
    first.is_ok_and(|first| first < length) || !is_rewound
}

#[cfg(not(target_os = "linux"))]
fn has_holes(_: &File) -> bool {
    false
}
