//! `fs/*`: files, for clients that run elsewhere. These functions block.
//!
//! These are requests of the client, not of a model, so they may do everything that the user may. All paths are
//! absolute.

use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use codex_files::{FileError, Links};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::empty::Empty;
use codex_protocol::v2::fs::{
    FsCopyParams, FsCreateDirectoryParams, FsGetMetadataParams, FsGetMetadataResponse, FsReadDirectoryEntry,
    FsReadDirectoryParams, FsReadDirectoryResponse, FsReadFileParams, FsReadFileResponse, FsRemoveParams,
    FsWriteFileParams,
};

/// The maximum size of a file that is read, so that its Base64 fits into a line.
const MOST_BYTES: u64 = 24 * 1024 * 1024;
/// The maximum number of entries of a folder that are listed.
const MOST_ENTRIES: usize = 50_000;

/// Returns the path if it is absolute.
pub fn absolute(path: PathBuf) -> Result<PathBuf, ErrorObject> {
    if path.is_absolute() {
        return Ok(path);
    }
    Err(ErrorObject::invalid(format!("the path must be absolute: {}", path.display())))
}

/// The error about a path. Most such errors are caused by the client.
pub fn failed(what: &str, path: &Path) -> impl Fn(io::Error) -> ErrorObject {
    let text = format!("could not {what} {}", path.display());
    move |error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::Other | ErrorKind::OutOfMemory => {
            ErrorObject::internal(format!("{text}: {error}"))
        }
        _ => ErrorObject::invalid(format!("{text}: {error}")),
    }
}

/// The error about a file that cannot be opened.
fn refused(what: &'static str, path: &Path) -> impl Fn(FileError) -> ErrorObject {
    let path = path.to_owned();
    move |error| match error {
        FileError::Io(error) if error.kind() != ErrorKind::IsADirectory => failed(what, &path)(error),
        FileError::NotRegular | FileError::Io(_) => {
            ErrorObject::invalid(format!("{} is not a regular file", path.display()))
        }
        FileError::TooLong { limit } => {
            let text = format!("{} is larger than {limit} bytes, the most that is read", path.display());
            ErrorObject::invalid(text)
        }
        FileError::Sparse | FileError::Leased => {
            ErrorObject::invalid(format!("could not {what} {}: {error}", path.display()))
        }
    }
}

pub fn read_file(params: FsReadFileParams) -> Result<FsReadFileResponse, ErrorObject> {
    let path = absolute(params.path)?;
    let data = codex_files::read(&path, MOST_BYTES).map_err(refused("read", &path))?;
    Ok(FsReadFileResponse { data })
}

pub fn write_file(params: FsWriteFileParams) -> Result<Empty, ErrorObject> {
    let path = absolute(params.path)?;
    let refused = refused("write", &path);
    let mut options = OpenOptions::new();
    let mut file = codex_files::open_with(options.write(true).create(true), Links::Followed, &path).map_err(refused)?;
    let written = file.set_len(0).and_then(|()| file.write_all(&params.data));
    written.map(|()| Empty {}).map_err(failed("write", &path))
}

pub fn create_directory(params: FsCreateDirectoryParams) -> Result<Empty, ErrorObject> {
    let path = absolute(params.path)?;
    let is_deep = params.recursive.unwrap_or(true);
    let made = if is_deep { fs::create_dir_all(&path) } else { fs::create_dir(&path) };
    made.map(|()| Empty {}).map_err(failed("create", &path))
}

fn milliseconds(time: io::Result<SystemTime>) -> i64 {
    let since = time.ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or_default()
}

pub fn metadata(params: FsGetMetadataParams) -> Result<FsGetMetadataResponse, ErrorObject> {
    let path = absolute(params.path)?;
    let own = fs::symlink_metadata(&path).map_err(failed("look at", &path))?;
    let is_symlink = own.is_symlink();
    // A link is described by its target, or as a link if the target does not exist.
    let metadata = fs::metadata(&path).unwrap_or(own);
    Ok(FsGetMetadataResponse {
        is_directory: metadata.is_dir(),
        is_file: metadata.is_file(),
        is_symlink,
        created_at_ms: milliseconds(metadata.created()),
        modified_at_ms: milliseconds(metadata.modified()),
    })
}

