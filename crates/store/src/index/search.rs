//! Full-text search in the messages and commands of all threads.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use codex_log::decode::{Decoder, Wanted};
use codex_log::line::{Fault, ItemHead, Line};
use codex_log::store::{Entry, SearchHit, SearchOrder, SearchQuery, SearchResults, SourceKind};
use codex_log::{Body, Event};
use rusqlite::{Connection, TransactionBehavior, params, params_from_iter};

use super::IndexError;
use super::database::{Database, is_busy};
use super::listing::Condition;
use super::rows::{self, COLUMN_COUNT, COLUMNS, KEY_COLUMN, Listed};
use crate::rollout::RolloutLines;
use crate::threads::{beginning, call_text, is_generated, message_text};

/// The maximum size of the text in one row.
const PASSAGE_BYTES: usize = 32 << 10;

/// The maximum size of the indexed text of one thread. Text beyond it is not found.
const THREAD_BYTES: i64 = 4 << 20;

/// The number of words around a match in a snippet.
const SNIPPET_WORDS: i64 = 16;

/// Finds the threads with all of the words; the last one may be a prefix.
pub(crate) fn search(database: &Database, query: &SearchQuery, complete: bool) -> Result<SearchResults, IndexError> {
    let expression = expression(&query.words);
    if expression.is_empty() || query.limit == 0 {
        return Ok(SearchResults { hits: Vec::new(), complete });
    }
    let best = best_passages(database, &expression, query).map_err(database.error())?;
    let passages: Vec<i64> = best.iter().map(|(passage, _)| *passage).collect();
    let mut snippets = snippets(database, &expression, &passages).map_err(database.error())?;
    let hit = |(passage, listed): (i64, Listed)| SearchHit {
        thread: listed.summary,
        snippet: snippets.remove(&passage).unwrap_or_default(),
    };
    Ok(SearchResults { hits: best.into_iter().map(hit).collect(), complete })
}

/// The words as a query: each quoted, so that nothing in them is an operator.
fn expression(words: &str) -> String {
    let words: Vec<String> = words
        .split_whitespace()
        .filter(|word| word.chars().any(|char| char.is_alphanumeric() || char == '_'))
        .map(|word| format!("\"{}\"", word.replace('"', "\"\"")))
        .collect();
    if words.is_empty() { String::new() } else { words.join(" ") + " *" }
}

/// The best passage of each thread, with the thread, in the order of the query.
fn best_passages(database: &Database, expression: &str, query: &SearchQuery) -> rusqlite::Result<Vec<(i64, Listed)>> {
    let mut condition = Condition::default();
    condition.add("texts MATCH ?".to_owned(), [expression.to_owned().into()]);
    if let Some(archived) = query.archived {
        condition.add("threads.archived = ?".to_owned(), [archived.into()]);
    }
    condition.one_of("threads.source_kind", None, &SourceKind::words(&query.sources));
    let order = match query.order {
        SearchOrder::Best => "",
        SearchOrder::Created { ascending: true } => "json_extract(threads.summary, '$.created'), ",
        SearchOrder::Created { ascending: false } => "json_extract(threads.summary, '$.created') DESC, ",
        SearchOrder::Updated { ascending: true } => "threads.mtime, ",
        SearchOrder::Updated { ascending: false } => "threads.mtime DESC, ",
    };
    // Rows come one by one in the order of their rank, because the other tables are asked about each of them in turn.
    let text = format!(
        "SELECT {COLUMNS}, texts.rowid FROM texts CROSS JOIN passages ON passages.key = texts.rowid \
         CROSS JOIN threads ON threads.key = passages.thread LEFT JOIN names ON names.id = threads.id \
         WHERE {} ORDER BY {order}texts.rank",
        condition.parts.join(" AND ")
    );
    let mut statement = database.connection.prepare_cached(&text)?;
    let mut rows = statement.query(params_from_iter(condition.values))?;
    let (mut best, mut known) = (Vec::new(), HashSet::new());
    while best.len() < query.limit
        && let Some(row) = rows.next()?
    {
        if known.insert(row.get::<_, i64>(KEY_COLUMN)?) {
            let passage: i64 = row.get(COLUMN_COUNT)?;
            best.extend(rows::listed(&database.home, row)?.map(|listed| (passage, listed)));
        }
    }
    Ok(best)
}

