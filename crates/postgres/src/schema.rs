//! The tables of the store, and their migrations.
//!
//! A store knows where it was made. Tables that are found elsewhere were restored from a backup, so whoever finds them first
//! gives them a new incarnation; servers that knew the old one stop writing.
//!
//! Invariant: a migration is one transaction that starts from the version it expects, so two of them at once leave the
//! tables as one would. The advisory lock only saves the second one the attempt.

use std::fmt::Write as _;

use tokio_postgres::error::SqlState;
use uuid::Uuid;

use crate::connection::{Connection, column};
use crate::database::Pool;
use crate::errors::{Failure, PostgresError};

/// The version of the tables that this release reads and writes.
pub(crate) const VERSION: i32 = 1;

/// The key of the advisory lock of migrations.
const LOCK: i64 = 0x636f_6465_7873_746f;

/// Creates everything, from nothing to version 1. A line has the number of the byte after it, so that numbers are
/// positions of the log. Payloads are bytes: a request that is sent again has to begin with the same ones.
const FIRST: &str = r#"
CREATE TABLE @.store (
    only_row boolean PRIMARY KEY CHECK (only_row),
    version integer NOT NULL,
    incarnation uuid NOT NULL,
    made_in text NOT NULL
);
CREATE TABLE @.servers (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    address text,
    incarnation uuid NOT NULL,
    expires timestamptz NOT NULL
);
CREATE TABLE @.threads (
    id uuid PRIMARY KEY,
    owner uuid,
    server text,
    epoch bigint NOT NULL,
    end_at bigint NOT NULL,
    archived boolean NOT NULL DEFAULT false,
    deleted boolean NOT NULL DEFAULT false,
    began text COLLATE "C" NOT NULL,
    updated bigint NOT NULL,
    scanned bigint NOT NULL DEFAULT 0,
    preview text NOT NULL DEFAULT '',
    cwd text NOT NULL DEFAULT '',
    provider text,
    source_kind text NOT NULL DEFAULT '',
    summary text,
    name text
);
CREATE INDEX threads_by_time ON @.threads (archived, began, id);
CREATE INDEX threads_by_change ON @.threads (archived, updated, id);
CREATE INDEX threads_by_owner ON @.threads (owner) WHERE owner IS NOT NULL;
CREATE INDEX threads_unscanned ON @.threads (updated) WHERE scanned < end_at;
CREATE INDEX threads_deleted ON @.threads (id) WHERE deleted;
CREATE TABLE @.lines (
    thread uuid NOT NULL,
    number bigint NOT NULL,
    epoch bigint NOT NULL,
    mark smallint NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (thread, number)
) %PARTITIONED;
CREATE INDEX lines_marked ON @.lines (thread, number) WHERE mark > 0;
CREATE TABLE @.texts (
    thread uuid NOT NULL,
    number bigint NOT NULL,
    text text NOT NULL,
    words tsvector NOT NULL,
    PRIMARY KEY (thread, number)
);
CREATE INDEX texts_words ON @.texts USING gin (words);
CREATE TABLE @.metadata (
    kind text NOT NULL,
    thread uuid NOT NULL,
    version bigint NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (kind, thread)
);
CREATE TABLE @.changes (
    id uuid PRIMARY KEY,
    thread uuid NOT NULL,
    kind text NOT NULL,
    name text,
    server uuid,
    at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX changes_by_time ON @.changes (at);
CREATE TABLE @.prompts (
    id uuid PRIMARY KEY,
    thread uuid NOT NULL,
    at bigint NOT NULL,
    text text NOT NULL
);
"#;

/// The place of the tables: the database, the table itself, and the cluster. A restore changes at least one of them.
macro_rules! here {
    () => {
        "(SELECT oid::text FROM pg_database WHERE datname = current_database()) || '.' || '@.store'::regclass::oid::text"
    };
    (cluster) => {
        concat!(here!(), " || '.' || (SELECT system_identifier::text FROM pg_control_system())")
    };
}

const FIND: &str = concat!("SELECT version, incarnation, made_in, ", here!(cluster), " AS here FROM @.store");

/// The same for databases that do not have all functions of PostgreSQL.
const FIND_PLAIN: &str = concat!("SELECT version, incarnation, made_in, ", here!(), " AS here FROM @.store");

/// Gives the store a new incarnation, in which nobody has a lease or owns a thread. Only one of several that do so at once
/// finds the old place.
const RESTORED: &str = "WITH renewed AS (
    UPDATE @.store SET incarnation = $1, made_in = $2 WHERE made_in = $3 RETURNING only_row),
    gone AS (DELETE FROM @.servers WHERE EXISTS (SELECT 1 FROM renewed))
    UPDATE @.threads SET epoch = epoch + 1, owner = NULL WHERE owner IS NOT NULL AND EXISTS (SELECT 1 FROM renewed)";