pub fn read_directory(params: FsReadDirectoryParams) -> Result<FsReadDirectoryResponse, ErrorObject> {
    let path = absolute(params.path)?;
    let failed = failed("list", &path);
    let mut entries = Vec::new();
    for entry in fs::read_dir(&path).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        if entries.len() == MOST_ENTRIES {
            let text = format!("{} has more than {MOST_ENTRIES} entries, the most that are listed", path.display());
            return Err(ErrorObject::invalid(text));
        }
        let metadata = fs::metadata(entry.path()).ok();
        entries.push(FsReadDirectoryEntry {
            file_name: entry.file_name().to_string_lossy().into_owned(),
            is_directory: metadata.as_ref().is_some_and(Metadata::is_dir),
            is_file: metadata.as_ref().is_some_and(Metadata::is_file),
        });
    }
    entries.sort_by(|one, other| one.file_name.cmp(&other.file_name));
    Ok(FsReadDirectoryResponse { entries })
}

pub fn remove(params: FsRemoveParams) -> Result<Empty, ErrorObject> {
    let path = absolute(params.path)?;
    if path.file_name().is_none() {
        return Err(ErrorObject::invalid(format!(
            "{} cannot be removed, because its path does not end with a name",
            path.display()
        )));
    }
    let removed = match fs::symlink_metadata(&path) {
        Ok(metadata) if !metadata.is_dir() => fs::remove_file(&path),
        Ok(_) if params.recursive.unwrap_or(true) => fs::remove_dir_all(&path),
        Ok(_) => fs::remove_dir(&path),
        Err(error) if error.kind() == ErrorKind::NotFound && params.force.unwrap_or(true) => Ok(()),
        Err(error) => Err(error),
    };
    removed.map(|()| Empty {}).map_err(failed("remove", &path))
}

pub fn copy(params: FsCopyParams) -> Result<Empty, ErrorObject> {
    let (from, to) = (absolute(params.source_path)?, absolute(params.destination_path)?);
    let metadata = fs::symlink_metadata(&from).map_err(failed("copy", &from))?;
    if metadata.is_dir() && !params.recursive {
        return Err(ErrorObject::invalid(format!("{} is a folder; copy it with recursive", from.display())));
    }
    if metadata.is_dir() && is_inside(&to, &from) {
        return Err(ErrorObject::invalid(format!("{} cannot be copied into itself", from.display())));
    }
    copy_all(&from, &to).map(|()| Empty {})
}

/// Whether a path that may not exist yet is in a folder, after all links are resolved.
fn is_inside(path: &Path, folder: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    let there = path.ancestors().find_map(|part| part.canonicalize().ok());
    there.is_some_and(|there| there.starts_with(&folder))
}

/// Copies files, folders with their contents, and links as links. Anything else is refused.
fn copy_all(from: &Path, to: &Path) -> Result<(), ErrorObject> {
    let mut waiting = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = waiting.pop() {
        let failed = failed("copy", &from);
        let kind = fs::symlink_metadata(&from).map_err(&failed)?.file_type();
        if kind.is_dir() {
            if !to.is_dir() {
                fs::create_dir(&to).map_err(&failed)?;
            }
            for entry in fs::read_dir(&from).map_err(&failed)? {
                let name = entry.map_err(&failed)?.file_name();
                waiting.push((from.join(&name), to.join(&name)));
            }
        } else if kind.is_file() {
            copy_file(&from, &to).map_err(refused("copy", &from))?;
        } else if kind.is_symlink() {
            let target = fs::read_link(&from).map_err(&failed)?;
            link(&target, &to).map_err(&failed)?;
        } else {
            return Err(ErrorObject::invalid(format!("{} is neither a file nor a folder", from.display())));
        }
    }
    Ok(())
}

/// Copies a regular file and its permissions.
fn copy_file(from: &Path, to: &Path) -> Result<(), FileError> {
    let mut source = codex_files::open(from)?;
    let mut target = codex_files::open_with(OpenOptions::new().write(true).create(true), Links::Followed, to)?;
    target.set_len(0)?;
    io::copy(&mut source, &mut target)?;
    Ok(target.set_permissions(source.metadata()?.permissions())?)
}

#[cfg(unix)]
fn link(target: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, at)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}
