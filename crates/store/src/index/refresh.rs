//! Brings the index up to date with the files, as cheaply as is sound.
//!
//! A folder that has not changed contains the same files, so only changed folders are read. The metadata of a rollout
//! is at its start and never changes, so a file is read once, and again only while it contains no user message.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::IndexError;
use super::database::{Database, is_busy};
use super::rows::{self, FileRow};
use crate::threads::{ARCHIVED, FileState, NAMES_FILE, RolloutName, SESSIONS, read_names};

/// A folder that changed this recently may change again without a new timestamp, so it is read again next time.
const SETTLED: Duration = Duration::from_secs(2);

/// The time for which searches trust the known sizes of files that other releases write. Our own writers notify the
/// index.
const FILES_PAUSE: Duration = Duration::from_secs(5);

/// The depth of day folders below the sessions folder.
const DAY_DEPTH: usize = 3;

/// Changes to write.
#[derive(Default)]
struct Changes {
    files: Vec<FileRow>,
    gone: Vec<i64>,
    states: Vec<(i64, FileState)>,
    folders: Vec<(String, FileState)>,
    gone_folders: Vec<String>,
    names: Option<Vec<(String, String)>>,
}

impl Changes {
    fn are_none(&self) -> bool {
        self.files.is_empty()
            && self.gone.is_empty()
            && self.states.is_empty()
            && self.folders.is_empty()
            && self.gone_folders.is_empty()
            && self.names.is_none()
    }

    /// Records the change of a file. One that cannot be checked for now stays as it was.
    fn compare(&mut self, key: i64, known: FileState, state: io::Result<FileState>) {
        match state {
            Ok(state) if state == known => {}
            Ok(state) => self.states.push((key, state)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.gone.push(key),
            Err(_) => {}
        }
    }

    /// Writes everything at once. While another process writes, the index is left unchanged: the next query finds the
    /// same changes.
    fn write(self, database: &mut Database) -> Result<(), IndexError> {
        if self.are_none() {
            return Ok(());
        }
        match self.try_write(&mut database.connection) {
            Err(error) if is_busy(&error) => Ok(()),
            written => written.map_err(database.error()),
        }
    }

    fn try_write(self, connection: &mut Connection) -> rusqlite::Result<()> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for file in &self.files {
            file.write(&transaction)?;
        }
        for key in self.gone {
            rows::forget(&transaction, key)?;
        }
        for (key, state) in self.states {
            let mut update = transaction.prepare_cached("UPDATE threads SET size = ?2, mtime = ?3 WHERE key = ?1")?;
            update.execute(params![key, state.size, state.mtime])?;
        }
        for (path, state) in self.folders {
            let mut note = transaction.prepare_cached("INSERT OR REPLACE INTO folders VALUES (?1, ?2, ?3)")?;
            note.execute(params![path, state.mtime, state.size])?;
        }
        for path in self.gone_folders {
            transaction.prepare_cached("DELETE FROM folders WHERE path = ?1")?.execute([path])?;
        }
        if let Some(names) = self.names {
            transaction.execute("DELETE FROM names", [])?;
            for (id, name) in names {
                transaction.prepare_cached("INSERT INTO names VALUES (?1, ?2)")?.execute([id, name])?;
            }
        }
        transaction.commit()
    }
}

/// Finds new, moved and deleted files in changed folders, and new names.
pub(crate) fn folders(database: &mut Database) -> Result<(), IndexError> {
    let known = known_folders(database).map_err(database.error())?;
    let mut changes = Changes::default();
    let mut todo: Vec<String> = known.keys().filter(|path| *path != NAMES_FILE).cloned().collect();
    todo.extend([SESSIONS, ARCHIVED].into_iter().filter(|root| !known.contains_key(*root)).map(str::to_owned));
    while let Some(folder) = todo.pop() {
        let found = look_at_folder(database, &folder, known.get(&folder).copied(), &mut changes)?;
        todo.extend(found.into_iter().filter(|folder| !known.contains_key(folder)));
    }
    look_at_names(&database.home, known.get(NAMES_FILE).copied(), &mut changes)?;
    silent_files(database, &mut changes).map_err(database.error())?;
    changes.write(database)
}

/// Rereads the names if they have changed.
pub(crate) fn names(database: &mut Database) -> Result<(), IndexError> {
    let known = known_folders(database).map_err(database.error())?;
    let mut changes = Changes::default();
    look_at_names(&database.home, known.get(NAMES_FILE).copied(), &mut changes)?;
    changes.write(database)
}

fn known_folders(database: &Database) -> rusqlite::Result<HashMap<String, FileState>> {
    let mut statement = database.connection.prepare_cached("SELECT path, mtime, size FROM folders")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, FileState { mtime: row.get(1)?, size: row.get(2)? })))?;
    rows.collect()
}

