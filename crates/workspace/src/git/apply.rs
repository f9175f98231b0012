//! Applies a diff to the files of a folder.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::Path,
    time::{Duration, Instant},
};

use super::{GitError, repository::Repository, run::Runner, stage::Stage};

/// The maximum number of bytes kept of git's output.
const MAX_SAID: usize = 1024 * 1024;

/// The result of applying a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Whether the files were changed. If not, none was.
    pub is_complete: bool,
    /// The output of git.
    pub said: String,
}

pub(crate) fn apply(folder: &Path, diff: &str, runner: &Runner, within: Duration) -> Result<Applied, GitError> {
    let deadline = Instant::now() + within;
    let read = |source: io::Error| GitError::Read { root: folder.to_owned(), source };
    let folder = folder.canonicalize().map_err(read)?;
    let repository = Repository::find(&folder);
    let root = repository.as_ref().map_or(&*folder, |repository| &repository.root);
    let stage = Stage::new(runner, repository.as_ref()).map_err(read)?;
    let input = stage.input("diff", diff.as_bytes()).map_err(read)?;
    // Paths are relative to the folder. Without this, git would treat them as relative to the checkout's root, and
    // silently skip the ones outside the folder.
    let mut directory = OsString::from("--directory=");
    directory.push(folder.strip_prefix(root).unwrap_or(Path::new("")));
    let arguments = [OsStr::new("apply"), OsStr::new("--whitespace=nowarn"), &directory, OsStr::new("-")];
    let ended = stage.git(root, deadline).run_aloud(&arguments, &input, MAX_SAID);
    let ended = ended.map_err(|source| GitError::Git { root: root.to_owned(), source: source.into() })?;
    Ok(Applied { is_complete: ended.is_success, said: String::from_utf8_lossy(&ended.output).into_owned() })
}
