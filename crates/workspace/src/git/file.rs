//! Reads files of a repository safely, whatever is in their place.
//!
//! Invariant: only regular files are read, up to a limit, and no open or read blocks.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

use rustix::fs::{Mode, OFlags};

/// The maximum number of bytes read as text.
const MAX_TEXT: u64 = 1024 * 1024;

/// Whether the last component of a path may be a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Followed,
    Refused,
}

/// Opens a regular file. Anything else is an error; a pipe or a device is not even opened, unless it was put there just
/// now, and even then the open does not block.
pub(crate) fn open(path: &Path, links: Links) -> io::Result<File> {
    let (found, extra) = match links {
        Links::Followed => (fs::metadata(path)?, OFlags::empty()),
        Links::Refused => (fs::symlink_metadata(path)?, OFlags::NOFOLLOW),
    };
    let irregular = || io::Error::from(io::ErrorKind::InvalidInput);
    if !found.is_file() {
        return Err(irregular());
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | extra;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(irregular()) }
}

/// Reads a text of a reasonable size.
pub(crate) fn read(path: &Path) -> Option<String> {
    read_up_to(path, MAX_TEXT)
}

/// Reads a text of at most `most` bytes.
pub(crate) fn read_up_to(path: &Path, most: u64) -> Option<String> {
    let mut text = String::new();
    let length = open(path, Links::Followed).ok()?.take(most + 1).read_to_string(&mut text).ok()?;
    (u64::try_from(length).ok()? <= most).then_some(text)
}