/// Reads a folder if it has changed, and returns its subfolders.
fn look_at_folder(
    database: &Database,
    folder: &str,
    known: Option<FileState>,
    changes: &mut Changes,
) -> Result<Vec<String>, IndexError> {
    let path = database.home.join(folder);
    let about = match path.metadata() {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let files = files_in(database, folder).map_err(database.error())?;
            changes.gone.extend(files.into_values());
            changes.gone_folders.extend(known.map(|_| folder.to_owned()));
            return Ok(Vec::new());
        }
        Err(error) => return unreadable(folder, path, error),
    };
    let state = FileState::of(&about);
    if known == Some(state) {
        return Ok(Vec::new());
    }
    let is_day = folder == ARCHIVED || folder.split('/').count() == DAY_DEPTH + 1;
    let entries = match std::fs::read_dir(&path) {
        Ok(entries) => entries,
        Err(error) => return unreadable(folder, path, error),
    };
    let mut found = Vec::new();
    let mut gone = if is_day { files_in(database, folder).map_err(database.error())? } else { HashMap::new() };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return unreadable(folder, path, error),
        };
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !is_day && name.bytes().all(|byte| byte.is_ascii_digit()) {
            found.push(format!("{folder}/{name}"));
        } else if is_day && RolloutName::parse(&name).is_some() {
            let path = format!("{folder}/{name}");
            if gone.remove(&path).is_none() {
                changes.files.extend(FileRow::read(&database.home, path));
            }
        }
    }
    changes.gone.extend(gone.into_values());
    let settled = if is_settled(state) { state } else { FileState { mtime: 0, ..state } };
    if known != Some(settled) {
        changes.folders.push((folder.to_owned(), settled));
    }
    Ok(found)
}

/// An unreadable day folder hides its threads for now; an unreadable sessions folder is an error.
fn unreadable(folder: &str, path: PathBuf, source: io::Error) -> Result<Vec<String>, IndexError> {
    if folder.contains('/') { Ok(Vec::new()) } else { Err(IndexError::Read { path, source }) }
}

/// Whether a change is old enough for the next one to have another timestamp.
fn is_settled(state: FileState) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let limit = i64::try_from(now.saturating_sub(SETTLED).as_nanos()).unwrap_or(i64::MAX);
    state.mtime < limit
}

/// The indexed files of a folder, with their keys.
fn files_in(database: &Database, folder: &str) -> rusqlite::Result<HashMap<String, i64>> {
    let mut statement = database.connection.prepare_cached("SELECT path, key FROM threads WHERE folder = ?1")?;
    let rows = statement.query_map([folder], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

fn look_at_names(home: &Path, known: Option<FileState>, changes: &mut Changes) -> Result<(), IndexError> {
    let path = home.join(NAMES_FILE);
    let state = path.metadata().ok().map(|about| FileState::of(&about));
    if state == known {
        return Ok(());
    }
    let names = read_names(&path).map_err(|source| IndexError::Read { path, source })?;
    changes.names = Some(names.into_iter().map(|(id, name)| (id.to_string(), name)).collect());
    match state {
        Some(state) => changes.folders.push((NAMES_FILE.to_owned(), state)),
        None => changes.gone_folders.push(NAMES_FILE.to_owned()),
    }
    Ok(())
}

/// Rereads files without a user message, if they have grown.
fn silent_files(database: &Database, changes: &mut Changes) -> rusqlite::Result<()> {
    let gone: HashSet<i64> = changes.gone.iter().copied().collect();
    let mut statement =
        database.connection.prepare_cached("SELECT key, path, size, mtime FROM threads WHERE preview = ''")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (key, path): (i64, String) = (row.get(0)?, row.get(1)?);
        let known = FileState { size: row.get(2)?, mtime: row.get(3)? };
        let state = database.home.join(&path).metadata().ok().map(|about| FileState::of(&about));
        if state.is_some_and(|state| state != known) && !gone.contains(&key) {
            changes.files.extend(FileRow::read(&database.home, path));
        }
    }
    Ok(())
}

/// Records which files were written since they were last checked.
pub(crate) fn files(database: &mut Database) -> Result<(), IndexError> {
    let changes = changed_files(database).map_err(database.error())?;
    database.files_looked_at = Some(Instant::now());
    changes.write(database)
}

/// Does the same, unless it was done a moment ago. Checking ten thousand files takes longer than searching.
pub(crate) fn files_now_and_then(database: &mut Database) -> Result<(), IndexError> {
    let lately = database.files_looked_at.is_some_and(|at| at.elapsed() < FILES_PAUSE);
    if lately { Ok(()) } else { files(database) }
}

fn changed_files(database: &Database) -> rusqlite::Result<Changes> {
    let mut changes = Changes::default();
    let mut statement =
        database.connection.prepare_cached("SELECT key, path, size, mtime FROM threads ORDER BY folder, path")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let path = database.home.join(row.get_ref(1)?.as_str()?);
        let known = FileState { size: row.get(2)?, mtime: row.get(3)? };
        changes.compare(row.get(0)?, known, path.metadata().map(|about| FileState::of(&about)));
    }
    Ok(changes)
}

/// Records changes of the files that a list is about to show, and returns whether there are any.
pub(crate) fn shown(database: &mut Database, files: &[(i64, &Path, FileState)]) -> Result<bool, IndexError> {
    let mut changes = Changes::default();
    for (key, path, known) in files {
        changes.compare(*key, *known, path.metadata().map(|about| FileState::of(&about)));
    }
    let is_stale = !changes.are_none();
    changes.write(database)?;
    Ok(is_stale)
}

/// Updates one file, which may be new, changed, or gone.
pub(crate) fn file(database: &mut Database, path: &Path) -> Result<(), IndexError> {
    let Ok(relative) = path.strip_prefix(&database.home) else { return Ok(()) };
    let Some(relative) = relative.to_str().map(str::to_owned) else { return Ok(()) };
    let mut changes = Changes::default();
    if let Some(row) = FileRow::read(&database.home, relative.clone()) {
        changes.files.push(row);
    } else {
        let key = known_file(&database.connection, &relative);
        changes.gone.extend(key.map_err(database.error())?);
    }
    changes.write(database)
}

fn known_file(connection: &Connection, path: &str) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT key FROM threads WHERE path = ?1")?;
    statement.query_row([path], |row| row.get(0)).optional()
}
