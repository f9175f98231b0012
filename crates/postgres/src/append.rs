//! Appends to a thread: one statement that checks the owner, the epoch and the end of the log.
//!
//! Invariant: after an answer was lost, the end of the log shows whether the lines are there; they are never sent twice
//! to the same place. After a failed append whose outcome is unknown, the next one first raises the epoch, so that no
//! delayed statement can still succeed, and removes whatever it has left.

use std::rc::Rc;
use std::sync::Arc;

use codex_log::store::ThreadSummary;
use codex_wire::ids::ThreadId;
use tokio::time::Instant;
use uuid::Uuid;

use crate::connection::{Connection, column};
use crate::database::Pool;
use crate::errors::{Failure, PostgresError};
use crate::lease::Revocation;
use crate::summary_row::SummaryRow;

/// The first lines of a thread, with its row.
const CREATE: &str = "WITH made AS (
    INSERT INTO @.threads (id, owner, server, epoch, end_at, began, updated, preview, cwd, provider, source_kind, summary)
    SELECT $1, $2, (SELECT name FROM @.servers WHERE id = $2), $13::bigint, $3, $4, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000, $5, $6, $7, $8, $9
    WHERE EXISTS (SELECT 1 FROM @.servers WHERE id = $2 AND expires > now())
    ON CONFLICT (id) DO NOTHING RETURNING id)
    INSERT INTO @.lines (thread, number, epoch, mark, payload)
    SELECT made.id, line.number, $13::bigint, line.mark, line.payload
    FROM made, unnest($10::bigint[], $11::smallint[], $12::bytea[]) AS line (number, mark, payload)";

/// Further lines.
const APPEND: &str = "WITH written AS (
    UPDATE @.threads SET end_at = $5,
        updated = greatest(updated + 1000, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000)
    WHERE id = $1 AND owner = $2 AND epoch = $3 AND end_at = $4 RETURNING id)
    INSERT INTO @.lines (thread, number, epoch, mark, payload)
    SELECT written.id, line.number, $3, line.mark, line.payload
    FROM written, unnest($6::bigint[], $7::smallint[], $8::bytea[]) AS line (number, mark, payload)";

/// Further lines that change what lists show.
const APPEND_HEAD: &str = "WITH written AS (
    UPDATE @.threads SET end_at = $5, preview = $9, cwd = $10, provider = $11, source_kind = $12, summary = $13,
        updated = greatest(updated + 1000, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000)
    WHERE id = $1 AND owner = $2 AND epoch = $3 AND end_at = $4 RETURNING id)
    INSERT INTO @.lines (thread, number, epoch, mark, payload)
    SELECT written.id, line.number, $3, line.mark, line.payload
    FROM written, unnest($6::bigint[], $7::smallint[], $8::bytea[]) AS line (number, mark, payload)";

const LOOK_UP: &str = "SELECT owner, epoch, end_at FROM @.threads WHERE id = $1 AND NOT deleted";

/// Raises the epoch of a thread of this server, and removes lines that nobody was told of.
const RECOVER: &str = "WITH cut AS (
    UPDATE @.threads SET epoch = $3::bigint + 1, end_at = $4, scanned = least(scanned, $4)
    WHERE id = $1 AND owner = $2 AND epoch <= $3 AND end_at >= $4 RETURNING id, epoch),
    gone AS (DELETE FROM @.lines USING cut WHERE thread = cut.id AND number > $4)
    SELECT epoch FROM cut";

/// The writer of a thread, as the database knows it.
#[derive(Debug, Clone)]
pub(crate) struct Holding {
    pub(crate) thread: ThreadId,
    pub(crate) owner: Uuid,
    pub(crate) epoch: i64,
    /// The end of the log.
    pub(crate) end: i64,
    /// Whether the thread has a row.
    pub(crate) exists: bool,
    /// Whether an append has failed whose outcome is unknown.
    pub(crate) is_uncertain: bool,
    /// The time of its start, as in file names.
    pub(crate) began: String,
}

/// Lines that are appended together.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) numbers: Vec<i64>,
    pub(crate) marks: Vec<i16>,
    pub(crate) payloads: Vec<Vec<u8>>,
    /// The summary, if they change it.
    pub(crate) summary: Option<ThreadSummary>,
}

/// The outcome of a look at the row of a thread.
enum Found {
    /// The lines are there.
    Written,
    /// They are not there, and may be sent.
    NotWritten,
    /// The log is longer than expected: an earlier append has succeeded after all.
    Longer,
}

impl Holding {
    /// Appends lines. On success, the holding has the new end.
    ///
    /// # Errors
    /// When the thread belongs to another server, or the database cannot be reached in time. Nothing is in the log then,
    /// or will be removed by the next append.
    pub(crate) async fn append(
        &mut self,
        pool: &Rc<Pool>,
        lines: &Lines,
        revocation: &Arc<Revocation>,
        deadline: Instant,
    ) -> Result<(), PostgresError> {
        let done = tokio::select! {
            biased;
            done = self.append_until(pool, lines, revocation, deadline) => done,
            reason = revocation.revoked() => Err(PostgresError::Revoked { thread: self.thread, reason }),
        };
        match &done {
            Ok(()) => {}
            Err(PostgresError::Fenced { .. }) => {
                revocation.revoke(&PostgresError::Fenced { thread: self.thread }.to_string());
            }
            Err(_) => self.is_uncertain = true,
        }
        done
    }

