//! Reading within a limit.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::FileError;
use crate::open::open_limited;

/// Reads a whole file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    read_open(&open_limited(path)?, limit)
}

/// Reads a whole text of at most `limit` bytes.
pub fn read_text(path: &Path, limit: u64) -> Result<String, FileError> {
    let unreadable = |_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8");
    Ok(String::from_utf8(read(path, limit)?).map_err(unreadable)?)
}

/// Reads up to `limit` bytes from the start of a file, and returns whether that is all of it.
pub fn read_start(path: &Path, limit: u64) -> Result<(Vec<u8>, bool), FileError> {
    let mut bytes = read_up_to(&open_limited(path)?, limit.saturating_add(1))?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let is_whole = bytes.len() <= limit;
    bytes.truncate(limit);
    Ok((bytes, is_whole))
}

/// Reads an open file of at most `limit` bytes from its current position.
pub fn read_open(file: &File, limit: u64) -> Result<Vec<u8>, FileError> {
    let too_long = FileError::TooLong { limit };
    if file.metadata()?.len() > limit {
        return Err(too_long);
    }
    let bytes = read_up_to(file, limit.saturating_add(1))?;
    // It may have grown since it was checked.
    if bytes.len() as u64 > limit { Err(too_long) } else { Ok(bytes) }
}

fn read_up_to(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let expected = file.metadata()?.len().saturating_add(1).min(most);
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
