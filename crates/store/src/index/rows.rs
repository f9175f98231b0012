//! Threads as rows of the index.

use std::path::{Path, PathBuf};

use chrono::DateTime;
use codex_log::store::{SourceKind, ThreadSummary};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::{GitInfo, SessionSource};
use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};

use crate::threads::{ARCHIVED, FileState, RolloutName, read_summary};

/// The columns that [`summary`] reads, from the tables of threads and names.
pub(crate) const COLUMNS: &str = "threads.path, threads.id, threads.archived, threads.mtime, threads.preview, threads.cwd, threads.provider, \
     threads.summary, names.name, threads.file_time, threads.size, threads.key";

/// The index of the key among the [`COLUMNS`], and their number.
pub(crate) const KEY_COLUMN: usize = 11;
pub(crate) const COLUMN_COUNT: usize = 12;

/// The parts of a summary that no query filters by, stored in one column.
#[derive(Serialize, Deserialize)]
struct Rest {
    created: i64,
    source: Option<SessionSource>,
    originator: String,
    cli_version: String,
    git: Option<GitInfo>,
    parent: Option<ThreadId>,
    forked_from: Option<ThreadId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thread_source: Option<String>,
}

/// A file as recorded in the index.
#[derive(Debug)]
pub(crate) struct FileRow {
    /// Its path relative to the home.
    pub(crate) path: String,
    pub(crate) state: FileState,
    /// Its summary; `None` if it cannot be read, or not yet.
    pub(crate) summary: Option<ThreadSummary>,
}

/// A row of a list, with the data for checking whether it is current.
pub(crate) struct Listed {
    pub(crate) key: i64,
    pub(crate) file_time: String,
    pub(crate) state: FileState,
    pub(crate) summary: ThreadSummary,
}

impl FileRow {
    /// Reads a file. `None` if it does not exist, or its name is not that of a thread.
    pub(crate) fn read(home: &Path, path: String) -> Option<Self> {
        let full = home.join(&path);
        RolloutName::parse(full.file_name()?.to_str()?)?;
        let state = FileState::of(&full.metadata().ok()?);
        let summary = read_summary(&full, state).ok();
        Some(Self { path, state, summary })
    }

    /// Inserts or replaces the row of this file.
    pub(crate) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let (folder, file) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let Some(name) = RolloutName::parse(file) else { return Ok(()) };
        let summary = self.summary.as_ref();
        let rest = summary.and_then(|summary| {
            let rest = Rest {
                created: summary.created_at.timestamp_millis(),
                source: summary.source.clone(),
                originator: summary.originator.clone(),
                cli_version: summary.cli_version.clone(),
                git: summary.git.clone(),
                parent: summary.parent,
                forked_from: summary.forked_from,
                thread_source: summary.thread_source.clone(),
            };
            serde_json::to_string(&rest).ok()
        });
        let cwd = summary.map(|summary| summary.cwd.to_string_lossy()).unwrap_or_default();
        let mut statement = connection.prepare_cached(
            "INSERT INTO threads (path, folder, id, archived, file_time, size, mtime, preview, cwd, provider, \
             source_kind, summary) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) \
             ON CONFLICT (path) DO UPDATE SET id = ?3, size = ?6, mtime = ?7, preview = ?8, cwd = ?9, provider = ?10, \
             source_kind = ?11, summary = ?12",
        )?;
        statement.execute(params![
            self.path,
            folder,
            summary.map_or(name.id, |summary| summary.id).to_string(),
            folder == ARCHIVED,
            name.time,
            self.state.size,
            self.state.mtime,
            summary.map_or("", |summary| &summary.preview),
            cwd,
            summary.and_then(|summary| summary.provider.as_deref()),
            SourceKind::of(summary.and_then(|summary| summary.source.as_ref())).word(),
            rest,
        ])?;
        Ok(())
    }
}

/// Parses a row with the [`COLUMNS`].
pub(crate) fn listed(home: &Path, row: &Row<'_>) -> rusqlite::Result<Option<Listed>> {
    let (path, id): (String, String) = (row.get(0)?, row.get(1)?);
    let state = FileState { mtime: row.get(3)?, size: row.get(10)? };
    let rest: Option<String> = row.get(7)?;
    let rest = rest.and_then(|rest| serde_json::from_str::<Rest>(&rest).ok());
    let (Some(rest), Ok(id)) = (rest, id.parse()) else { return Ok(None) };
    let cwd: String = row.get(5)?;
    let summary = ThreadSummary {
        id,
        path: home.join(path),
        preview: row.get(4)?,
        created_at: DateTime::from_timestamp_millis(rest.created).unwrap_or_default(),
        updated_at: state.written(),
        cwd: PathBuf::from(cwd),
        provider: row.get(6)?,
        source: rest.source,
        originator: rest.originator,
        cli_version: rest.cli_version,
        git: rest.git,
        name: row.get(8)?,
        archived: row.get(2)?,
        parent: rest.parent,
        forked_from: rest.forked_from,
        thread_source: rest.thread_source,
        section: None,
    };
    Ok(Some(Listed { key: row.get(KEY_COLUMN)?, file_time: row.get(9)?, state, summary }))
}

/// Removes a thread and its texts.
pub(crate) fn forget(connection: &Connection, key: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM texts WHERE rowid IN (SELECT key FROM passages WHERE thread = ?1)")?
        .execute([key])?;
    connection.prepare_cached("DELETE FROM passages WHERE thread = ?1")?.execute([key])?;
    connection.prepare_cached("DELETE FROM threads WHERE key = ?1")?.execute([key])?;
    Ok(())
}

/// Records that a file was moved, so that it need not be read again.
pub(crate) fn move_to(connection: &Connection, home: &Path, from: &Path, to: &Path) -> rusqlite::Result<()> {
    let relative = |path: &Path| path.strip_prefix(home).ok().and_then(Path::to_str).map(str::to_owned);
    let (Some(from), Some(to)) = (relative(from), relative(to)) else { return Ok(()) };
    let folder = to.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut update = connection
        .prepare_cached("UPDATE OR REPLACE threads SET path = ?2, folder = ?3, archived = ?4 WHERE path = ?1")?;
    update.execute(params![from, to, folder, folder == ARCHIVED])?;
    Ok(())
}