    async fn append_until(
        &mut self,
        pool: &Rc<Pool>,
        lines: &Lines,
        revocation: &Arc<Revocation>,
        deadline: Instant,
    ) -> Result<(), PostgresError> {
        let new_end = lines.numbers.last().copied().unwrap_or(self.end);
        if self.is_uncertain {
            self.recover(pool, deadline).await?;
        }
        let is_retry = std::cell::Cell::new(false);
        let this = &*self;
        let longer = pool.run_until(deadline, async |connection| {
            // The connection may be a new one, which has found that the database was restored.
            if let Some(reason) = revocation.reason() {
                return Err(Failure::Own(PostgresError::Revoked { thread: this.thread, reason }));
            }
            // An earlier attempt may have succeeded.
            if is_retry.replace(true) {
                match this.look_up(pool, connection, new_end).await? {
                    Found::Written => return Ok(false),
                    Found::NotWritten => {}
                    Found::Longer => return Ok(true),
                }
            }
            if this.send(connection, lines, new_end).await? > 0 {
                return Ok(false);
            }
            match this.look_up(pool, connection, new_end).await? {
                Found::Written => Ok(false),
                Found::NotWritten => Err(Failure::Broken("the thread could not be written".to_owned())),
                Found::Longer => Ok(true),
            }
        });
        if longer.await? {
            // Only an append of this writer that was given up can have made it longer.
            self.is_uncertain = true;
            return Box::pin(self.append_until(pool, lines, revocation, deadline)).await;
        }
        (self.end, self.exists) = (new_end, true);
        Ok(())
    }

    async fn send(&self, connection: &Connection, lines: &Lines, new_end: i64) -> Result<u64, Failure> {
        let id = Uuid::from(self.thread);
        let Lines { numbers, marks, payloads, summary } = lines;
        let head = summary.as_ref().map(SummaryRow::of);
        if !self.exists {
            let SummaryRow { preview, cwd, provider, source_kind, rest } = head.unwrap_or_default();
            return connection
                .execute(
                    CREATE,
                    &[
                        &id,
                        &self.owner,
                        &new_end,
                        &self.began,
                        &preview,
                        &cwd,
                        &provider,
                        &source_kind,
                        &rest,
                        numbers,
                        marks,
                        payloads,
                        &self.epoch,
                    ],
                )
                .await;
        }
        let Some(SummaryRow { preview, cwd, provider, source_kind, rest }) = head else {
            let values: crate::connection::Values<'_> =
                &[&id, &self.owner, &self.epoch, &self.end, &new_end, numbers, marks, payloads];
            return connection.execute(APPEND, values).await;
        };
        connection
            .execute(
                APPEND_HEAD,
                &[
                    &id,
                    &self.owner,
                    &self.epoch,
                    &self.end,
                    &new_end,
                    numbers,
                    marks,
                    payloads,
                    &preview,
                    &cwd,
                    &provider,
                    &source_kind,
                    &rest,
                ],
            )
            .await
    }

    /// Finds out whether an append has succeeded.
    async fn look_up(&self, pool: &Pool, connection: &Connection, new_end: i64) -> Result<Found, Failure> {
        let fenced = || Failure::Own(PostgresError::Fenced { thread: self.thread });
        let Some(row) = connection.row(LOOK_UP, &[&Uuid::from(self.thread)]).await? else {
            return if self.exists { Err(fenced()) } else { Ok(Found::NotWritten) };
        };
        let owner: Option<Uuid> = column(&row, "owner", &pool.place)?;
        let epoch: i64 = column(&row, "epoch", &pool.place)?;
        let end: i64 = column(&row, "end_at", &pool.place)?;
        // A beginning that was given up has made the row after all.
        let is_earlier = !self.exists && epoch < self.epoch;
        if owner != Some(self.owner) || (epoch != self.epoch && !is_earlier) {
            return Err(fenced());
        }
        if is_earlier {
            return Ok(Found::Longer);
        }
        Ok(match end {
            end if end == new_end => Found::Written,
            end if end == self.end && self.exists => Found::NotWritten,
            _ => Found::Longer,
        })
    }

    /// Makes sure that nothing is left of an append whose outcome is unknown.
    async fn recover(&mut self, pool: &Rc<Pool>, deadline: Instant) -> Result<(), PostgresError> {
        let id = Uuid::from(self.thread);
        let fenced = || Failure::Own(PostgresError::Fenced { thread: self.thread });
        let this = &*self;
        let found = pool.run_until(deadline, async |connection| {
            let cut = connection.row(RECOVER, &[&id, &this.owner, &this.epoch, &this.end]).await?;
            if let Some(row) = cut {
                return Ok(Some(column(&row, "epoch", &pool.place)?));
            }
            let Some(row) = connection.row(LOOK_UP, &[&id]).await? else {
                return if this.exists { Err(fenced()) } else { Ok(None) };
            };
            let owner: Option<Uuid> = column(&row, "owner", &pool.place)?;
            let epoch: i64 = column(&row, "epoch", &pool.place)?;
            // An earlier attempt of this may have succeeded.
            let is_done = owner == Some(this.owner) && epoch == this.epoch + 1;
            if is_done { Ok(Some(epoch)) } else { Err(fenced()) }
        });
        match found.await? {
            Some(epoch) => (self.epoch, self.exists) = (epoch, true),
            // A delayed statement may still make the row. It is recognized by its epoch, and not taken for the next one.
            None => self.epoch += 1,
        }
        self.is_uncertain = false;
        Ok(())
    }
}
