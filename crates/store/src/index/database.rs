//! The database file: created, opened, and discarded when it is unusable.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use codex_files::Links;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::IndexError;

/// The file below the home. Other releases call theirs `state_5.sqlite` and the like.
pub(crate) const INDEX_FILE: &str = "thread-index.sqlite";

/// Incremented when the tables change: an index of another version is rebuilt.
const VERSION: i64 = 1;

/// The time to wait for another process to finish writing, before we continue without writing.
const BUSY: Duration = Duration::from_secs(2);

/// The `statfs` type of NFS, where a write-ahead log in shared memory does not work.
const NFS_MAGIC: u64 = 0x6969;

const TABLES: &str = "
CREATE TABLE threads (
    key INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    folder TEXT NOT NULL,
    id TEXT NOT NULL,
    archived INTEGER NOT NULL,
    file_time TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime INTEGER NOT NULL,
    scanned INTEGER NOT NULL DEFAULT 0,
    scanned_size INTEGER NOT NULL DEFAULT 0,
    preview TEXT NOT NULL,
    cwd TEXT NOT NULL,
    provider TEXT,
    source_kind TEXT NOT NULL,
    summary TEXT
);
CREATE INDEX threads_by_time ON threads (archived, file_time, id);
CREATE INDEX threads_by_change ON threads (archived, mtime, id);
CREATE INDEX threads_by_id ON threads (id);
CREATE INDEX threads_by_folder ON threads (folder, path, size, mtime);
CREATE INDEX threads_silent ON threads (key) WHERE preview = '';
CREATE INDEX threads_unread ON threads (mtime) WHERE scanned_size <> size;
CREATE TABLE names (id TEXT PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE folders (path TEXT PRIMARY KEY, mtime INTEGER NOT NULL, size INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE passages (key INTEGER PRIMARY KEY, thread INTEGER NOT NULL, bytes INTEGER NOT NULL);
CREATE INDEX passages_by_thread ON passages (thread);
CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = \"unicode61 remove_diacritics 2 tokenchars '_'\");
";

/// An open index.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) home: PathBuf,
    pub(crate) connection: Connection,
    /// The file and its inode; `None` if the index is in memory.
    file: Option<(PathBuf, u64)>,
    /// The time when all files were last checked.
    pub(crate) files_looked_at: Option<Instant>,
}

impl Database {
    /// Opens the index of a home, rebuilds it if it is unusable, and keeps it in memory if the home cannot be written.
    pub(crate) fn open(home: &Path) -> Result<Self, IndexError> {
        let path = home.join(INDEX_FILE);
        if let Ok(database) = Self::open_file(home, &path) {
            return Ok(database);
        }
        remove(&path);
        if let Ok(database) = Self::open_file(home, &path) {
            return Ok(database);
        }
        let in_memory = || {
            let mut connection = Connection::open_in_memory()?;
            prepare(&mut connection)?;
            Ok(Self { home: home.to_owned(), connection, file: None, files_looked_at: None })
        };
        in_memory().map_err(|source| IndexError::Database { home: home.to_owned(), source })
    }

    fn open_file(home: &Path, path: &Path) -> Result<Self, Unusable> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        let file = codex_files::open_with(&mut options, Links::Followed, path).map_err(io::Error::from)?;
        let inode = file.metadata()?.ino();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY)?;
        let log = if is_on_nfs(home) { "DELETE" } else { "WAL" };
        connection.pragma_update(None, "journal_mode", log)?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        prepare(&mut connection)?;
        Ok(Self { home: home.to_owned(), connection, file: Some((path.to_owned(), inode)), files_looked_at: None })
    }

    /// Whether the file is still the one that was opened.
    pub(crate) fn is_current(&self) -> bool {
        let Some((path, inode)) = &self.file else { return true };
        path.metadata().is_ok_and(|about| about.ino() == *inode)
    }

    /// Discards the index.
    pub(crate) fn discard(self) {
        let file = self.file.clone();
        drop(self);
        if let Some((path, _)) = file {
            remove(&path);
        }
    }

    /// Makes an error that names the home.
    pub(crate) fn error(&self) -> impl Fn(rusqlite::Error) -> IndexError + 'static {
        let home = self.home.clone();
        move |source| IndexError::Database { home: home.clone(), source }
    }
}

/// Whether another process held the lock for too long.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// A file is unusable. The cause does not matter: it is rebuilt, or not used.
struct Unusable;

impl From<io::Error> for Unusable {
    fn from(_: io::Error) -> Self {
        Self
    }
}

impl From<rusqlite::Error> for Unusable {
    fn from(_: rusqlite::Error) -> Self {
        Self
    }
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Creates the tables if there are none; fails if there are others.
fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    if version(connection)? == VERSION {
        return Ok(());
    }
    // Another process may be creating them at this moment.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if version(&transaction)? == VERSION {
        return Ok(());
    }
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// Removes a database with its auxiliary files. If that fails, it cannot be used either.
fn remove(path: &Path) {
    for ending in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        drop(std::fs::remove_file(PathBuf::from(name)));
    }
}

#[cfg(target_os = "linux")]
fn is_on_nfs(home: &Path) -> bool {
    rustix::fs::statfs(home).is_ok_and(|about| u64::try_from(about.f_type) == Ok(NFS_MAGIC))
}

#[cfg(not(target_os = "linux"))]
fn is_on_nfs(_: &Path) -> bool {
    false
}
