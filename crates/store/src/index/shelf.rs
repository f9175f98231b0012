//! Threads put away, taken back, deleted and named.

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
use crate::notes::NoteError;
use crate::partial_file;
use crate::threads::{
    ARCHIVED, NAMES_FILE, PlaceError, RolloutName, SESSIONS, ThreadFile, append_name, check_path, day_folder,
};

/// Why a thread could not be put away, taken back, deleted or named.
#[derive(Debug, thiserror::Error)]
pub enum ShelfError {
    /// It could not be looked up.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// Its file does not lie where it should.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// There is no such thread.
    #[error("thread not found: {thread}")]
    Missing {
        /// The thread.
        thread: ThreadId,
    },
    /// It is being written.
    #[error("the thread is open in {holder}; close it first")]
    InUse {
        /// Its file.
        path: PathBuf,
        /// By whom.
        holder: Holder,
    },
    /// There is a file already where its file would go.
    #[error("there is a file {path} already", path = .path.display())]
    Exists {
        /// That file.
        path: PathBuf,
    },
    /// The file could not be moved.
    #[error("could not move {from} to {to}", from = .from.display(), to = .to.display())]
    Move {
        /// Where it is.
        from: PathBuf,
        /// Where it should go.
        to: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file could not be deleted.
    #[error("could not delete {path}", path = .path.display())]
    Delete {
        /// Its file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The name could not be written.
    #[error("could not write the name to {path}", path = .path.display())]
    Name {
        /// The file of names.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// What is noted about it could not be forgotten.
    #[error(transparent)]
    Note(#[from] NoteError),
}

impl ThreadIndex {
    /// Puts a thread away. One that is away already stays there.
    pub fn archive(&self, thread: ThreadId) -> Result<ThreadSummary, ShelfError> {
        let file = self.file_of(thread)?;
        if file.archived {
            return self.summary_of(thread);
        }
        let to = self.home().join(ARCHIVED).join(file.path.file_name().unwrap_or_default());
        self.move_file(thread, &file, to)
    }

    /// Takes a thread back that was put away. One that is in use already stays so.
    pub fn unarchive(&self, thread: ThreadId) -> Result<ThreadSummary, ShelfError> {
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

    /// Deletes a thread, put away or not, with everything that is noted about it.
    pub fn delete(&self, thread: ThreadId) -> Result<(), ShelfError> {
        let mut file = self.file_of(thread)?;
        loop {
            let failed = |source| ShelfError::Delete { path: file.path.clone(), source };
            let _held = nobody_writes(self.home(), &file.path)?;
            std::fs::remove_file(&file.path).map_err(failed)?;
            partial_file::remove(&file.path);
            // It may be both in use and put away, after a crash or a copy.
            match self.file_of(thread) {
                Ok(next) => file = next,
                Err(ShelfError::Missing { .. }) => return Ok(self.notes().forget(thread)?),
                Err(error) => return Err(error),
            }
        }
    }

    /// Names a thread. An empty name takes its name away.
    pub fn rename(&self, thread: ThreadId, name: &str) -> Result<(), ShelfError> {
        self.summary_of(thread)?;
        let path = self.home().join(NAMES_FILE);
        append_name(&path, thread, name).map_err(|source| ShelfError::Name { path, source })
    }

    fn summary_of(&self, thread: ThreadId) -> Result<ThreadSummary, ShelfError> {
        self.find(thread)?.ok_or(ShelfError::Missing { thread })
    }

    fn file_of(&self, thread: ThreadId) -> Result<ThreadFile, ShelfError> {
        let summary = self.summary_of(thread)?;
        Ok(check_path(self.home(), &summary.path)?)
    }

    fn move_file(&self, thread: ThreadId, file: &ThreadFile, to: PathBuf) -> Result<ThreadSummary, ShelfError> {
        let from = &self.summary_of(thread)?.path;
        let failed = |source| ShelfError::Move { from: from.clone(), to: to.clone(), source };
        let _held = nobody_writes(self.home(), &file.path)?;
        if let Some(folder) = to.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
        if to.symlink_metadata().is_ok() {
            return Err(ShelfError::Exists { path: to });
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

/// Makes sure that nobody writes to a thread, for as long as what is returned lives.
fn nobody_writes(home: &Path, path: &Path) -> Result<(Option<Claim>, Option<File>), ShelfError> {
    let in_use = |holder| ShelfError::InUse { path: path.to_owned(), holder };
    let claim = Claim::take(home, path).map_err(in_use)?;
    // A file that we may not write is written by nobody else of ours either.
    let opened = codex_files::open_with(OpenOptions::new().append(true), Links::Followed, path);
    let Ok(file) = opened else { return Ok((claim, None)) };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(in_use(Holder::of(&file))),
        Ok(()) | Err(TryLockError::Error(_)) => Ok((claim, Some(file))),
    }
}
