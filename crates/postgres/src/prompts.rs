//! The prompt history.

use codex_log::store::PromptHistoryState;
use codex_wire::history::HistoryEntry;
use codex_wire::ids::ThreadId;
use uuid::Uuid;

use crate::connection::column;
use crate::errors::PostgresError;
use crate::store::Parts;
use crate::summary_row::without_nul;

const COUNT: &str = "SELECT count(*) AS entries, (SELECT incarnation FROM @.store) AS incarnation FROM @.prompts";

/// The order is that of the database's clock. The ids of one server tell its prompts of the same second apart.
const ENTRY: &str = "SELECT thread, at, text FROM @.prompts ORDER BY at, id OFFSET $1 LIMIT 1";

/// An id that is known already was sent by an attempt whose answer was lost.
const ADD: &str = "INSERT INTO @.prompts (id, thread, at, text) \
     VALUES ($1, $2, extract(epoch FROM clock_timestamp())::bigint, $3) ON CONFLICT (id) DO NOTHING";

/// Removes the oldest prompts beyond a number of bytes. The newest one stays.
const TRIM: &str = "DELETE FROM @.prompts WHERE id IN (SELECT id FROM (SELECT id, \
     row_number() OVER newest AS place, sum(octet_length(text) + 80) OVER newest AS bytes \
     FROM @.prompts WINDOW newest AS (ORDER BY at DESC, id DESC)) AS counted WHERE bytes > $1 AND place > 1)";

/// The identity of the history: another one after a restore.
fn log_id(incarnation: Uuid) -> u64 {
    incarnation.as_u64_pair().1 >> 2 | 1
}

pub(crate) fn state(parts: &Parts) -> Result<PromptHistoryState, PostgresError> {
    parts.database.wait(move |pool| async move {
        let row = pool.run(async |connection| connection.row(COUNT, &[]).await).await?;
        let Some(row) = row else { return Ok(PromptHistoryState::default()) };
        let entries: i64 = column(&row, "entries", &pool.place)?;
        let log_id = log_id(column(&row, "incarnation", &pool.place)?);
        Ok(PromptHistoryState { log_id, entries: usize::try_from(entries).unwrap_or_default() })
    })
}

/// The prompt at an index, from the oldest.
pub(crate) fn entry(parts: &Parts, known: u64, offset: usize) -> Result<Option<HistoryEntry>, PostgresError> {
    if state(parts)?.log_id != known {
        return Ok(None);
    }
    let offset = i64::try_from(offset).unwrap_or(i64::MAX);
    parts.database.wait(move |pool| async move {
        let row = pool.run(async |connection| connection.row(ENTRY, &[&offset]).await).await?;
        let Some(row) = row else { return Ok(None) };
        let thread: Uuid = column(&row, "thread", &pool.place)?;
        let at: i64 = column(&row, "at", &pool.place)?;
        let text = column(&row, "text", &pool.place)?;
        let ts = u64::try_from(at).unwrap_or_default();
        Ok(Some(HistoryEntry { conversation_id: thread.to_string(), ts, text }))
    })
}

/// Adds a prompt, and removes the oldest ones beyond a number of bytes.
pub(crate) fn add(parts: &Parts, thread: ThreadId, text: &str, max_bytes: Option<u64>) -> Result<(), PostgresError> {
    let (id, thread, text) = (codex_wire::ids::fresh_uuid(), Uuid::from(thread), without_nul(text));
    let most = max_bytes.map(|most| i64::try_from(most).unwrap_or(i64::MAX));
    parts.database.wait(move |pool| async move {
        pool.run(async |connection| {
            connection.execute(ADD, &[&id, &thread, &text]).await?;
            match most {
                Some(most) => connection.execute(TRIM, &[&most]).await.map(drop),
                None => Ok(()),
            }
        })
        .await
    })
}
