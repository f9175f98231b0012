//! Full-text search in the messages and commands of all threads.
//!
//! Texts are derived from lines: a search first reads those that were appended since, within a limited time.

use std::time::{Duration, Instant};

use codex_log::store::{Entry, LineSource, ReadFrom, SearchHit, SearchResults, StoreError, ThreadSummary};
use codex_store::TextReader;
use codex_wire::ids::ThreadId;
use uuid::Uuid;

use crate::database::column;
use crate::errors::PostgresError;
use crate::listing;
use crate::reader::Reader;
use crate::store::Parts;
use crate::summary_row::without_nul;
use crate::words;

const UNSCANNED: &str = "SELECT id, scanned FROM @.threads WHERE scanned < end_at AND NOT deleted \
     ORDER BY updated DESC LIMIT 20";

const TEXT_BYTES: &str = "SELECT coalesce(sum(octet_length(text)), 0)::bigint AS bytes FROM @.texts WHERE thread = $1";

/// Adds texts, unless another server has done so since.
const ADD: &str = "WITH scanned AS (
    UPDATE @.threads SET scanned = $3 WHERE id = $1 AND scanned = $2 RETURNING id)
    INSERT INTO @.texts (thread, number, text, words)
    SELECT scanned.id, text.number, text.text, text.words::tsvector
    FROM scanned, unnest($4::bigint[], $5::text[], $6::text[]) AS text (number, text, words)
    ON CONFLICT (thread, number) DO NOTHING";

/// The best passages. Of very many, only the latest are ranked.
const SEARCH: &str = "SELECT thread, text FROM (
    SELECT thread, number, text, words FROM @.texts WHERE words @@ $1::text::tsquery
    ORDER BY thread DESC LIMIT 5000) AS found
    ORDER BY ts_rank(words, $1::text::tsquery) DESC, thread DESC, number DESC LIMIT $2";

/// The time that a search may spend on texts that are not indexed yet.
const CATCH_UP: Duration = Duration::from_millis(200);

/// The passages that are fetched for each thread that is wanted: several may be of one thread.
const PASSAGES: i64 = 8;

/// Threads with all of the words; the last one may be a prefix.
pub(crate) fn search(parts: &Parts, text: &str, limit: usize) -> Result<SearchResults, StoreError> {
    let complete = catch_up(parts, CATCH_UP)?;
    let query = words::query(&without_nul(text));
    if query.is_empty() || limit == 0 {
        return Ok(SearchResults { hits: Vec::new(), complete });
    }
    let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_mul(PASSAGES);
    let found: Vec<(Uuid, String)> = parts.database.wait(move |pool| async move {
        let rows = pool.run(async |connection| connection.query(SEARCH, &[&query, &most]).await).await?;
        let read = |row| Ok((column(row, "thread", &pool.place)?, column(row, "text", &pool.place)?));
        rows.iter().map(read).collect()
    })?;
    let mut hits: Vec<SearchHit> = Vec::new();
    for (thread, passage) in found {
        let thread = ThreadId::from(thread);
        if hits.len() == limit || hits.iter().any(|hit| hit.thread.id == thread) {
            continue;
        }
        let summary: Option<ThreadSummary> = listing::find(parts, thread)?;
        hits.extend(summary.map(|summary| SearchHit { thread: summary, snippet: words::snippet(&passage, text) }));
    }
    Ok(SearchResults { hits, complete })
}

/// Indexes texts for up to `budget`, and returns whether nothing is left.
pub(crate) fn catch_up(parts: &Parts, budget: Duration) -> Result<bool, StoreError> {
    let start = Instant::now();
    loop {
        let unscanned: Vec<(Uuid, i64)> = parts.database.wait(|pool| async move {
            let rows = pool.run(async |connection| connection.query(UNSCANNED, &[]).await).await?;
            let read = |row| Ok((column(row, "id", &pool.place)?, column(row, "scanned", &pool.place)?));
            rows.iter().map(read).collect()
        })?;
        if unscanned.is_empty() {
            return Ok(true);
        }
        for (thread, scanned) in unscanned {
            match scan(parts, thread.into(), scanned) {
                // It was deleted meanwhile, or its lines were removed after a failed append.
                Ok(()) | Err(PostgresError::Missing { .. } | PostgresError::NoLine { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            if start.elapsed() >= budget {
                return Ok(false);
            }
        }
    }
}

/// Reads the new lines of a thread.
fn scan(parts: &Parts, thread: ThreadId, scanned: i64) -> Result<(), PostgresError> {
    let id = Uuid::from(thread);
    let bytes: i64 = parts.database.wait(move |pool| async move {
        let row = pool.run(async |connection| connection.row(TEXT_BYTES, &[&id]).await).await?;
        row.map_or(Ok(0), |row| column(&row, "bytes", &pool.place))
    })?;
    let from = match u64::try_from(scanned) {
        Ok(0) | Err(_) => ReadFrom::Start,
        Ok(position) => ReadFrom::Position(position),
    };
    let mut lines = Reader::open(parts, thread, from)?;
    let mut reader = TextReader::new(TextReader::THREAD_BYTES - bytes);
    let mut texts = Vec::new();
    while let Some(entry) = lines.next_entry().map_err(|error| unreadable(parts, &error))? {
        if let Entry::Line(line) = entry {
            texts.extend(reader.line(&line));
        }
    }
    texts.push(reader.finish());
    let texts: Vec<String> =
        texts.iter().filter(|text| !text.trim().is_empty()).map(|text| without_nul(text)).collect();
    let vectors: Vec<String> = texts.iter().map(|text| words::vector(text)).collect();
    let numbers: Vec<i64> =
        (0..i64::try_from(texts.len()).unwrap_or_default()).map(|number| scanned + number).collect();
    let end = lines.end();
    parts.database.wait(move |pool| async move {
        let values: crate::database::Values<'_> = &[&id, &scanned, &end, &numbers, &texts, &vectors];
        pool.run(async |connection| connection.execute(ADD, values).await).await
    })?;
    Ok(())
}

fn unreadable(parts: &Parts, error: &StoreError) -> PostgresError {
    PostgresError::Row { place: parts.database.place().to_owned(), problem: error.to_string() }
}
