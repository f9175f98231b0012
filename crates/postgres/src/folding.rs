//! Reads the data for resuming a thread from its rows.

use std::collections::VecDeque;

use codex_log::history::History;
use codex_log::state::{Interrupted, StateReader};
use codex_log::store::{Entry, LineSource, ReadFrom, StoreError};
use codex_store::{HistoryReader, Mark, MarkedLine, MarkedLines, MetaReader, ends_with_answer, find_base};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::SessionMeta;
use uuid::Uuid;

use crate::connection::{Values, column};
use crate::errors::PostgresError;
use crate::reader::Reader;
use crate::store::Parts;

/// Without a compaction, only the latest settings and token counts matter.
const MARKED: &str = "SELECT number, mark, octet_length(payload) AS bytes FROM @.lines \
     WHERE thread = $1 AND mark > 0 AND ($4 OR mark IN (2, 3, 4)) AND number <= $2 ORDER BY number DESC LIMIT $3";

const IS_COMPACTED: &str =
    "SELECT EXISTS (SELECT 1 FROM @.lines WHERE thread = $1 AND mark > 0 AND mark = 1) AS is_compacted";

/// The numbers of marked lines in the first page and in the largest one: each page is four times as large as the one
/// before, because the database may have to sort all that are left for each of them.
const FIRST_MARKS: i64 = 500;
const MOST_MARKS: i64 = 32_000;

const LINE: &str = "SELECT payload FROM @.lines WHERE thread = $1 AND number = $2";

/// The latest threads with a line that contains some bytes.
const WITH_BYTES: &str = "SELECT thread FROM @.lines WHERE thread = ANY($1) AND position($2 IN payload) > 0 \
     GROUP BY thread";

const LATEST: &str =
    "SELECT id FROM @.threads WHERE NOT archived AND NOT deleted ORDER BY began DESC, id DESC LIMIT 200";

/// The first line of a thread.
pub(crate) fn meta(parts: &Parts, thread: ThreadId) -> Result<SessionMeta, StoreError> {
    let mut lines = Reader::open(parts, thread, ReadFrom::Start)?;
    let mut reader = MetaReader::default();
    while let Some(entry) = lines.next_entry()? {
        if reader.entry(&entry) {
            break;
        }
    }
    reader.meta().ok_or_else(|| PostgresError::NoMeta { thread }.into())
}

/// The data for resuming a thread.
pub(crate) fn history(parts: &Parts, thread: ThreadId, interrupted: Interrupted) -> Result<History, StoreError> {
    let meta = meta(parts, thread)?;
    let mut marks = Marks::of(parts, thread);
    let base = find_base(&mut marks, &meta)?;
    let mut reader = HistoryReader::new(meta, interrupted, &base);
    let from = if base.start == 0 { ReadFrom::Start } else { ReadFrom::Position(base.start) };
    let mut lines = Reader::open(parts, thread, from)?;
    while let Some(entry) = lines.next_entry()? {
        reader.entry(entry);
    }
    Ok(reader.finish())
}

/// The lines of a thread that have a mark, the last first.
struct Marks<'a> {
    parts: &'a Parts,
    thread: ThreadId,
    page: VecDeque<MarkedLine>,
    /// The greatest number of the next page.
    before: i64,
    /// Its maximum length.
    length: i64,
    is_last: bool,
    is_compacted: bool,
}

impl<'a> Marks<'a> {
    fn of(parts: &'a Parts, thread: ThreadId) -> Self {
        let (before, length) = (i64::MAX, FIRST_MARKS);
        Self { parts, thread, page: VecDeque::new(), before, length, is_last: false, is_compacted: true }
    }
}

