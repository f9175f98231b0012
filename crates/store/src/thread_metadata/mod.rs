//! Metadata of threads: read states, and data that clients store with threads.
//!
//! Each kind of metadata of each thread is a small file in one folder below the home. The rollouts are unchanged, so
//! every release can continue them, and the index can be rebuilt at any time.
//!
//! Invariant: a file is replaced atomically, by one process at a time. A reader sees the old text or the new one, and
//! no change is lost.

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

use file::MetadataFile;

/// The folder below the home.
const FOLDER: &str = "thread-notes";

/// The reason why metadata could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// Another process holds the lock for too long.
    #[error("another process has been writing {path} for too long; try again", path = .path.display())]
    Busy { path: PathBuf },
    #[error("could not read {path}", path = .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("could not write {path}", path = .path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The file contains something else. It is left alone.
    #[error("{path} has unexpected content; fix it or move it away", path = .path.display())]
    Broken { path: PathBuf, source: serde_json::Error },
    /// Something has happened that the client has not seen.
    #[error("the read state has changed: expected revision `{expected}`, found `{present}`")]
    Revision {
        /// The revision that the client has seen.
        expected: String,
        /// The current revision.
        present: String,
    },
    #[error("{what} must not be empty")]
    Empty { what: &'static str },
    #[error("{what} has {bytes} bytes; the limit is {most}")]
    TooLong { what: &'static str, bytes: usize, most: usize },
    /// The maximum number is reached.
    #[error("the limit of {most} {what} is reached")]
    TooMany { what: &'static str, most: usize },
    #[error("section not found: {section}")]
    NoSection { section: String },
    /// The thread that another one was to be inserted before is not in that section.
    #[error("thread {thread} is not in section {section}, so no thread can be moved before it")]
    NotThere { thread: ThreadId, section: String },
}

impl MetadataError {
    /// Whether the error is the caller's.
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

/// The metadata of the threads of a home. Its calls block; make them off the async threads.
#[derive(Debug, Clone)]
pub struct MetadataFolder {
    folder: PathBuf,
}

impl MetadataFolder {
    /// The metadata of a home. Nothing is read or created before the first request.
    #[must_use]
    pub fn of(home: &Path) -> Self {
        Self { folder: home.join(FOLDER) }
    }

    /// Removes all metadata of a deleted thread.
    pub(crate) fn forget(&self, thread: ThreadId) -> Result<(), MetadataError> {
        self.read_state_file(thread).remove()?;
        self.repository_file(thread).remove()?;
        self.attachments_file(thread).remove()?;
        self.leave_section(thread)
    }

    /// Adds the metadata to the summary of a thread.
    pub(crate) fn add_to(&self, summary: &mut ThreadSummary, sections: &Sections) {
        summary.section = sections.of(summary.id);
        if let Some(git) = self.repository(summary.id) {
            summary.git = Some(git).filter(|git| *git != GitInfo::default());
        }
    }

    fn read_state_file(&self, thread: ThreadId) -> MetadataFile {
        MetadataFile::fleeting(self.folder.join(format!("{thread}.read.json")))
    }

    fn attachments_file(&self, thread: ThreadId) -> MetadataFile {
        MetadataFile::precious(self.folder.join(format!("{thread}{}", attachments::ENDING)))
    }

    fn repository_file(&self, thread: ThreadId) -> MetadataFile {
        MetadataFile::precious(self.folder.join(format!("{thread}.git.json")))
    }
}

/// Checks that a text is not empty and not too long.
fn check_text(what: &'static str, text: &str, most: usize) -> Result<(), MetadataError> {
    if text.trim().is_empty() {
        return Err(MetadataError::Empty { what });
    }
    check_length(what, text.len(), most)
}

fn check_length(what: &'static str, bytes: usize, most: usize) -> Result<(), MetadataError> {
    if bytes > most { Err(MetadataError::TooLong { what, bytes, most }) } else { Ok(()) }
}