/// The number of partitions of the lines. A database that is not PostgreSQL divides its tables itself.
const PARTITIONS: u32 = 16;

/// The state of the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tables {
    pub(crate) version: i32,
    pub(crate) incarnation: Uuid,
    /// The place where they were made, and the one where they are.
    places: (String, String),
}

impl Tables {
    /// Whether they were restored from a backup. A place that names no cluster is compared by the rest.
    fn were_restored(&self) -> bool {
        let (made_in, here) = &self.places;
        made_in.split('.').zip(here.split('.')).any(|(made_in, here)| made_in != here)
    }
}

/// Creates or migrates the tables.
///
/// # Errors
/// When the database cannot be used, or a newer release has migrated the tables.
pub(crate) async fn migrate(pool: &Pool, uses_locks: bool) -> Result<Tables, PostgresError> {
    pool.run(async |connection| {
        if found(pool, connection).await?.is_none() {
            create(connection, pool.is_plain, uses_locks).await?;
        }
        open(pool, connection).await
    })
    .await
}

/// The state of the tables, which have to exist. Those that were restored from a backup get a new incarnation.
pub(crate) async fn open(pool: &Pool, connection: &Connection) -> Result<Tables, Failure> {
    let missing = || PostgresError::NoTables { place: pool.place.clone() };
    let tables = check(pool, found(pool, connection).await?.ok_or_else(missing)?)?;
    if !tables.were_restored() {
        return Ok(tables);
    }
    declare_restored(connection, &tables).await?;
    Ok(check(pool, found(pool, connection).await?.ok_or_else(missing)?)?)
}

/// Gives restored tables a new incarnation.
pub(crate) async fn declare_restored(connection: &Connection, tables: &Tables) -> Result<(), Failure> {
    let (made_in, here) = &tables.places;
    connection.execute(RESTORED, &[&codex_wire::ids::fresh_uuid(), here, made_in]).await?;
    Ok(())
}

fn check(pool: &Pool, tables: Tables) -> Result<Tables, PostgresError> {
    if tables.version > VERSION {
        return Err(PostgresError::Newer { place: pool.place.clone(), found: tables.version, known: VERSION });
    }
    Ok(tables)
}

async fn found(pool: &Pool, connection: &Connection) -> Result<Option<Tables>, Failure> {
    let exists = connection.row("SELECT to_regclass('@.store') IS NOT NULL AS exists", &[]).await?;
    if !exists.is_some_and(|row| row.get("exists")) {
        return Ok(None);
    }
    let row = connection.row(if pool.is_plain { FIND_PLAIN } else { FIND }, &[]).await?;
    let Some(row) = row else { return Ok(None) };
    let version = column(&row, "version", &pool.place)?;
    let places = (column(&row, "made_in", &pool.place)?, column(&row, "here", &pool.place)?);
    Ok(Some(Tables { version, incarnation: column(&row, "incarnation", &pool.place)?, places }))
}

/// Creates the tables in one transaction. If another process does so at the same time, one of them fails and finds the
/// tables of the other at its next attempt.
async fn create(connection: &Connection, is_plain: bool, uses_locks: bool) -> Result<(), Failure> {
    // It ends with the transaction, whoever has the session then.
    let lock = if uses_locks { format!("SELECT pg_advisory_xact_lock({LOCK});") } else { String::new() };
    let (partitioned, count) = if is_plain { ("", 0) } else { ("PARTITION BY HASH (thread)", PARTITIONS) };
    let first = FIRST.replace("%PARTITIONED", partitioned);
    let mut partitions = String::new();
    for number in 0..count {
        let values = format!("FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {number})");
        // Writing to a text cannot fail.
        let _ = writeln!(partitions, "CREATE TABLE @.lines_{number} PARTITION OF @.lines {values};");
    }
    let incarnation = codex_wire::ids::fresh_uuid();
    let here = if is_plain { here!() } else { here!(cluster) };
    let row = format!("INSERT INTO @.store VALUES (true, {VERSION}, '{incarnation}', {here});");
    let schema = format!("CREATE SCHEMA IF NOT EXISTS {};", connection.schema());
    let made = connection.batch(&format!("BEGIN;{lock}{schema}{first}{partitions}{row}COMMIT;")).await;
    if let Err(Failure::Refused(problem)) = made {
        // The transaction is over in any case.
        drop(connection.batch("ROLLBACK").await);
        let is_race = [SqlState::DUPLICATE_TABLE, SqlState::UNIQUE_VIOLATION, SqlState::DUPLICATE_SCHEMA];
        let is_race = is_race.iter().any(|code| problem.contains(code.code()));
        return Err(if is_race { Failure::Broken(problem) } else { Failure::Refused(problem) });
    }
    made
}
