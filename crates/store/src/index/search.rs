//! Full-text search in the messages and commands of all threads.

use std::path::Path;
use std::time::{Duration, Instant};

use codex_log::decode::{Decoder, Wanted};
use codex_log::line::{Fault, ItemHead, Line};
use codex_log::store::{Entry, SearchHit, SearchResults};
use codex_log::{Body, Event};
use rusqlite::{Connection, TransactionBehavior, params};

use super::IndexError;
use super::database::{Database, is_busy};
use super::listing;
use crate::rollout::RolloutLines;
use crate::threads::{beginning, call_text, is_generated, message_text};

/// The maximum size of the text in one row.
const PASSAGE_BYTES: usize = 32 << 10;

/// The maximum size of the indexed text of one thread. Text beyond it is not found.
const THREAD_BYTES: i64 = 4 << 20;

/// The number of words around a match in a snippet.
const SNIPPET_WORDS: i64 = 16;

/// Finds the threads with all of the words; the last one may be a prefix.
pub(crate) fn search(
    database: &Database,
    words: &str,
    limit: usize,
    complete: bool,
) -> Result<SearchResults, IndexError> {
    let expression = expression(words);
    if expression.is_empty() || limit == 0 {
        return Ok(SearchResults { hits: Vec::new(), complete });
    }
    let best = best_passages(database, &expression, limit).map_err(database.error())?;
    let mut hits = Vec::new();
    for (passage, thread) in best {
        let snippet = snippet(database, &expression, passage).map_err(database.error())?;
        let found = listing::select(database, "threads.key = ?1", [thread])?.pop();
        hits.extend(found.map(|listed| SearchHit { thread: listed.summary, snippet }));
    }
    Ok(SearchResults { hits, complete })
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

/// The best passage of each thread, with the thread.
fn best_passages(database: &Database, expression: &str, limit: usize) -> rusqlite::Result<Vec<(i64, i64)>> {
    let mut statement = database.connection.prepare_cached(
        "SELECT texts.rowid, passages.thread FROM texts JOIN passages ON passages.key = texts.rowid \
         WHERE texts MATCH ?1 ORDER BY texts.rank",
    )?;
    let mut rows = statement.query([expression])?;
    let mut best: Vec<(i64, i64)> = Vec::new();
    while let Some(row) = rows.next()? {
        let (passage, thread): (i64, i64) = (row.get(0)?, row.get(1)?);
        if best.iter().all(|(_, known)| *known != thread) {
            best.push((passage, thread));
        }
        if best.len() == limit {
            break;
        }
    }
    Ok(best)
}

fn snippet(database: &Database, expression: &str, passage: i64) -> rusqlite::Result<String> {
    let mut statement = database
        .connection
        .prepare_cached("SELECT snippet(texts, 0, '', '', '…', ?3) FROM texts WHERE texts MATCH ?1 AND rowid = ?2")?;
    statement.query_row(params![expression, passage, SNIPPET_WORDS], |row| row.get(0))
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
