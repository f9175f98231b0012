//! The content of a file, and safe ways to find and read files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

/// The size limit of a patched file, in bytes.
pub const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// A file as it was read, or as it will be written.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub bytes: Arc<[u8]>,
    /// Its permissions; `None` for a new file, which gets the process's defaults.
    pub mode: Option<u32>,
    /// Its user and group; `None` for a new file.
    pub(crate) owner: Option<(u32, u32)>,
}

impl Snapshot {
    pub(crate) fn new_file(bytes: Vec<u8>) -> Self {
        Self { bytes: bytes.into(), mode: None, owner: None }
    }

    /// The same file with other bytes.
    pub(crate) fn with(&self, bytes: Vec<u8>) -> Self {
        Self { bytes: bytes.into(), mode: self.mode, owner: self.owner }
    }

    /// Whether its owner may execute it.
    #[must_use]
    pub fn is_executable(&self) -> bool {
        self.mode.is_some_and(|mode| mode & 0o100 != 0)
    }
}

/// The reason why something cannot be patched as a file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is a folder.
    #[error("it is a directory")]
    Directory,
    /// It is a device, a pipe or a socket.
    #[error("it is not a regular file but {0}")]
    Special(&'static str),
    #[error("it has {0} bytes, and the limit is {MAX_FILE_BYTES}")]
    TooLarge(u64),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The flags for opening a file to read: never through a link, and never blocking on a pipe.
pub(crate) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

/// The identity of a file and its last change, to detect modifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    written: (i64, i64),
}

/// Reads the file at a path without links.
pub(crate) fn read(path: &Path) -> Result<Snapshot, ReadError> {
    let flags = READ.difference(OFlags::RDONLY).bits();
    let file = File::options().read(true).custom_flags(i32::try_from(flags).unwrap_or_default()).open(path)?;
    Ok(read_open(file)?.0)
}

/// Reads a file from its descriptor.
pub(crate) fn read_descriptor(descriptor: OwnedFd) -> Result<(Snapshot, Identity), ReadError> {
    read_open(File::from(descriptor))
}

fn read_open(file: File) -> Result<(Snapshot, Identity), ReadError> {
    let meta = file.metadata()?;
    check_kind(&meta)?;
    if meta.len() > MAX_FILE_BYTES {
        return Err(ReadError::TooLarge(meta.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or_default() + 1);
    (&file).take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(ReadError::TooLarge(bytes.len() as u64));
    }
    let (mode, owner) = (Some(meta.mode() & 0o7777), Some((meta.uid(), meta.gid())));
    Ok((Snapshot { bytes: bytes.into(), mode, owner }, identity(&meta)))
}

pub(crate) fn identity(meta: &fs::Metadata) -> Identity {
    let written = (meta.mtime(), meta.mtime_nsec());
    Identity { device: meta.dev(), inode: meta.ino(), size: meta.len(), written }
}

fn check_kind(meta: &fs::Metadata) -> Result<(), ReadError> {
    let kind = meta.file_type();
    if kind.is_file() {
        Ok(())
    } else if kind.is_dir() {
        Err(ReadError::Directory)
    } else if kind.is_fifo() {
        Err(ReadError::Special("a pipe"))
    } else if kind.is_socket() {
        Err(ReadError::Special("a socket"))
    } else {
        Err(ReadError::Special("a device"))
    }
}

/// Makes a path absolute and removes `.` and `..` lexically.
pub(crate) fn normal(cwd: &Path, path: &Path) -> PathBuf {
    let mut normal = PathBuf::from("/");
    for component in cwd.join(path).components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    normal
}

/// The target of a path after all links are followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Located {
    /// The path without any links.
    pub(crate) real: PathBuf,
    pub(crate) found: Found,
}

/// The kind of entry at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    /// A file or folder.
    Entry,
    /// A link to something that exists.
    Link,
}

/// Follows the links of a normal path, as far as it exists.
pub(crate) fn locate(path: &Path) -> io::Result<Located> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(Located { real: path.to_owned(), found: Found::Entry });
    };
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => Ok(Located { real: fs::canonicalize(path)?, found: Found::Link }),
        Ok(_) => Ok(Located { real: fs::canonicalize(folder)?.join(name), found: Found::Entry }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(Located { real: real_folder(folder)?.join(name), found: Found::Nothing })
        }
        Err(error) => Err(error),
    }
}

/// Follows the links of a folder that may not exist yet.
fn real_folder(folder: &Path) -> io::Result<PathBuf> {
    let missing = |path: &&Path| fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let missing: Vec<&Path> = folder.ancestors().take_while(missing).collect();
    let exists = folder.ancestors().nth(missing.len()).unwrap_or(Path::new("/"));
    let mut real = fs::canonicalize(exists)?;
    if !real.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    real.extend(missing.iter().rev().filter_map(|path| path.file_name()));
    Ok(real)
}
