//! Rows of the screen that know their place in the text, so that copied text has no line breaks of the layout.

use unicode_width::UnicodeWidthChar;

use crate::wrap::{row_columns, rows};
use crate::{Row, Span};

/// A row of the screen, and its place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaidRow {
    pub row: Row,
    /// The text that the wrap has swallowed before this row; `None` if a line begins here.
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
