//! Copies a part of a file into another without reading it into memory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use crate::open_files;

/// The size of a block. File systems that can share parts of files share whole blocks.
pub(crate) const BLOCK: u64 = 4096;

/// Copies a part of a file to a position of another. The kernel copies it; a file system that can do so shares the blocks
/// if both parts begin at the same place of a block.
pub(crate) fn copy(mut source: &File, part: &Range<u64>, into: &Path, at: u64) -> io::Result<()> {
    // The kernel does not copy to a descriptor that appends.
    let mut target = open_files::open(OpenOptions::new().write(true), into)?;
    target.seek(SeekFrom::Start(at))?;
    source.seek(SeekFrom::Start(part.start))?;
    let whole = part.end - part.start;
    let first = (part.start.next_multiple_of(BLOCK) - part.start).min(whole);
    for length in [first, whole - first] {
        if io::copy(&mut source.take(length), &mut target)? != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}