/// Excerpts of passages around the match. One scan of all matches is faster than a search for each passage: that of a
/// prefix collects all its words first.
fn snippets(database: &Database, expression: &str, passages: &[i64]) -> rusqlite::Result<HashMap<i64, String>> {
    let mut statement = database.connection.prepare_cached(
        "SELECT rowid, snippet(texts, 0, '', '', '…', ?3) FROM texts \
         WHERE texts MATCH ?1 AND +rowid IN (SELECT value FROM json_each(?2))",
    )?;
    let passages = serde_json::Value::from(passages).to_string();
    let rows =
        statement.query_map(params![expression, passages, SNIPPET_WORDS], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// A file whose text is not fully indexed.
struct Unread {
    thread: i64,
    path: String,
    scanned: i64,
    size: i64,
}

/// Indexes texts for up to `budget`, and returns whether nothing is left.
pub(crate) fn catch_up(database: &mut Database, budget: Duration) -> Result<bool, IndexError> {
    let start = Instant::now();
    loop {
        let unread = unread(database).map_err(database.error())?;
        if unread.is_empty() {
            return Ok(true);
        }
        let home = database.home.clone();
        let failed = database.error();
        match read_texts(&mut database.connection, &home, &unread, start, budget) {
            Ok(()) if start.elapsed() < budget => {}
            Err(error) if !is_busy(&error) => return Err(failed(error)),
            Ok(()) | Err(_) => return Ok(false),
        }
    }
}

fn unread(database: &Database) -> rusqlite::Result<Vec<Unread>> {
    let mut statement = database.connection.prepare_cached(
        "SELECT key, path, scanned, size FROM threads WHERE scanned_size <> size ORDER BY mtime DESC LIMIT 100",
    )?;
    let rows = statement.query_map([], |row| {
        Ok(Unread { thread: row.get(0)?, path: row.get(1)?, scanned: row.get(2)?, size: row.get(3)? })
    })?;
    rows.collect()
}

/// Reads some files, at least one of them, until the time is up.
fn read_texts(
    connection: &mut Connection,
    home: &Path,
    unread: &[Unread],
    start: Instant,
    budget: Duration,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for file in unread {
        let scanned = read_text(&transaction, home, file)?;
        transaction
            .prepare_cached("UPDATE threads SET scanned = ?2, scanned_size = ?3 WHERE key = ?1")?
            .execute(params![file.thread, scanned, file.size])?;
        if start.elapsed() >= budget {
            break;
        }
    }
    transaction.commit()
}

/// Reads the new part of a file and returns how far it was read. An unreadable file has no text.
fn read_text(connection: &Connection, home: &Path, file: &Unread) -> rusqlite::Result<i64> {
    let room = THREAD_BYTES - text_bytes(connection, file.thread)?;
    let from = u64::try_from(file.scanned).unwrap_or(0);
    let Ok(mut lines) = RolloutLines::open_at(&home.join(&file.path), from) else { return Ok(file.scanned) };
    let mut texts = TextReader::new(room);
    let mut scanned = from;
    while let Ok(Some(entry)) = lines.next_entry() {
        match entry {
            Entry::Line(line) => {
                scanned = line.range.end;
                if let Some(passage) = texts.line(&line) {
                    add_passage(connection, file.thread, &passage)?;
                }
            }
            Entry::Bad(bad) if bad.fault == Fault::Torn => break,
            Entry::Bad(_) => {}
        }
    }
    add_passage(connection, file.thread, &texts.finish())?;
    Ok(i64::try_from(scanned).unwrap_or(i64::MAX))
}

/// Collects the searchable text of lines in passages.
#[derive(Debug)]
pub struct TextReader {
    decoder: Decoder,
    events: Vec<Event>,
    passage: String,
    /// The number of bytes that may still be collected.
    room: i64,
}

impl TextReader {
    /// The maximum size of the searchable text of one thread.
    pub const THREAD_BYTES: i64 = THREAD_BYTES;

    #[must_use]
    pub fn new(room: i64) -> Self {
        let decoder = Decoder::new(Wanted::RECORDS | Wanted::BROKEN_OFF);
        Self { decoder, events: Vec::new(), passage: String::new(), room }
    }

    /// Takes the next line, and returns a passage when it is long enough.
    pub fn line(&mut self, line: &Line<'_>) -> Option<String> {
        if self.room > 0 {
            self.decoder.line(line, &mut self.events);
        }
        for text in self.events.drain(..).filter_map(|event| searchable(&event.body)) {
            self.passage.push_str(beginning(&text, PASSAGE_BYTES));
            self.passage.push('\n');
        }
        if self.passage.len() < PASSAGE_BYTES {
            return None;
        }
        self.room -= i64::try_from(self.passage.len()).unwrap_or(self.room);
        Some(std::mem::take(&mut self.passage))
    }

    /// The last passage, which may be empty.
    #[must_use]
    pub fn finish(self) -> String {
        self.passage
    }
}

fn text_bytes(connection: &Connection, thread: i64) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare_cached("SELECT coalesce(sum(bytes), 0) FROM passages WHERE thread = ?1")?;
    statement.query_row([thread], |row| row.get(0))
}

fn add_passage(connection: &Connection, thread: i64, text: &str) -> rusqlite::Result<()> {
    if text.trim().is_empty() {
        return Ok(());
    }
    let bytes = i64::try_from(text.len()).unwrap_or(i64::MAX);
    connection.prepare_cached("INSERT INTO passages (thread, bytes) VALUES (?1, ?2)")?.execute([thread, bytes])?;
    let key = connection.last_insert_rowid();
    connection.prepare_cached("INSERT INTO texts (rowid, text) VALUES (?1, ?2)")?.execute(params![key, text])?;
    Ok(())
}

/// The searchable text of an event: messages and commands. The output of commands would drown it.
fn searchable(body: &Body) -> Option<String> {
    let record = match body {
        Body::Recorded(record) => record,
        Body::ItemInterrupted(item) => return item.answer().map(|text| text.as_str().to_owned()),
        _ => return None,
    };
    let json = record.json.json();
    let head: ItemHead<'_> = serde_json::from_str(&json).ok()?;
    match &*head.kind {
        "message" if head.is_message_of("assistant") => message_text(&json),
        "message" if head.is_message_of("user") => message_text(&json).filter(|text| !is_generated(text)),
        "function_call" | "custom_tool_call" | "local_shell_call" => call_text(&json),
        _ => None,
    }
}
