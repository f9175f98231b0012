//! Full-text search in the messages and commands of all threads.
//!
//! Texts are derived from lines: a search first reads those that were appended since, within a limited time. If some are
//! left, they are read after the answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use codex_log::store::{
    Entry, LineSource, ReadFrom, SearchHit, SearchOrder, SearchQuery, SearchResults, SourceKind, StoreError,
    ThreadSummary,
};
use codex_store::TextReader;
use codex_wire::ids::ThreadId;
use uuid::Uuid;

use crate::connection::{Values, column};
use crate::errors::PostgresError;
use crate::reader::Reader;
use crate::store::Parts;
use crate::summary_row::{listed, without_nul};
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

/// The threads with the best passage of each. Of very many passages, only those of the latest threads are ranked. Texts
/// are fetched only for threads that are returned: a text can have many kilobytes.
macro_rules! search {
    ($order:literal) => {
        concat!(
            "WITH found AS (
                SELECT texts.thread, texts.number, ts_rank(texts.words, $1::text::tsquery) AS rank
                FROM (SELECT texts.thread, texts.number, texts.words FROM @.texts AS texts
                    JOIN @.threads AS threads ON threads.id = texts.thread
                    WHERE texts.words @@ $1::text::tsquery AND NOT threads.deleted AND threads.summary IS NOT NULL
                    AND ($2::boolean IS NULL OR threads.archived = $2)
                    AND ($3::text[] IS NULL OR threads.source_kind = ANY($3))
                    ORDER BY texts.thread DESC LIMIT 5000) AS texts),
            ranked AS (
                SELECT thread, number, rank,
                    row_number() OVER (PARTITION BY thread ORDER BY rank DESC, number DESC) AS place FROM found),
            best AS (
                SELECT ranked.thread, ranked.number, ranked.rank FROM ranked
                JOIN @.threads AS threads ON threads.id = ranked.thread WHERE ranked.place = 1
                ORDER BY ",
            $order,
            "ranked.rank DESC, ranked.thread DESC LIMIT $4)
            SELECT threads.id, archived, began, updated, preview, cwd, provider, summary, name, texts.text
            FROM best JOIN @.threads AS threads ON threads.id = best.thread
            JOIN @.texts AS texts ON texts.thread = best.thread AND texts.number = best.number
            ORDER BY ",
            $order,
            "best.rank DESC, best.thread DESC"
        )
    };
}

const BEST: &str = search!("");
const OLDEST: &str = search!("(threads.summary::json ->> 'created')::bigint, ");
const NEWEST: &str = search!("(threads.summary::json ->> 'created')::bigint DESC, ");
const STALEST: &str = search!("threads.updated, ");
const LATEST: &str = search!("threads.updated DESC, ");

/// The time that a search may spend on texts that are not indexed yet: enough for the latest turns of all servers, and for
/// a thousand imported threads.
const CATCH_UP: Duration = Duration::from_secs(2);

/// The time for which texts are indexed after a search: in all, and before a look whether the store is still in use.
const IN_BACKGROUND: Duration = Duration::from_secs(60);
const BACKGROUND_STEP: Duration = Duration::from_millis(200);

/// Threads with all of the words; the last one may be a prefix.
pub(crate) fn search(parts: &Parts, query: &SearchQuery) -> Result<SearchResults, StoreError> {
    let complete = catch_up(parts, CATCH_UP)?;
    if !complete {
        index_in_background(parts);
    }
    let expression = words::query(&without_nul(&query.words));
    if expression.is_empty() || query.limit == 0 {
        return Ok(SearchResults { hits: Vec::new(), complete });
    }
    let statement = match query.order {
        SearchOrder::Best => BEST,
        SearchOrder::Created { ascending: true } => OLDEST,
        SearchOrder::Created { ascending: false } => NEWEST,
        SearchOrder::Updated { ascending: true } => STALEST,
        SearchOrder::Updated { ascending: false } => LATEST,
    };
    let archived = query.archived;
    let sources = Some(SourceKind::words(&query.sources)).filter(|sources| !sources.is_empty());
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let found: Vec<(ThreadSummary, String)> = parts.database.wait(move |pool| async move {
        let values: Values<'_> = &[&expression, &archived, &sources, &limit];
        let rows = pool.run(async |connection| connection.query(statement, values).await).await?;
        let read = |row| match listed(row, &pool.place)? {
            Some(listed) => Ok(Some((listed.summary, column(row, "text", &pool.place)?))),
            None => Ok(None),
        };
        rows.iter().filter_map(|row| read(row).transpose()).collect()
    })?;
    let hit = |(thread, text): (ThreadSummary, String)| {
        let snippet = words::snippet(&text, &query.words);
        SearchHit { thread, snippet }
    };
    let hits = found.into_iter().map(hit).collect();
    Ok(SearchResults { hits, complete })
}

/// Indexes further texts on a separate thread, of which a store has one at most.
fn index_in_background(parts: &Parts) {
    if parts.is_indexing.swap(true, Ordering::AcqRel) {
        return;
    }
    let (own, start) = (parts.clone(), Instant::now());
    let begun = std::thread::Builder::new().name("codex-texts".to_owned()).spawn(move || {
        // The next search meets an error as well, and reports it.
        while start.elapsed() < IN_BACKGROUND
            && Arc::strong_count(&own.is_indexing) > 1
            && matches!(catch_up(&own, BACKGROUND_STEP), Ok(false))
        {}
        own.is_indexing.store(false, Ordering::Release);
    });
    if begun.is_err() {
        parts.is_indexing.store(false, Ordering::Release);
    }
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
        let values: Values<'_> = &[&id, &scanned, &end, &numbers, &texts, &vectors];
        pool.run(async |connection| connection.execute(ADD, values).await).await
    })?;
    Ok(())
}

fn unreadable(parts: &Parts, error: &StoreError) -> PostgresError {
    PostgresError::Row { place: parts.database.place().to_owned(), problem: error.to_string() }
}
