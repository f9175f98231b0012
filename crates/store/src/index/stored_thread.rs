//! Archives, restores, deletes and renames threads.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use codex_files::Links;
use codex_log::store::ThreadSummary;
use codex_wire::ids::ThreadId;

use super::{IndexError, ThreadIndex, rows};
use crate::claim::Claim;
use crate::holder::Holder;
use crate::partial_file;
use crate::thread_metadata::MetadataError;
use crate::threads::{
    ARCHIVED, NAMES_FILE, PlaceError, RolloutName, SESSIONS, ThreadFile, append_name, check_path, day_folder,
};

/// The reason why a thread could not be archived, restored, deleted or renamed.
#[derive(Debug, thiserror::Error)]
pub enum StoredThreadError {
    #[error(transparent)]
    Index(#[from] IndexError),
    /// Its file is not where it should be.
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("thread not found: {thread}")]
    Missing { thread: ThreadId },
    /// It is being written.
    #[error("the thread is open in {holder}; close it first")]
    InUse { path: PathBuf, holder: Holder },
    /// The target of the move exists already.
    #[error("there is a file {path} already", path = .path.display())]
    Exists { path: PathBuf },
    #[error("could not move {from} to {to}", from = .from.display(), to = .to.display())]
    Move { from: PathBuf, to: PathBuf, source: io::Error },
    #[error("could not delete {path}", path = .path.display())]
    Delete { path: PathBuf, source: io::Error },
    #[error("could not write the name to {path}", path = .path.display())]
    Name { path: PathBuf, source: io::Error },
    /// Its metadata could not be removed.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

impl ThreadIndex {
    /// Archives a thread and those that it has started. Archived ones are left alone. If one of them is open, nothing is
    /// moved; if a file cannot be moved, the thread itself stays where it is, and another attempt goes on.
    pub fn archive(&self, thread: ThreadId) -> Result<ThreadSummary, StoredThreadError> {
        for child in self.unused_descendants(thread)? {
            self.archive_one(child)?;
        }
        self.archive_one(thread)
    }

    /// The threads that a thread has started. Nobody writes to it or to them.
    fn unused_descendants(&self, thread: ThreadId) -> Result<Vec<ThreadId>, StoredThreadError> {
        let path = self.file_of(thread)?.path;
        let children = self.descendants(thread)?;
        drop(nobody_writes(self.home(), &path)?);
        for child in &children {
            drop(nobody_writes(self.home(), &self.file_of(*child)?.path)?);
        }
        Ok(children)
    }

    fn archive_one(&self, thread: ThreadId) -> Result<ThreadSummary, StoredThreadError> {
        let file = self.file_of(thread)?;
        if file.archived {
            return self.summary_of(thread);
        }
        let to = self.home().join(ARCHIVED).join(file.path.file_name().unwrap_or_default());
        self.move_file(thread, &file, to)
    }

    /// Restores an archived thread and those that it has started. Active ones are left alone.
    pub fn unarchive(&self, thread: ThreadId) -> Result<ThreadSummary, StoredThreadError> {
        let back = self.unarchive_one(thread)?;
        for child in self.descendants(thread)? {
            self.unarchive_one(child)?;
        }
        Ok(back)
    }

    fn unarchive_one(&self, thread: ThreadId) -> Result<ThreadSummary, StoredThreadError> {
        let file = self.file_of(thread)?;
        if !file.archived {
            return self.summary_of(thread);
        }
        let name = file.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let day = RolloutName::parse(name).and_then(|name| day_folder(name.time));
        let day = day.ok_or_else(|| PlaceError::NotAThread { path: file.path.clone() })?;
        let to = self.home().join(SESSIONS).join(day).join(name);
        self.move_file(thread, &file, to)
    }

    /// Deletes a thread and those that it has started, archived or not, with all their metadata. If one of them is open,
    /// nothing is deleted.
    pub fn delete(&self, thread: ThreadId) -> Result<(), StoredThreadError> {
        for child in self.unused_descendants(thread)? {
            self.delete_one(child)?;
        }
        self.delete_one(thread)
    }

    fn delete_one(&self, thread: ThreadId) -> Result<(), StoredThreadError> {
        let mut file = self.file_of(thread)?;
        loop {
            let failed = |source| StoredThreadError::Delete { path: file.path.clone(), source };
            let _lock = nobody_writes(self.home(), &file.path)?;
            std::fs::remove_file(&file.path).map_err(failed)?;
            partial_file::remove(&file.path);
            // It may be both active and archived, after a crash or a copy.
            match self.file_of(thread) {
                Ok(next) => file = next,
                Err(StoredThreadError::Missing { .. }) => return Ok(self.metadata().forget(thread)?),
                Err(error) => return Err(error),
            }
        }
    }

    /// Names a thread. An empty name removes its name.
    pub fn rename(&self, thread: ThreadId, name: &str) -> Result<(), StoredThreadError> {
        self.summary_of(thread)?;
        let path = self.home().join(NAMES_FILE);
        append_name(&path, thread, name).map_err(|source| StoredThreadError::Name { path, source })
    }

    fn summary_of(&self, thread: ThreadId) -> Result<ThreadSummary, StoredThreadError> {
        self.find(thread)?.ok_or(StoredThreadError::Missing { thread })
    }

    fn file_of(&self, thread: ThreadId) -> Result<ThreadFile, StoredThreadError> {
        let summary = self.summary_of(thread)?;
        Ok(check_path(self.home(), &summary.path)?)
    }

    fn move_file(&self, thread: ThreadId, file: &ThreadFile, to: PathBuf) -> Result<ThreadSummary, StoredThreadError> {
        let from = &self.summary_of(thread)?.path;
        let failed = |source| StoredThreadError::Move { from: from.clone(), to: to.clone(), source };
        let _lock = nobody_writes(self.home(), &file.path)?;
        if let Some(folder) = to.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
        if to.symlink_metadata().is_ok() {
            return Err(StoredThreadError::Exists { path: to });
        }
        std::fs::rename(from, &to).map_err(failed)?;
        partial_file::rename(from, &to);
        self.with(|database| {
            let moved = rows::move_to(&database.connection, &database.home, from, &to);
            moved.map_err(database.error())
        })?;
        self.summary_of(thread)
    }
}

/// Ensures that nobody writes to a thread while the result is held.
fn nobody_writes(home: &Path, path: &Path) -> Result<(Option<Claim>, Option<File>), StoredThreadError> {
    let in_use = |holder| StoredThreadError::InUse { path: path.to_owned(), holder };
    let claim = Claim::take(home, path).map_err(in_use)?;
    // If we may not write a file, none of our other processes writes it either.
    let opened = codex_files::open_with(OpenOptions::new().append(true), Links::Followed, path);
    let Ok(file) = opened else { return Ok((claim, None)) };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(in_use(Holder::of(&file))),
        Ok(()) | Err(TryLockError::Error(_)) => Ok((claim, Some(file))),
    }
}
