//! Rows of the screen that know their place in the text, so that copied text has no line breaks of the layout; and parts
//! of them that are selected or found.

use unicode_width::UnicodeWidthChar;

use crate::rich_text::Growing;
use crate::wrap::{row_columns, rows};
use crate::{Row, Span, Style};

/// A row of the screen, and its place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaidRow {
    pub row: Row,
    /// The text that wrapping has removed before this row; `None` if a line begins here.
    pub glue: Option<String>,
}

/// Wraps lines.
#[must_use]
pub fn wrapped(lines: &[Row], width: usize) -> Vec<LaidRow> {
    let mut laid = Vec::new();
    for line in lines {
        let text = logical(line);
        let mut place = 0;
        for (at, row) in rows(line, width.max(1)).into_iter().enumerate() {
            let shown = logical(&row);
            let start = text.get(place..).and_then(|rest| rest.find(&shown)).map_or(place, |found| place + found);
            let glue = (at > 0).then(|| text.get(place..start).unwrap_or_default().to_owned());
            place = (start + shown.len()).min(text.len());
            laid.push(LaidRow { row, glue });
        }
    }
    laid
}

/// The text of a row without the marks before it.
#[must_use]
pub fn logical(row: &[Span]) -> String {
    row.iter().filter(|span| !span.style.is_before_lines()).map(|span| span.text.as_str()).collect()
}

/// The number of columns of the marks before a row.
#[must_use]
pub fn before(row: &[Span]) -> usize {
    let marks: Vec<Span> = row.iter().take_while(|span| span.style.is_before_lines()).cloned().collect();
    row_columns(&marks)
}

/// The text of a row between two columns, without the marks before it.
#[must_use]
pub fn between(row: &[Span], from: usize, to: usize) -> String {
    let from = from.max(before(row));
    let (mut column, mut text) = (0, String::new());
    for c in row.iter().flat_map(|span| span.text.chars()) {
        if (from..to).contains(&column) {
            text.push(c);
        }
        column += c.width().unwrap_or(0);
    }
    text
}

/// A row with the text between two columns marked as selected.
#[must_use]
pub fn selected(row: Row, from: usize, to: usize) -> Row {
    let (mut column, mut marked) = (0, Row::new());
    for span in row {
        for c in span.text.chars() {
            let style = if (from..to).contains(&column) { Style::Selected } else { span.style };
            match marked.last_mut().filter(|last: &&mut Span| last.style == style) {
                Some(last) => last.text.push(c),
                None => marked.push(Span::new(style, c)),
            }
            column += c.width().unwrap_or(0);
        }
    }
    marked
}

/// The rows in which a text in lower case begins. A wrapped line is one text.
#[must_use]
pub fn rows_with(rows: &[&LaidRow], needle: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut first = 0;
    for line in rows.chunk_by(|_, next| next.glue.is_some()) {
        let (mut text, mut starts) = (String::new(), Vec::new());
        for laid in line {
            text.push_str(laid.glue.as_deref().unwrap_or_default());
            starts.push(text.len());
            text.push_str(&logical(&laid.row).to_lowercase());
        }
        for (at, _) in text.match_indices(needle) {
            let row = first + starts.partition_point(|start| *start <= at).saturating_sub(1);
            if found.last() != Some(&row) {
                found.push(row);
            }
        }
        first += line.len();
    }
    found
}

/// A row with the first place of a text marked as selected, in upper or lower case; or, if the text goes on in the next
/// row, its start at the end of this one.
#[must_use]
pub fn with_found(row: Row, text: &str) -> Row {
    let lower = |c: char| c.to_lowercase().next().unwrap_or(c);
    let needle: Vec<char> = text.trim().chars().map(lower).collect();
    let letters: Vec<char> = row.iter().flat_map(|span| span.text.chars()).map(lower).collect();
    let whole = letters.windows(needle.len().max(1)).position(|part| part == needle);
    let is_start = |at: &usize| needle.starts_with(&letters[*at..]) && !needle.is_empty();
    let Some(at) = whole.or_else(|| (0..letters.len()).find(is_start)) else { return row };
    let columns = |letters: &[char]| letters.iter().map(|c| c.width().unwrap_or(0)).sum::<usize>();
    let from = columns(&letters[..at]);
    selected(row, from, from + columns(&needle))
}

