//! Opens, archives, deletes and renames threads.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use codex_log::store::{Entry, LineSource, ReadFrom};
use codex_store::SummaryReader;
use codex_wire::ids::ThreadId;
use uuid::Uuid;

use crate::append::Holding;
use crate::changes::{self, recording};
use crate::connection::{Connection, column};
use crate::database::Pool;
use crate::errors::{Failure, PostgresError};
use crate::lease::Revocation;
use crate::reader::Reader;
use crate::store::Parts;
use crate::summary_row::without_nul;
use crate::writer::Writer;

/// A thread that nobody writes: it has no owner, or one whose lease has expired, or this server, which knows itself
/// whether it has a writer. `$2` is the lease of this server.
macro_rules! is_free {
    () => {
        "(owner IS NULL OR owner = $2 OR NOT EXISTS (SELECT 1 FROM @.servers \
         WHERE servers.id = threads.owner AND servers.expires > now()))"
    };
}

const OPEN: &str = concat!(
    "UPDATE @.threads SET owner = $2, epoch = epoch + 1, server = (SELECT name FROM @.servers WHERE id = $2) \
     WHERE id = $1 AND NOT deleted AND ",
    is_free!(),
    " RETURNING epoch, end_at, began, preview"
);

const OWNER: &str = "SELECT servers.name AS server, threads.owner FROM @.threads LEFT JOIN @.servers \
     ON servers.id = threads.owner AND servers.expires > now() WHERE threads.id = $1 AND NOT threads.deleted";

const LAST_SERVER: &str = "SELECT server FROM @.threads WHERE id = $1 AND NOT deleted";

const LAST_LINE: &str = "SELECT substring(payload FOR 512) AS head FROM @.lines WHERE thread = $1 AND number = $2";

const UNUSED: &str = concat!("SELECT 1 FROM @.threads WHERE id = $1 AND NOT deleted AND ", is_free!());

macro_rules! archive {
    ($archived:literal) => {
        concat!(
            "UPDATE @.threads SET archived = ",
            $archived,
            " WHERE id = $1 AND NOT deleted AND (archived = ",
            $archived,
            " OR ",
            is_free!(),
            ")"
        )
    };
}

const ARCHIVE: &str = recording!("'archived'", "NULL", archive!("true"));
const UNARCHIVE: &str = recording!("'unarchived'", "NULL", archive!("false"));

/// A deleted thread is gone for everybody before its lines are.
const DELETE: &str = recording!(
    "'deleted'",
    "NULL",
    concat!(
        "UPDATE @.threads SET deleted = true, owner = NULL, epoch = epoch + 1 WHERE id = $1 AND NOT deleted AND ",
        is_free!()
    )
);

/// The lines of a deleted thread are removed in small transactions, which hold no lock for long.
const DELETE_LINES: &str = "DELETE FROM @.lines WHERE thread = $1 AND number IN \
     (SELECT number FROM @.lines WHERE thread = $1 ORDER BY number LIMIT 5000)";

const DELETE_TEXTS: &str = "DELETE FROM @.texts WHERE thread = $1";
const DELETE_ROW: &str = "DELETE FROM @.threads WHERE id = $1 AND deleted";

const RENAME: &str = recording!("'name'", "$2", "UPDATE @.threads SET name = $2::text WHERE id = $1 AND NOT deleted");

/// The number of attempts to open a thread when the lease of this server changes meanwhile.
const ATTEMPTS: usize = 3;

/// The number of lines that may have to be read for a summary.
const HEAD_LINES: usize = 100;

/// The time of a thread that starts now, as in file names.
pub(crate) fn now_as_began() -> String {
    DateTime::<Utc>::from(codex_wire::time::now()).format("%Y-%m-%dT%H-%M-%S").to_string()
}

/// Prepares a new thread. Its row is made by its first commit.
pub(crate) fn create(parts: &Parts, thread: ThreadId, began: String) -> Result<Writer, PostgresError> {
    let (owner, revocation) = enter(parts, thread)?;
    let holding = Holding { thread, owner, epoch: 1, end: 0, exists: false, is_uncertain: false, began };
    Ok(Writer::new(parts.clone(), holding, revocation, Some(SummaryReader::default()), None))
}

