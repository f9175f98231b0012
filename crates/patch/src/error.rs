//! Why a patch cannot be applied, as people and models are told.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

use crate::guard::Refused;
use crate::nearest::{Misfit, Nearest};
use crate::place::Misplaced;
use crate::snapshot::ReadError;

/// Why a patch does not fit the files it is about.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The lines of a hunk are not in the file.
    #[error("{0}")]
    NoMatch(Box<NoMatch>),
    /// The file is not there.
    #[error("{path} does not exist", path = .path.display())]
    NoSuchFile {
        /// Which file.
        path: PathBuf,
    },
    /// The patch itself has put a file where another one is to be.
    #[error("{path} exists already", path = .path.display())]
    ExistsAlready {
        /// Which file.
        path: PathBuf,
    },
    /// It is a folder.
    #[error("{path} is a directory", path = .path.display())]
    IsDirectory {
        /// Which path.
        path: PathBuf,
    },
    /// Something above it is no folder.
    #[error("{path} is below something that is not a directory", path = .path.display())]
    NotAFolder {
        /// Which path.
        path: PathBuf,
    },
    /// It is not text, or text in an encoding that has zero bytes.
    #[error("{path} is {what}, which cannot be patched as text", path = .path.display())]
    NotText {
        /// Which file.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// It is a symbolic link, which is neither moved nor deleted.
    #[error("{path} is a symbolic link", path = .path.display())]
    Link {
        /// Which path.
        path: PathBuf,
    },
    /// A symbolic link on the way leads nowhere.
    #[error("{path} leads through a symbolic link to nothing", path = .path.display())]
    Dangling {
        /// Which path.
        path: PathBuf,
    },
    /// It could not be read.
    #[error("could not read {path}", path = .path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: ReadError,
    },
    /// The files of the patch are too large together.
    #[error("the files up to {path} are too large for one patch", path = .path.display())]
    TooMuch {
        /// The file that was too much.
        path: PathBuf,
    },
}

impl PlanError {
    /// A next step for the person or the model, shown on a line of its own.
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
    /// Which file.
    pub path: PathBuf,
    /// Which hunk of the file, counted from 1.
    pub hunk: usize,
    /// How many hunks there are.
    pub hunks: usize,
    /// The anchor that was not found; none if the lines of the hunk were not.
    pub anchor: Option<String>,
    /// The lines that were looked for.
    pub wanted: Vec<String>,
    /// The place that is nearest to them.
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
            Some(Misfit::TooEarly) => {
                write!(f, "\nThey are at line {line}, but that is above an anchor or an earlier hunk.")
            }
            Some(Misfit::NotAtEnd) => write!(f, "\nThey are at line {line}, but that is not the end of the file."),
        }
    }
}

/// Why a plan was not carried out.
#[derive(Debug, thiserror::Error)]
#[error("could not apply the patch to {path}; {state}", path = .path.display(), state = state(.not_restored))]
pub struct ApplyError {
    /// The file that could not be changed.
    pub path: PathBuf,
    /// Why not.
    #[source]
    pub cause: ApplyCause,
    /// Files that were changed before the failure and could not be put back; as good as always empty.
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

/// What kept a file from being changed.
#[derive(Debug, thiserror::Error)]
pub enum ApplyCause {
    /// It may not be written there.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It is not as it was when the plan was made.
    #[error("it was changed by somebody else meanwhile")]
    ChangedMeanwhile,
    /// It could not be written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
