//! Reads the lines of a thread, a page at a time.
//!
//! The number of a line is its position, so a page is a range of positions: its size is limited whatever lines are in it,
//! and the database looks at no other lines, however it plans the statement.

use std::ops::Range;

use codex_log::line::{BadLine, Fault, Line};
use codex_log::store::{Entry, LineSource, ReadFrom, StoreError, store_place};
use codex_wire::ids::ThreadId;
use uuid::Uuid;

use crate::connection::column;
use crate::database::Awaited;
use crate::errors::PostgresError;
use crate::store::Parts;

const END: &str = "SELECT end_at, EXISTS (SELECT 1 FROM @.lines WHERE thread = $1 AND number = $2) AS ends \
     FROM @.threads WHERE id = $1 AND NOT deleted";

/// A page is one row, because a row costs more than a short line. Both lists are in the same order, whichever that is.
const PAGE: &str = "SELECT array_agg(number) AS numbers, string_agg(payload, '\\x0a'::bytea) AS payloads \
     FROM @.lines WHERE thread = $1 AND number > $2 AND number <= $3";

/// The size of the first page, which is all that many readers need, and of later ones.
const FIRST_BYTES: i64 = 64 << 10;
const PAGE_BYTES: i64 = 1 << 20;

/// The lines of a thread, from a position to the end that it had when they were opened.
#[derive(Debug)]
pub(crate) struct Reader {
    parts: Parts,
    thread: ThreadId,
    /// The end of the last page that was requested.
    requested: i64,
    end: i64,
    page: Page,
    /// The next page, which is fetched while the current one is read, and its start.
    coming: Option<(i64, Awaited<Rows>)>,
    current: Range<usize>,
    current_end: u64,
    /// The number of the last line.
    number: u64,
}

/// A page as it is fetched.
#[derive(Debug)]
struct Rows {
    numbers: Vec<i64>,
    payloads: Vec<u8>,
}

/// A page whose lines are read one by one.
#[derive(Debug, Default)]
struct Page {
    /// The lines that are left: the number of each, and its place among the payloads.
    lines: std::vec::IntoIter<(i64, Range<usize>)>,
    /// The lines, with line breaks between them.
    payloads: Vec<u8>,
}

impl Page {
    /// `None` if a line contains a line break, so that it cannot be one.
    fn of(Rows { numbers, payloads }: Rows) -> Option<Self> {
        let mut ends = memchr::memchr_iter(b'\n', &payloads).chain([payloads.len()]);
        let mut start = 0;
        let mut lines = Vec::with_capacity(numbers.len());
        for number in numbers {
            let end = ends.next()?;
            lines.push((number, start..end));
            start = end + 1;
        }
        if !lines.is_empty() && ends.next().is_some() {
            return None;
        }
        drop(ends);
        if !lines.is_sorted_by_key(|(number, _)| *number) {
            lines.sort_unstable_by_key(|(number, _)| *number);
        }
        Some(Self { lines: lines.into_iter(), payloads })
    }
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
            requested: start,
            end,
            page: Page::default(),
            coming: None,
            current: 0..0,
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
        // Pages without lines are in the middle of a long line, or the thread was deleted and ends here.
        while self.page.lines.as_slice().is_empty() && self.next_page()? {}
        let Some((end, place)) = self.page.lines.next() else {
            self.current = 0..0;
            return Ok(None);
        };
        self.current = place;
        self.number += 1;
        self.current_end = u64::try_from(end).unwrap_or_default();
        Ok(Some(self.line()))
    }

    /// The line that was read last; empty at the end.
    fn line(&self) -> &[u8] {
        self.page.payloads.get(self.current.clone()).unwrap_or_default()
    }

    /// Continues with the next page, or returns that there is none.
    fn next_page(&mut self) -> Result<bool, PostgresError> {
        let is_first = self.number == 0;
        let coming = self.coming.take().or_else(|| self.fetch(if is_first { FIRST_BYTES } else { PAGE_BYTES }));
        let Some((start, coming)) = coming else { return Ok(false) };
        // Most readers that end early do so on the first page.
        if !is_first {
            self.coming = self.fetch(PAGE_BYTES);
        }
        let page = coming.wait().and_then(|rows| {
            let place = self.parts.database.place();
            let broken = || PostgresError::Row { place: place.to_owned(), problem: "payload: a line break".to_owned() };
            Page::of(rows).ok_or_else(broken)
        });
        if page.is_err() {
            (self.requested, self.coming) = (start, None);
        }
        self.page = page?;
        Ok(true)
    }

    /// Starts to fetch a page, unless all of them are requested.
    fn fetch(&mut self, bytes: i64) -> Option<(i64, Awaited<Rows>)> {
        let (id, start) = (Uuid::from(self.thread), self.requested);
        if start >= self.end {
            return None;
        }
        let end = start.saturating_add(bytes).min(self.end);
        self.requested = end;
        let coming = self.parts.database.begin(move |pool| async move {
            let row = pool.run(async |connection| connection.row(PAGE, &[&id, &start, &end]).await).await?;
            let Some(row) = row else { return Ok(Rows { numbers: Vec::new(), payloads: Vec::new() }) };
            // Both are null if the page has no lines.
            let numbers: Option<Vec<i64>> = column(&row, "numbers", &pool.place)?;
            let payloads: Option<Vec<u8>> = column(&row, "payloads", &pool.place)?;
            Ok(Rows { numbers: numbers.unwrap_or_default(), payloads: payloads.unwrap_or_default() })
        });
        Some((start, coming))
    }
}

impl LineSource for Reader {
    fn next_entry(&mut self) -> Result<Option<Entry<'_>>, StoreError> {
        // Files may have empty lines.
        while self.next_raw()?.is_some_and(<[u8]>::is_empty) {}
        let current = self.line();
        if current.is_empty() {
            return Ok(None);
        }
        let range = self.current_end.saturating_sub(current.len() as u64 + 1)..self.current_end;
        let text = std::str::from_utf8(current).ok().map(|text| text.strip_suffix('\r').unwrap_or(text));
        let (number, start) = (self.number, range.start);
        Ok(Some(match text.and_then(|text| Line::parse(text).ok()) {
            Some(line) => Entry::Line(Line { number, range, ..line }),
            None => Entry::Bad(BadLine::new(&store_place(self.thread), number, start, Fault::NotALine)),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(numbers: &[i64], payloads: &str) -> Option<Vec<(i64, String)>> {
        let page = Page::of(Rows { numbers: numbers.to_vec(), payloads: payloads.as_bytes().to_vec() })?;
        Some(page.lines.map(|(number, place)| (number, payloads[place].to_owned())).collect())
    }

    #[test]
    fn a_page_has_its_lines_in_order() {
        let expected = |lines: &[(i64, &str)]| Some(lines.iter().map(|(at, line)| (*at, (*line).to_owned())).collect());
        assert_eq!(lines(&[], ""), expected(&[]));
        assert_eq!(lines(&[1], ""), expected(&[(1, "")]));
        assert_eq!(lines(&[2, 3, 6], "a\n\nbc"), expected(&[(2, "a"), (3, ""), (6, "bc")]));
        assert_eq!(lines(&[6, 2, 3], "bc\na\n"), expected(&[(2, "a"), (3, ""), (6, "bc")]));
    }

    #[test]
    fn a_line_with_a_line_break_is_refused() {
        assert_eq!(lines(&[2], "a\nb"), None);
        assert_eq!(lines(&[2, 4, 6], "a\nb"), None);
    }
}
