//! Metadata of threads: read states, and data that clients store with threads.
//!
//! Each kind of metadata of each thread is a document. Files are one way to keep them: small ones in one folder below the home. The rollouts are unchanged, so
//! every release can continue them, and the index can be rebuilt at any time.
//!
//! Invariant: a file is replaced atomically, by one process at a time. A reader sees the old text or the new one, and
//! no change is lost.

mod attachments;
mod file;
mod read_state;
mod repository;
mod sections;

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};

use codex_log::store::{StoreError, ThreadSummary};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::GitInfo;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use sections::Sections;

use file::MetadataFile;

/// The folder below the home.
const FOLDER: &str = "thread-notes";

/// The suffix of attachment files.
const ATTACHMENTS: &str = ".attachments.json";

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
    /// The store of the documents has failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl MetadataError {
    /// Whether the error is the caller's.
    #[must_use]
    pub fn is_mistake(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::Read { .. } | Self::Write { .. } | Self::Broken { .. } | Self::Store(_) => false,
            Self::Revision { .. }
            | Self::Empty { .. }
            | Self::TooLong { .. }
            | Self::TooMany { .. }
            | Self::NoSection { .. }
            | Self::NotThere { .. } => true,
        }
    }
}

/// A document of metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Document {
    /// All sections with their threads.
    Sections,
    /// The read state of a thread. It is written often, and may be lost in a power failure.
    ReadState(ThreadId),
    Attachments(ThreadId),
    /// Corrections to the information about a thread's repository.
    Repository(ThreadId),
}

/// Keeps documents of metadata, each a value that is read and replaced as a whole.
pub trait Documents: Debug + Send + Sync {
    /// The value; the default if there is none.
    fn read<T: DeserializeOwned + Default>(&self, document: Document) -> Result<T, MetadataError>;

    /// Changes a value, one caller at a time. The change may be computed more than once; the last result counts.
    fn change<T, R>(
        &self,
        document: Document,
        change: impl FnMut(&mut T) -> Result<R, MetadataError>,
    ) -> Result<R, MetadataError>
    where
        T: Serialize + DeserializeOwned + Default + Clone + PartialEq;

    /// Removes a document.
    fn remove(&self, document: Document) -> Result<(), MetadataError>;

    /// The threads that may have an attachment with this key.
    fn maybe_attached(&self, key: &str) -> Result<Vec<ThreadId>, MetadataError>;
}

/// The metadata of threads. Its calls block; make them off the async threads.
#[derive(Debug, Clone)]
pub struct StoredMetadata<D> {
    documents: D,
}

impl StoredMetadata<MetadataFolder> {
    /// The metadata of a home. Nothing is read or created before the first request.
    #[must_use]
    pub fn of(home: &Path) -> Self {
        Self::new(MetadataFolder { folder: home.join(FOLDER) })
    }
}

impl<D: Documents> StoredMetadata<D> {
    #[must_use]
    pub fn new(documents: D) -> Self {
        Self { documents }
    }

    /// The documents themselves.
    #[must_use]
    pub fn documents(&self) -> &D {
        &self.documents
    }

    /// Removes all metadata of a deleted thread.
    pub fn forget(&self, thread: ThreadId) -> Result<(), MetadataError> {
        for document in [Document::ReadState(thread), Document::Repository(thread), Document::Attachments(thread)] {
            self.documents.remove(document)?;
        }
        self.leave_section(thread)
    }

    /// Adds the metadata to the summary of a thread.
    pub fn add_to(&self, summary: &mut ThreadSummary, sections: &Sections) {
        summary.section = sections.of(summary.id);
        if let Some(git) = self.repository(summary.id) {
            summary.git = Some(git).filter(|git| *git != GitInfo::default());
        }
    }
}

/// Documents as files of one folder.
#[derive(Debug, Clone)]
pub struct MetadataFolder {
    folder: PathBuf,
}

impl MetadataFolder {
    fn file(&self, document: Document) -> MetadataFile {
        let path = |name: String| self.folder.join(name);
        match document {
            Document::Sections => MetadataFile::precious(path("sections.json".to_owned())),
            Document::ReadState(thread) => MetadataFile::fleeting(path(format!("{thread}.read.json"))),
            Document::Attachments(thread) => MetadataFile::precious(path(format!("{thread}{ATTACHMENTS}"))),
            Document::Repository(thread) => MetadataFile::precious(path(format!("{thread}.git.json"))),
        }
    }
}

impl Documents for MetadataFolder {
    fn read<T: DeserializeOwned + Default>(&self, document: Document) -> Result<T, MetadataError> {
        self.file(document).read()
    }

    fn change<T, R>(
        &self,
        document: Document,
        change: impl FnMut(&mut T) -> Result<R, MetadataError>,
    ) -> Result<R, MetadataError>
    where
        T: Serialize + DeserializeOwned + Default + Clone + PartialEq,
    {
        self.file(document).change(change)
    }

    fn remove(&self, document: Document) -> Result<(), MetadataError> {
        self.file(document).remove()
    }

    fn maybe_attached(&self, _key: &str) -> Result<Vec<ThreadId>, MetadataError> {
        let failed = |source| MetadataError::Read { path: self.folder.clone(), source };
        let entries = match self.folder.read_dir() {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut threads = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(ATTACHMENTS));
            threads.extend(name.and_then(|name| name.parse::<ThreadId>().ok()));
        }
        Ok(threads)
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
