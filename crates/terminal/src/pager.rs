//! Shows long text one page at a time.

use std::collections::VecDeque;

use crate::wrap::rows;
use crate::{Row, Span, Style};

/// Text in pages, some of which were shown.
#[derive(Debug, Default)]
pub struct Pager {
    rest: VecDeque<Row>,
    height: usize,
    shown: usize,
    count: usize,
}

impl Pager {
    /// Splits text into pages of a given width and height.
    #[must_use]
    pub fn new(text: &[Span], width: usize, height: usize) -> Self {
        let mut lines: Vec<Row> = vec![Row::new()];
        for span in text {
            let mut pieces = span.text.split('\n');
            let first = pieces.next().unwrap_or_default();
            let put = |lines: &mut Vec<Row>, text: &str| {
                if let Some(line) = lines.last_mut().filter(|_| !text.is_empty()) {
                    line.push(Span::new(span.style, text));
                }
            };
            put(&mut lines, first);
            for piece in pieces {
                lines.push(Row::new());
                put(&mut lines, piece);
            }
        }
        // Text that ends with a line break has no further line.
        lines.pop_if(|last| last.is_empty());
        let rest: VecDeque<Row> = lines.iter().flat_map(|line| rows(line, width)).collect();
        let height = height.max(1);
        let count = rest.len().div_ceil(height);
        Self { rest, height, shown: 0, count }
    }

    /// The next page, or nothing.
    pub fn next_page(&mut self) -> Vec<Span> {
        let taken = self.rest.drain(..self.height.min(self.rest.len())).collect::<Vec<_>>();
        self.shown += usize::from(!taken.is_empty());
        taken.into_iter().flat_map(|row| row.into_iter().chain([Span::new(Style::Plain, "\n")])).collect()
    }

    /// Whether all pages were shown.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    /// The number of pages shown, and the total.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        (self.shown, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(spans: &[Span]) -> String {
        spans.iter().map(|span| span.text.as_str()).collect()
    }

    #[test]
    fn pages_have_the_rows_that_fit_and_nothing_is_lost() {
        let spans = [Span::new(Style::Gutter, "| "), Span::new(Style::Bold, "one two three four five\nb\nc\n")];
        let mut pages = Pager::new(&spans, 18, 2);
        assert_eq!(text(&pages.next_page()), "| one two three\n| four five\n");
        assert!(!pages.is_over());
        assert_eq!(pages.progress(), (1, 2));
        assert_eq!(text(&pages.next_page()), "b\nc\n");
        assert!(pages.is_over());
        assert_eq!((pages.next_page(), pages.progress()), (Vec::new(), (2, 2)));
    }

    #[test]
    fn text_that_fits_is_one_page() {
        let mut pages = Pager::new(&[Span::new(Style::Plain, "a\n\nb")], 10, 5);
        assert_eq!(text(&pages.next_page()), "a\n\nb\n");
        assert!(pages.is_over());
        assert!(Pager::new(&[], 10, 5).is_over());
    }
}
