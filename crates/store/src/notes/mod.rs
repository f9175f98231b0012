//! What clients note about threads: what was read of them, and what they keep with them.
//!
//! Each kind of note about each thread is a small file of its own in one folder below the home. The rollouts stay what
//! they are, so every release can go on with them, and what the index says can be made again at any time.
//!
//! Invariant: a file is replaced as a whole, by one process after the other. Whoever reads sees the old text or the new,
//! and no change is lost.

mod attachments;
mod file;
mod read_state;
mod repository;
mod sections;

use std::io;
use std::path::{Path, PathBuf};

use codex_log::store::ThreadSummary;
use codex_wire::ids::ThreadId;
use codex_wire::rollout::GitInfo;

pub(crate) use sections::Sections;

use file::NoteFile;

/// The folder below the home.
const FOLDER: &str = "thread-notes";

/// Why a note could not be read or made.
#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    /// Another process does not let go of the file.
    #[error("another process has been writing {path} for too long; try again", path = .path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("could not read {path}", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("could not write {path}", path = .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file holds something else than notes. It is left alone.
    #[error("{path} does not hold what is noted there; mend it or move it away", path = .path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// Something has happened that the client has not seen.
    #[error("the read state has changed: expected revision `{expected}`, found `{present}`")]
    Revision {
        /// What the client has seen.
        expected: String,
        /// What there is.
        present: String,
    },
    /// A text says nothing.
    #[error("{what} must not be empty")]
    Empty {
        /// Which one.
        what: &'static str,
    },
    /// Something is longer than it may be.
    #[error("{what} has {bytes} bytes; at most {most} are kept")]
    TooLong {
        /// What.
        what: &'static str,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        most: usize,
    },
    /// There are as many as there may be.
    #[error("there are {most} {what} already, and more are not kept")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// There is no such section.
    #[error("section not found: {section}")]
    NoSection {
        /// Which one was looked for.
        section: String,
    },
    /// A thread that another was to be put before is not in that section.
    #[error("thread {thread} is not in section {section}, so nothing can be put before it there")]
    NotThere {
        /// That thread.
        thread: ThreadId,
        /// The section.
        section: String,
    },
}

impl NoteError {
    /// Whether whoever asked can do something about it.
    #[must_use]
    pub fn is_mistake(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::Read { .. } | Self::Write { .. } | Self::Broken { .. } => false,
            Self::Revision { .. }
            | Self::Empty { .. }
            | Self::TooLong { .. }
            | Self::TooMany { .. }
            | Self::NoSection { .. }
            | Self::NotThere { .. } => true,
        }
    }
}

/// The notes about the threads of a home. Its calls block; make them off the async threads.
#[derive(Debug, Clone)]
pub struct Notes {
    folder: PathBuf,
}

impl Notes {
    /// The notes of a home. Nothing is read or made before the first question.
    #[must_use]
    pub fn of(home: &Path) -> Self {
        Self { folder: home.join(FOLDER) }
    }

    /// Forgets everything about a thread that is gone.
    pub(crate) fn forget(&self, thread: ThreadId) -> Result<(), NoteError> {
        self.read_state_file(thread).remove()?;
        self.repository_file(thread).remove()?;
        self.attachments_file(thread).remove()?;
        self.leave_section(thread)
    }

    /// Adds to what the index knows of a thread.
    pub(crate) fn add_to(&self, summary: &mut ThreadSummary, sections: &Sections) {
        summary.section = sections.of(summary.id);
        if let Some(git) = self.repository(summary.id) {
            summary.git = Some(git).filter(|git| *git != GitInfo::default());
        }
    }

    fn read_state_file(&self, thread: ThreadId) -> NoteFile {
        NoteFile::fleeting(self.folder.join(format!("{thread}.read.json")))
    }

    fn attachments_file(&self, thread: ThreadId) -> NoteFile {
        NoteFile::precious(self.folder.join(format!("{thread}{}", attachments::ENDING)))
    }

    fn repository_file(&self, thread: ThreadId) -> NoteFile {
        NoteFile::precious(self.folder.join(format!("{thread}.git.json")))
    }
}

/// Makes sure that a text says something and is not too long.
fn check_text(what: &'static str, text: &str, most: usize) -> Result<(), NoteError> {
    if text.trim().is_empty() {
        return Err(NoteError::Empty { what });
    }
    check_length(what, text.len(), most)
}

fn check_length(what: &'static str, bytes: usize, most: usize) -> Result<(), NoteError> {
    if bytes > most { Err(NoteError::TooLong { what, bytes, most }) } else { Ok(()) }
}