/// The rows of a text, with an empty one behind them if there are any. A Markdown text that grows at its end is not laid
/// out again.
#[derive(Debug, Clone, Default)]
pub struct LaidText {
    /// The rows that cannot change any more, and those behind them.
    settled: Vec<LaidRow>,
    open: Vec<LaidRow>,
    growing: Option<Growing>,
}

impl LaidText {
    /// The rows of lines.
    #[must_use]
    pub fn of(lines: &[Row], width: usize) -> Self {
        let mut rows = Self { settled: wrapped(lines, width), ..Self::default() };
        rows.end();
        rows
    }

    /// Takes a Markdown text, which begins like the one before.
    pub fn grow(&mut self, text: &str, width: usize) {
        let mut growing = self.growing.take().unwrap_or_else(|| {
            self.settled.clear();
            Growing::new(width)
        });
        let grown = growing.update(text);
        if grown.starts_over {
            self.settled.clear();
        }
        self.settled.extend(wrapped(&grown.settled, width));
        self.open = wrapped(&grown.open, width);
        self.growing = Some(growing);
        self.end();
    }

    fn end(&mut self) {
        if !self.is_empty() {
            self.open.push(LaidRow { row: Row::new(), glue: None });
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.settled.len() + self.open.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[must_use]
    pub fn get(&self, at: usize) -> Option<&LaidRow> {
        self.settled.get(at).or_else(|| self.open.get(at.checked_sub(self.settled.len())?))
    }

    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &LaidRow> {
        self.settled.iter().chain(&self.open)
    }
}

/// A row that fits, with a mark at its end if something does not.
#[must_use]
pub fn shortened(row: Row, width: usize) -> Row {
    if row_columns(&row) <= width {
        return row;
    }
    let mut row = fitted(row, width.saturating_sub(1));
    row.push(Span::new(Style::Dim, "…"));
    row
}

/// A row without what does not fit.
#[must_use]
pub fn fitted(row: Row, width: usize) -> Row {
    if row_columns(&row) <= width {
        return row;
    }
    let (mut left, mut fitted) = (width, Row::new());
    for mut span in row {
        let mut end = 0;
        for (at, c) in span.text.char_indices() {
            let wide = c.width().unwrap_or(0);
            if wide > left {
                left = 0;
                break;
            }
            left -= wide;
            end = at + c.len_utf8();
        }
        span.text.truncate(end);
        if !span.text.is_empty() {
            fitted.push(span);
        }
        if left == 0 {
            break;
        }
    }
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_marked_in_any_case_and_width() {
        let row = vec![Span::new(Style::Hang, "> "), Span::new(Style::Plain, "日本 Rain again")];
        let marked = with_found(row.clone(), " rain ");
        let found: Vec<&str> =
            marked.iter().filter(|span| span.style == Style::Selected).map(|span| span.text.as_str()).collect();
        assert_eq!(found, ["Rain"]);
        assert_eq!(logical(&marked), logical(&row), "nothing is lost");
        assert_eq!(with_found(row.clone(), "snow"), row);
        assert_eq!(with_found(row.clone(), ""), row);
        assert_eq!(between(&row, 7, 11), "Rain");
    }

    #[test]
    fn a_text_is_found_over_the_end_of_a_row() {
        let laid =
            wrapped(&[vec![Span::new(Style::Plain, "one two Three four")], vec![Span::new(Style::Plain, "x")]], 8);
        let rows: Vec<&LaidRow> = laid.iter().collect();
        assert_eq!(rows.len(), 4, "{rows:?}");
        assert_eq!(rows_with(&rows, "two three"), [0]);
        assert_eq!(rows_with(&rows, "three"), [1]);
        assert_eq!(rows_with(&rows, "o"), [0, 2]);
        assert_eq!(rows_with(&rows, "four x"), [0usize; 0], "another line is another text");
        let marked = with_found(laid[0].row.clone(), "two three");
        assert_eq!(marked.last().map(|span| (span.style, span.text.as_str())), Some((Style::Selected, "two")));
    }
}