impl MarkedLines for Marks<'_> {
    type Error = PostgresError;

    fn may_be_compacted(&mut self) -> Result<bool, PostgresError> {
        let id = Uuid::from(self.thread);
        self.is_compacted = self.parts.database.wait(move |pool| async move {
            let row = pool.run(async |connection| connection.row(IS_COMPACTED, &[&id]).await).await?;
            row.map_or(Ok(true), |row| column(&row, "is_compacted", &pool.place))
        })?;
        Ok(self.is_compacted)
    }

    fn go_before(&mut self, place: u64) -> Result<(), PostgresError> {
        self.page.clear();
        (self.before, self.is_last) = (i64::try_from(place).unwrap_or(i64::MAX), false);
        Ok(())
    }

    fn next_marked(&mut self) -> Result<Option<MarkedLine>, PostgresError> {
        if self.page.is_empty() && !self.is_last {
            let (id, before, length, all) = (Uuid::from(self.thread), self.before, self.length, self.is_compacted);
            let rows: Vec<(i64, i16, i32)> = self.parts.database.wait(move |pool| async move {
                let values: Values<'_> = &[&id, &before, &length, &all];
                let rows = pool.run(async |connection| connection.query(MARKED, values).await).await?;
                let read = |row| {
                    let (number, mark) = (column(row, "number", &pool.place)?, column(row, "mark", &pool.place)?);
                    Ok((number, mark, column(row, "bytes", &pool.place)?))
                };
                rows.iter().map(read).collect()
            })?;
            self.is_last = i64::try_from(rows.len()).is_ok_and(|rows| rows < length);
            self.length = length.saturating_mul(4).min(MOST_MARKS);
            self.before = rows.last().map_or(0, |(number, ..)| number - 1);
            self.page = rows.into_iter().map(marked).collect();
        }
        Ok(self.page.pop_front())
    }

    fn text(&mut self, line: &MarkedLine) -> Result<Option<String>, PostgresError> {
        let (id, number) = (Uuid::from(self.thread), i64::try_from(line.end + 1).unwrap_or(i64::MAX));
        let payload: Option<Vec<u8>> = self.parts.database.wait(move |pool| async move {
            let row = pool.run(async |connection| connection.row(LINE, &[&id, &number]).await).await?;
            row.map(|row| column(&row, "payload", &pool.place)).transpose()
        })?;
        Ok(payload.and_then(|payload| String::from_utf8(payload).ok()))
    }
}

fn marked((number, mark, bytes): (i64, i16, i32)) -> MarkedLine {
    let mark = match mark {
        1 => Mark::Compacted,
        2 => Mark::TurnContext,
        3 => Mark::TokenCount,
        4 => Mark::RateLimits,
        5 => Mark::UserMessage,
        6 => Mark::RolledBack,
        7 => Mark::AgentCall,
        _ => Mark::Other,
    };
    let end = u64::try_from(number - 1).unwrap_or_default();
    MarkedLine { start: end.saturating_sub(u64::try_from(bytes).unwrap_or_default()), end, mark }
}

/// The latest thread with a turn that ended with an answer, up to that turn.
pub(crate) fn history_after_answer(
    parts: &Parts,
    response: &str,
    interrupted: Interrupted,
) -> Result<Option<History>, StoreError> {
    let needle = serde_json::to_string(response).unwrap_or_default().into_bytes();
    let threads: Vec<Uuid> = parts.database.wait(move |pool| async move {
        pool.run(async |connection| {
            let latest: Vec<Uuid> = connection.query(LATEST, &[]).await?.iter().map(|row| row.get("id")).collect();
            let found = connection.query(WITH_BYTES, &[&latest, &needle]).await?;
            let found: Vec<Uuid> = found.iter().map(|row| row.get("thread")).collect();
            Ok(latest.into_iter().filter(|thread| found.contains(thread)).collect())
        })
        .await
    })?;
    for thread in threads.into_iter().map(ThreadId::from) {
        let mut state = StateReader::new(meta(parts, thread)?, interrupted);
        let mut lines = Reader::open(parts, thread, ReadFrom::Start)?;
        while let Some(entry) = lines.next_entry()? {
            let Entry::Line(line) = entry else { continue };
            state.line(&line);
            if ends_with_answer(&line, response) {
                return Ok(Some(History { state: state.finish(), bad_lines: Vec::new() }));
            }
        }
    }
    Ok(None)
}
