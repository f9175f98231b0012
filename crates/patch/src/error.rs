//! Reasons why a patch cannot be applied, for people and models.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

use crate::guard::Refused;
use crate::nearest::{Mismatch, Nearest};
use crate::place::Misplaced;
use crate::snapshot::ReadError;

/// The reason why a patch does not match its files.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("{0}")]
    NoMatch(Box<NoMatch>),
    #[error("{path} does not exist", path = .path.display())]
    NoSuchFile { path: PathBuf },
    /// The patch itself has already written a file there.
    #[error("{path} exists already", path = .path.display())]
    ExistsAlready { path: PathBuf },
    #[error("{path} is a directory", path = .path.display())]
    IsDirectory { path: PathBuf },
    /// A parent is not a folder.
    #[error("{path} is below something that is not a directory", path = .path.display())]
    NotAFolder { path: PathBuf },
    /// It is binary, or text in an encoding with zero bytes.
    #[error("{path} is {what}, which cannot be patched as text", path = .path.display())]
    NotText { path: PathBuf, what: &'static str },
    /// It is a symbolic link, which is neither moved nor deleted.
    #[error("{path} is a symbolic link", path = .path.display())]
    Link { path: PathBuf },
    /// A symbolic link in the path is broken.
    #[error("{path} leads through a symbolic link to nothing", path = .path.display())]
    Dangling { path: PathBuf },
    #[error("could not read {path}", path = .path.display())]
    Read { path: PathBuf, source: ReadError },
    #[error("the files up to {path} are too large for one patch", path = .path.display())]
    TooMuch {
        /// The file that exceeded the limit.
        path: PathBuf,
    },
}

impl PlanError {
    /// A hint for the user or the model, shown on its own line.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoMatch(_) => Some("read the file again and write the lines as they are now"),
            Self::NoSuchFile { .. } => Some("check the path; a new file is made with '*** Add File:'"),
            Self::ExistsAlready { .. } => Some("use '*** Update File:' to change it, or delete it first"),
            Self::NotText { .. } => Some("use a command to change or remove it"),
            Self::Link { .. } => Some("name the file that it leads to"),
            Self::IsDirectory { .. }
            | Self::NotAFolder { .. }
            | Self::Dangling { .. }
            | Self::Read { .. }
            | Self::TooMuch { .. } => None,
        }
    }

    pub(crate) fn no_match(path: PathBuf, hunks: usize, misplaced: Misplaced) -> Self {
        let Misplaced { hunk, anchor, wanted, nearest } = misplaced;
        Self::NoMatch(Box::new(NoMatch { path, hunk, hunks, anchor, wanted, nearest }))
    }
}

/// A hunk whose lines are not in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoMatch {
    pub path: PathBuf,
    /// The number of the hunk in the file, starting at 1.
    pub hunk: usize,
    pub hunks: usize,
    /// The missing anchor; `None` if the lines of the hunk are missing.
    pub anchor: Option<String>,
    /// The lines that were searched for.
    pub wanted: Vec<String>,
    /// The closest match.
    pub nearest: Option<Nearest>,
}

impl Display for NoMatch {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let path = self.path.display();
        match &self.anchor {
            Some(anchor) => write!(f, "Failed to find context '{anchor}' in {path}")?,
            None => write!(f, "Failed to find expected lines in {path}:\n{}", self.wanted.join("\n"))?,
        }
        if self.hunks > 1 {
            write!(f, "\nThis is hunk {} of {}.", self.hunk, self.hunks)?;
        }
        let Some(Nearest { line, found, expected, reason }) = &self.nearest else { return Ok(()) };
        match reason {
            None => {
                write!(f, "\nThe nearest place is line {line}, where '{expected}' is expected but '{found}' found.")
            }
            Some(Mismatch::TooEarly) => {
                write!(f, "\nThey are at line {line}, but that is above an anchor or an earlier hunk.")
            }
            Some(Mismatch::NotAtEnd) => write!(f, "\nThey are at line {line}, but that is not the end of the file."),
        }
    }
}

/// The reason why a plan was not applied.
#[derive(Debug, thiserror::Error)]
#[error("could not apply the patch to {path}; {state}", path = .path.display(), state = state(.not_restored))]
pub struct ApplyError {
    /// The file that could not be changed.
    pub path: PathBuf,
    #[source]
    pub cause: ApplyCause,
    /// Files that were changed before the failure and could not be restored; almost always empty.
    pub not_restored: Vec<PathBuf>,
}

fn state(not_restored: &[PathBuf]) -> String {
    let paths: Vec<_> = not_restored.iter().map(|path| path.display().to_string()).collect();
    if paths.is_empty() {
        "no file was changed".to_owned()
    } else {
        format!("these files were changed and could not be put back: {}", paths.join(", "))
    }
}

/// The reason why a file could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum ApplyCause {
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It has changed since the plan was made.
    #[error("another process has changed it in the meantime")]
    ChangedMeanwhile,
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
