//! Opening without waiting for anybody.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::FileError;

/// How long, and in what steps, the lease of another process is waited for. The kernel would wait 45 seconds.
const LEASE_WAIT: Duration = Duration::from_secs(1);
const LEASE_STEP: Duration = Duration::from_millis(20);

/// From this length on a file with holes is refused. It is as long as the longest line of a thread's file, so that no reader
/// that goes by lines can be made to read more than that in zeros.
const LONGEST_SPARSE: u64 = 64 << 20;

/// What happens to a symbolic link in the place of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// It is followed; what it leads to must be a regular file.
    Followed,
    /// It is refused.
    Refused,
}

/// Opens a regular file to read it as a stream. A long file with holes is refused, since reading it would take hours and
/// cost whoever made it nothing.
pub fn open(path: &Path) -> Result<File, FileError> {
    let file = open_limited(path)?;
    check_whole(&file)?;
    Ok(file)
}

/// Refuses a long file with holes, for whoever reads it to the end or from there.
pub fn check_whole(file: &File) -> Result<(), FileError> {
    if file.metadata()?.len() > LONGEST_SPARSE && has_holes(file) { Err(FileError::Sparse) } else { Ok(()) }
}

/// Opens a regular file, or creates one, as the options say. Their custom flags are replaced, and they must not truncate:
/// what is opened is checked afterwards.
pub fn open_with(options: &mut OpenOptions, links: Links, path: &Path) -> Result<File, FileError> {
    // To open a device may start what it drives, so the path is looked at before.
    match path.metadata() {
        Ok(found) => check(&found)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    open_checked(options, links, path)
}

/// Opens a regular file whose reader has a limit of its own.
pub(crate) fn open_limited(path: &Path) -> Result<File, FileError> {
    check(&path.metadata()?)?;
    open_checked(OpenOptions::new().read(true), Links::Followed, path)
}

fn open_checked(options: &mut OpenOptions, links: Links, path: &Path) -> Result<File, FileError> {
    add_flags(options, links);
    let deadline = Instant::now() + LEASE_WAIT;
    let file = loop {
        match options.open(path) {
            // Regular files give this answer only while somebody holds a lease on them.
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
    // Another file may have taken its place meanwhile.
    check(&file.metadata()?)?;
    Ok(file)
}

/// Whether it is a regular file. A folder is told from the rest, as the system itself does.
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
    // Every file has a hole behind its end. Where holes are not known, there are none.
    let first = rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(0));
    let is_rewound = rustix::fs::seek(file, rustix::fs::SeekFrom::Start(0)).is_ok();
    first.is_ok_and(|first| first < length) || !is_rewound
}

#[cfg(not(target_os = "linux"))]
fn has_holes(_: &File) -> bool {
    false
}