/// Makes this server the writer of a thread that nobody writes.
pub(crate) fn open(parts: &Parts, thread: ThreadId) -> Result<Writer, PostgresError> {
    let (owner, revocation) = enter(parts, thread)?;
    let opened = parts.database.wait(move |pool| async move {
        pool.run(async |connection| take(&pool, connection, thread, owner).await).await
    });
    let taken = opened.inspect_err(|_| parts.lease.leave(thread, &revocation))?;
    let Taken { epoch, end, began, has_preview, last_line } = taken;
    let holding = Holding { thread, owner, epoch, end, exists: true, is_uncertain: false, began };
    let summary = if has_preview { None } else { head_reader(parts, thread).ok().flatten() };
    Ok(Writer::new(parts.clone(), holding, revocation, summary, last_line.as_deref()))
}

/// The name of the server that had a thread open last.
pub(crate) fn last_server(parts: &Parts, thread: ThreadId) -> Result<Option<String>, PostgresError> {
    parts.database.wait(move |pool| async move {
        let row = pool.run(async |connection| connection.row(LAST_SERVER, &[&Uuid::from(thread)]).await).await?;
        row.map_or(Ok(None), |row| column(&row, "server", &pool.place))
    })
}

/// The result of taking a thread.
struct Taken {
    epoch: i64,
    end: i64,
    began: String,
    has_preview: bool,
    last_line: Option<Vec<u8>>,
}

async fn take(pool: &Pool, connection: &Connection, thread: ThreadId, owner: Uuid) -> Result<Taken, Failure> {
    let id = Uuid::from(thread);
    let Some(row) = connection.row(OPEN, &[&id, &owner]).await? else {
        return Err(Failure::Own(why_not(pool, connection, thread).await?));
    };
    let end: i64 = column(&row, "end_at", &pool.place)?;
    let last = connection.row(LAST_LINE, &[&id, &end]).await?;
    let preview: String = column(&row, "preview", &pool.place)?;
    Ok(Taken {
        epoch: column(&row, "epoch", &pool.place)?,
        end,
        began: column(&row, "began", &pool.place)?,
        has_preview: !preview.is_empty(),
        last_line: last.map(|row| column(&row, "head", &pool.place)).transpose()?,
    })
}

/// The reason why a thread cannot be written.
async fn why_not(pool: &Pool, connection: &Connection, thread: ThreadId) -> Result<PostgresError, Failure> {
    let Some(row) = connection.row(OWNER, &[&Uuid::from(thread)]).await? else {
        return Ok(PostgresError::Missing { thread });
    };
    let server: Option<String> = column(&row, "server", &pool.place)?;
    Ok(PostgresError::Owned { thread, server: server.unwrap_or_else(|| "that has just ended".to_owned()) })
}

/// Records that this server writes a thread.
fn enter(parts: &Parts, thread: ThreadId) -> Result<(Uuid, Arc<Revocation>), PostgresError> {
    for _ in 0..ATTEMPTS {
        let lease = parts.lease.clone();
        let owner = parts.database.wait(move |pool| async move { lease.acquire(&pool).await })?;
        if let Some(revocation) = parts.lease.enter(thread, owner) {
            return Ok((owner, revocation));
        }
        if parts.lease.writes(thread) {
            return Err(PostgresError::Owned { thread, server: "that you are using".to_owned() });
        }
    }
    Err(PostgresError::LeaseLost { place: parts.database.place().to_owned() })
}

/// A reader of the summary that has seen the lines so far; `None` if later ones cannot change it.
fn head_reader(parts: &Parts, thread: ThreadId) -> Result<Option<SummaryReader>, codex_log::store::StoreError> {
    let mut lines = Reader::open(parts, thread, ReadFrom::Start)?;
    let mut summary = SummaryReader::default();
    for _ in 0..HEAD_LINES {
        match lines.next_entry()? {
            Some(Entry::Line(line)) if summary.line(&line) => return Ok(None),
            Some(_) => {}
            None => return Ok(Some(summary)),
        }
    }
    Ok(None)
}

