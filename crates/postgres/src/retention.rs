//! The deletion of threads that nobody has changed for a long time, in small batches.

use std::time::Duration;

use codex_log::store::{StoreError, ThreadStore};
use codex_wire::ids::ThreadId;
use uuid::Uuid;

use crate::connection::column;
use crate::errors::PostgresError;
use crate::store::PostgresStore;
use crate::threads;

/// The pause between two batches, in which the database can catch up.
const PAUSE: Duration = Duration::from_millis(200);

/// The time between two looks for old threads.
const LOOK: Duration = Duration::from_secs(3600);

/// The next threads after a place that were not changed for a number of seconds, unless another server has them open. `$2`
/// is the lease of this server.
const OLD: &str = "SELECT id, updated FROM @.threads WHERE NOT deleted \
     AND updated < ((extract(epoch FROM now()) - $1::bigint) * 1000000)::bigint * 1000 \
     AND (owner IS NULL OR owner = $2 OR NOT EXISTS (SELECT 1 FROM @.servers \
     WHERE servers.id = threads.owner AND servers.expires > now())) \
     AND (updated > $3 OR (updated = $3 AND id > $4)) ORDER BY updated, id LIMIT 100";

/// Threads whose deletion was not finished.
const LEFT: &str = "SELECT id FROM @.threads WHERE deleted ORDER BY id LIMIT 100";

impl PostgresStore {
    /// Deletes all threads that were not changed for a number of days and that nobody has open; returns how many. Blocks
    /// for as long as that takes.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub fn delete_older_than(&self, days: u64) -> Result<u64, StoreError> {
        let mut deleted = 0;
        // Threads that stay are passed, so that they do not hide the ones after them.
        let mut place = (i64::MIN, Uuid::nil());
        loop {
            let page = self.old_threads(days, place)?;
            let Some(last) = page.last() else { break };
            place = *last;
            for (_, thread) in page {
                // Somebody may have opened it meanwhile.
                let thread = ThreadId::from(thread);
                if !self.parts().lease.writes(thread) && self.delete(thread).is_ok() {
                    deleted += 1;
                }
            }
            self.parts().database.wait(|_| async {
                tokio::time::sleep(PAUSE).await;
                Ok(())
            })?;
        }
        self.parts().database.wait(|pool| async move {
            let left = pool.run(async |connection| connection.query(LEFT, &[]).await).await?;
            for row in &left {
                threads::remove_rows(&pool, ThreadId::from(column::<Uuid>(row, "id", &pool.place)?)).await?;
            }
            Ok(())
        })?;
        Ok(deleted)
    }

    /// Deletes such threads once an hour, if there is a number of days. Runs until it is dropped.
    pub async fn keep_days(&self, days: Option<u64>) {
        let Some(days) = days else { return std::future::pending().await };
        loop {
            let store = self.clone();
            match tokio::task::spawn_blocking(move || store.delete_older_than(days)).await {
                Ok(Ok(0)) | Err(_) => {}
                Ok(Ok(deleted)) => tracing::info!(deleted, "old threads were deleted"),
                Ok(Err(error)) => tracing::warn!(%error, "old threads could not be deleted"),
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The next threads after a place, with theirs: the time of their last change, and their id.
    fn old_threads(&self, days: u64, place: (i64, Uuid)) -> Result<Vec<(i64, Uuid)>, PostgresError> {
        let seconds = i64::try_from(days.saturating_mul(86_400)).unwrap_or(i64::MAX);
        let own = self.server_id();
        self.parts().database.wait(move |pool| async move {
            let rows =
                pool.run(async |connection| connection.query(OLD, &[&seconds, &own, &place.0, &place.1]).await).await?;
            rows.iter().map(|row| Ok((column(row, "updated", &pool.place)?, column(row, "id", &pool.place)?))).collect()
        })
    }
}
