//! Reads the lines of a thread, a page at a time.

use codex_log::line::{BadLine, Fault, Line};
use codex_log::store::{Entry, LineSource, ReadFrom, StoreError, store_place};
use codex_wire::ids::ThreadId;
use uuid::Uuid;

use crate::database::column;
use crate::errors::PostgresError;
use crate::store::Parts;

const END: &str = "SELECT end_at, EXISTS (SELECT 1 FROM @.lines WHERE thread = $1 AND number = $2) AS ends \
     FROM @.threads WHERE id = $1 AND NOT deleted";

const PAGE: &str = "SELECT number, payload FROM @.lines WHERE thread = $1 AND number > $2 AND number <= $3 \
     ORDER BY number LIMIT $4";

/// The number of lines of the first page.
const FIRST_LINES: i64 = 64;

/// The limits of later pages. Their length follows the size of the lines before.
const MOST_LINES: i64 = 8192;
const PAGE_BYTES: u64 = 4 << 20;

/// The lines of a thread, from a position to the end that it had when they were opened.
#[derive(Debug)]
pub(crate) struct Reader {
    parts: Parts,
    thread: ThreadId,
    /// The end of the last line that was fetched.
    fetched: i64,
    end: i64,
    page: std::vec::IntoIter<(i64, Vec<u8>)>,
    page_lines: i64,
    current: Vec<u8>,
    current_end: u64,
    /// The number of the last line.
    number: u64,
}

impl Reader {
    pub(crate) fn open(parts: &Parts, thread: ThreadId, from: ReadFrom) -> Result<Self, PostgresError> {
        let position = match from {
            ReadFrom::Start => 0,
            ReadFrom::Position(position) => position,
        };
        let start = i64::try_from(position).unwrap_or(i64::MAX);
        let found = parts.database.wait(move |pool| async move {
            let id = Uuid::from(thread);
            let row = pool.run(async |connection| connection.row(END, &[&id, &start]).await).await?;
            let Some(row) = row else { return Err(PostgresError::Missing { thread }) };
            let ends: bool = column(&row, "ends", &pool.place)?;
            Ok((column::<i64>(&row, "end_at", &pool.place)?, ends))
        });
        let (end, ends) = found?;
        if start != 0 && !(ends && start <= end) {
            return Err(PostgresError::NoLine { thread, position });
        }
        Ok(Self {
            parts: parts.clone(),
            thread,
            fetched: start,
            end,
            page: Vec::new().into_iter(),
            page_lines: FIRST_LINES,
            current: Vec::new(),
            current_end: 0,
            number: 0,
        })
    }

    /// The position at which reading ends.
    pub(crate) fn end(&self) -> i64 {
        self.end
    }

    /// The next line as it is stored. `None` at the end.
    pub(crate) fn next_raw(&mut self) -> Result<Option<&[u8]>, PostgresError> {
        if self.page.as_slice().is_empty() && self.fetched < self.end {
            self.fetch()?;
        }
        let Some((end, payload)) = self.page.next() else {
            self.current.clear();
            return Ok(None);
        };
        self.current = payload;
        self.number += 1;
        self.current_end = u64::try_from(end).unwrap_or_default();
        Ok(Some(&self.current))
    }

    fn fetch(&mut self) -> Result<(), PostgresError> {
        let (id, after, end, limit) = (Uuid::from(self.thread), self.fetched, self.end, self.page_lines);
        let page: Vec<(i64, Vec<u8>)> = self.parts.database.wait(move |pool| async move {
            let rows = pool.run(async |connection| connection.query(PAGE, &[&id, &after, &end, &limit]).await).await?;
            let line = |row| Ok((column(row, "number", &pool.place)?, column(row, "payload", &pool.place)?));
            rows.iter().map(line).collect()
        })?;
        let bytes: u64 = page.iter().map(|(_, payload)| payload.len() as u64).sum();
        let average = bytes / (page.len() as u64).max(1) + 1;
        self.page_lines = i64::try_from(PAGE_BYTES / average).unwrap_or(MOST_LINES).clamp(1, MOST_LINES);
        // Without rows, a thread that was deleted meanwhile simply ends.
        self.fetched = page.last().map_or(self.end, |(number, _)| *number);
        self.page = page.into_iter();
        Ok(())
    }
}

impl LineSource for Reader {
    fn next_entry(&mut self) -> Result<Option<Entry<'_>>, StoreError> {
        // Files may have empty lines.
        while self.next_raw()?.is_some_and(<[u8]>::is_empty) {}
        if self.current.is_empty() {
            return Ok(None);
        }
        let range = self.current_end.saturating_sub(self.current.len() as u64 + 1)..self.current_end;
        let text = std::str::from_utf8(&self.current).ok().map(|text| text.strip_suffix('\r').unwrap_or(text));
        let (number, start) = (self.number, range.start);
        Ok(Some(match text.and_then(|text| Line::parse(text).ok()) {
            Some(line) => Entry::Line(Line { number, range, ..line }),
            None => Entry::Bad(BadLine::new(&store_place(self.thread), number, start, Fault::NotALine)),
        }))
    }
}