/// Fails if this server writes a thread.
fn nobody_here_writes(parts: &Parts, thread: ThreadId) -> Result<Option<Uuid>, PostgresError> {
    if parts.lease.writes(thread) {
        return Err(PostgresError::Owned { thread, server: "that you are using".to_owned() });
    }
    Ok(parts.lease.owner())
}

/// Fails if a thread is being written.
pub(crate) fn check_unused(parts: &Parts, thread: ThreadId) -> Result<(), PostgresError> {
    let owner = nobody_here_writes(parts, thread)?;
    parts.database.wait(move |pool| async move {
        pool.run(async |connection| {
            let found = connection.row(UNUSED, &[&Uuid::from(thread), &owner]).await?;
            if found.is_none() { Err(Failure::Own(why_not(&pool, connection, thread).await?)) } else { Ok(()) }
        })
        .await
    })
}

/// Archives or restores a thread.
pub(crate) fn archive(parts: &Parts, thread: ThreadId, archived: bool) -> Result<(), PostgresError> {
    let (owner, change) = (nobody_here_writes(parts, thread)?, codex_wire::ids::fresh_uuid());
    let statement = if archived { ARCHIVE } else { UNARCHIVE };
    parts.database.wait(move |pool| async move {
        pool.run(async |connection| {
            let changed = connection.execute(statement, &[&Uuid::from(thread), &owner, &change, &owner]).await?;
            if changed == 0 { Err(Failure::Own(why_not(&pool, connection, thread).await?)) } else { Ok(()) }
        })
        .await
    })?;
    changes::notify(&parts.database);
    Ok(())
}

/// Deletes a thread with its lines and texts.
pub(crate) fn delete(parts: &Parts, thread: ThreadId) -> Result<(), PostgresError> {
    let owner = nobody_here_writes(parts, thread)?;
    let (was_there, change) = (std::cell::Cell::new(false), codex_wire::ids::fresh_uuid());
    parts.database.wait(move |pool| async move {
        pool.run(async |connection| {
            if !was_there.get() {
                let row = connection.row(OWNER, &[&Uuid::from(thread)]).await?;
                was_there.set(row.is_some());
            }
            if connection.execute(DELETE, &[&Uuid::from(thread), &owner, &change, &owner]).await? > 0 {
                return Ok(());
            }
            match why_not(&pool, connection, thread).await? {
                // An earlier attempt has succeeded.
                PostgresError::Missing { .. } if was_there.get() => Ok(()),
                error => Err(Failure::Own(error)),
            }
        })
        .await?;
        remove_rows(&pool, thread).await
    })?;
    changes::notify(&parts.database);
    Ok(())
}

/// Removes what is left of a deleted thread.
pub(crate) async fn remove_rows(pool: &Pool, thread: ThreadId) -> Result<(), PostgresError> {
    let id = Uuid::from(thread);
    while pool.run(async |connection| connection.execute(DELETE_LINES, &[&id]).await).await? > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    pool.run(async |connection| {
        connection.execute(DELETE_TEXTS, &[&id]).await?;
        connection.execute(DELETE_ROW, &[&id]).await
    })
    .await?;
    Ok(())
}

/// Sets the name of a thread. An empty name removes it.
pub(crate) fn rename(parts: &Parts, thread: ThreadId, name: &str) -> Result<(), PostgresError> {
    let name = Some(without_nul(name)).filter(|name| !name.is_empty());
    let (owner, change) = (parts.lease.owner(), codex_wire::ids::fresh_uuid());
    let changed = parts.database.wait(move |pool| async move {
        let id = Uuid::from(thread);
        pool.run(async |connection| connection.execute(RENAME, &[&id, &name, &change, &owner]).await).await
    })?;
    if changed == 0 {
        return Err(PostgresError::Missing { thread });
    }
    changes::notify(&parts.database);
    Ok(())
}
