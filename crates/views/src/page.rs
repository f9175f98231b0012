//! A page of text over the transcript, which scrolls and is searched.
//!
//! Invariant: pure, except that the lines of a width are kept. Only the rows in view are wrapped.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use codex_terminal::key::Key;
use codex_terminal::laid::{LaidRow, logical, rows_with, with_found, wrapped};
use codex_terminal::wrap::{hint_rows, rows};
use codex_terminal::{Row, Span, Style, query};

/// A line, and a row of it.
type Place = (usize, usize);

/// Makes the lines for a width.
type Layout = Box<dyn Fn(usize) -> Vec<Row>>;

pub struct Page {
    title: String,
    layout: Layout,
    /// The width from which on the lines depend on it.
    depends_from: usize,
    lines: RefCell<Option<(usize, Rc<[Row]>)>>,
    first: Place,
    /// The text being searched for, while it is typed.
    typing: Option<String>,
    sought: String,
    /// The line that the search has found last; `None` if there was none.
    found: Option<usize>,
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").field("title", &self.title).field("first", &self.first).finish_non_exhaustive()
    }
}

impl Page {
    #[must_use]
    pub fn new(title: impl Into<String>, lines: Vec<Row>) -> Self {
        Self::laid(title, usize::MAX, Box::new(move |_| lines.clone()))
    }

    /// A page whose lines depend on the width from a certain one on.
    #[must_use]
    pub fn laid(title: impl Into<String>, depends_from: usize, layout: Layout) -> Self {
        let (lines, sought) = (RefCell::new(None), String::new());
        Self { title: title.into(), layout, depends_from, lines, first: (0, 0), typing: None, sought, found: None }
    }

    /// The lines for a width.
    fn lines(&self, width: usize) -> Rc<[Row]> {
        let key = if width >= self.depends_from { width } else { 0 };
        let mut known = self.lines.borrow_mut();
        if let Some((_, lines)) = known.as_ref().filter(|(known, _)| *known == key) {
            return Rc::clone(lines);
        }
        let lines: Rc<[Row]> = (self.layout)(key).into();
        *known = Some((key, Rc::clone(&lines)));
        lines
    }

    /// Handles a key; `false` closes the page.
    pub fn press(&mut self, key: &Key, (width, height): (usize, usize)) -> bool {
        if let Some(typing) = &mut self.typing {
            match key {
                Key::Enter => {
                    self.sought = self.typing.take().unwrap_or_default();
                    self.found = None;
                    self.find((width, height), false);
                }
                Key::Esc | Key::Ctrl('c') => self.typing = None,
                key => drop(query::edit(typing, key)),
            }
            return true;
        }
        let page = isize::try_from(height.saturating_sub(3)).unwrap_or(1).max(1);
        match key {
            Key::Esc | Key::Char('q') | Key::Ctrl('c' | 'd') => return false,
            Key::Up | Key::Char('k') => self.scroll(-1, (width, height)),
            Key::Down | Key::Char('j') => self.scroll(1, (width, height)),
            Key::PageUp => self.scroll(-page, (width, height)),
            Key::PageDown | Key::Char(' ') => self.scroll(page, (width, height)),
            Key::Home | Key::Char('g') => self.first = (0, 0),
            Key::End | Key::Char('G') => self.first = self.last((width, height)),
            Key::Char('/') | Key::Ctrl('f' | 's') => self.typing = Some(String::new()),
            Key::Char('n') => self.find((width, height), false),
            Key::Char('N') => self.find((width, height), true),
            _ => {}
        }
        true
    }

    /// Whether keys are the text of a search.
    #[must_use]
    pub fn is_typing(&self) -> bool {
        self.typing.is_some()
    }

    /// The first place from which on everything is in view.
    fn last(&self, (width, height): (usize, usize)) -> Place {
        let (lines, mut left) = (self.lines(width), height.saturating_sub(1 + self.end(width, height).len()));
        for (at, line) in lines.iter().enumerate().rev() {
            let count = rows(line, width.max(1)).len();
            if count >= left {
                return (at, count - left);
            }
            left -= count;
        }
        (0, 0)
    }

    /// Scrolls by rows: towards the start if negative.
    pub fn scroll(&mut self, by: isize, size: (usize, usize)) {
        let lines = self.lines(size.0);
        let count = |at: usize| lines.get(at).map_or(0, |line| rows(line, size.0.max(1)).len());
        let (mut line, mut row) = self.first;
        for _ in 0..by.unsigned_abs() {
            match by < 0 {
                true if row > 0 => row -= 1,
                true if line > 0 => (line, row) = (line - 1, count(line - 1).saturating_sub(1)),
                true => break,
                false if row + 1 < count(line) => row += 1,
                false if line + 1 < lines.len() => (line, row) = (line + 1, 0),
                false => break,
            }
        }
        self.first = (line, row).min(self.last(size));
    }

    /// Goes to the next line with the text, or the one before; from the last one to the first, and back. A new search begins
    /// with the lines in view.
    fn find(&mut self, size: (usize, usize), is_back: bool) {
        let needle = self.sought.to_lowercase();
        if needle.is_empty() {
            return;
        }
        let lines = self.lines(size.0);
        let has = |at: &usize| logical(&lines[*at]).to_lowercase().contains(&needle);
        let here = self.first.0.min(lines.len());
        self.found = match (is_back, self.found) {
            (false, None) => (here..lines.len()).chain(0..here).find(has),
            (false, Some(before)) => (before + 1..lines.len()).chain(0..=before).find(has),
            (true, before) => {
                let end = before.unwrap_or(here);
                (0..end).rev().chain((end..lines.len()).rev()).find(has)
            }
        };
        if let Some(at) = self.found {
            self.first = (at, 0).min(self.last(size));
        }
    }

    /// The rows below the text: the search, or the place and the keys.
    fn end(&self, width: usize, height: usize) -> Vec<Row> {
        if let Some(typing) = &self.typing {
            return vec![query::row("/", typing)];
        }
        let search = match (self.sought.is_empty(), self.found) {
            (true, _) => "/ search".to_owned(),
            (false, None) => format!("Not found: {} · / search", self.sought),
            (false, Some(_)) => "/ search · n next · N previous".to_owned(),
        };
        let mut end = hint_rows(&format!("↑↓ scroll · {search} · q close"), width);
        end.truncate((height / 4).clamp(1, 2));
        end
    }

    /// The rows of a line, with the text that was found in it marked.
    fn laid_line(&self, at: usize, line: &Row, width: usize) -> Vec<Row> {
        if self.found != Some(at) {
            return rows(line, width.max(1));
        }
        let laid = wrapped(std::slice::from_ref(line), width);
        let found = rows_with(&laid.iter().collect::<Vec<_>>(), &self.sought.to_lowercase());
        let marked = |(row, laid): (usize, LaidRow)| {
            if found.contains(&row) { with_found(laid.row, &self.sought) } else { laid.row }
        };
        laid.into_iter().enumerate().map(marked).collect()
    }

    /// Its rows: a title, the text, and the keys.
    #[must_use]
    pub fn rows(&self, (width, height): (usize, usize)) -> Vec<Row> {
        let lines = self.lines(width);
        let end = self.end(width, height);
        let room = height.saturating_sub(1 + end.len());
        let (first, mut skipped) = self.first.min(self.last((width, height)));
        let (mut shown, mut last) = (vec![Row::new()], first);
        for (at, line) in lines.iter().enumerate().skip(first) {
            if shown.len() > room {
                break;
            }
            shown.extend(self.laid_line(at, line, width).into_iter().skip(std::mem::take(&mut skipped)));
            last = at + 1;
        }
        let is_part = last - first < lines.len();
        let place = format!("· lines {}–{last} of {} ", first + 1, lines.len());
        let place = if is_part { place.as_str() } else { "" };
        shown[0] = vec![Span::new(Style::Bar, format!(" {} {place}", self.title))];
        shown.truncate(room + 1);
        shown.resize((room + 1).max(1), Row::new());
        shown.extend(end);
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        let line = |at: usize| vec![Span::new(Style::Plain, format!("line {at} of text"))];
        Page::new("Things", (0..30).map(line).collect())
    }

    const SIZE: (usize, usize) = (80, 8);

    fn text(page: &Page, size: (usize, usize)) -> Vec<String> {
        page.rows(size).iter().map(|row| row.iter().map(|span| span.text.as_str()).collect()).collect()
    }

    fn search(page: &mut Page, text: &str) {
        for key in ["/", text].concat().chars() {
            page.press(&Key::Char(key), SIZE);
        }
        page.press(&Key::Enter, SIZE);
    }

    fn marked(page: &Page) -> Option<String> {
        let rows = page.rows(SIZE);
        let row = rows.iter().find(|row| row.iter().any(|span| span.style == Style::Selected))?;
        Some(row.iter().map(|span| span.text.as_str()).collect())
    }

    #[test]
    fn a_search_marks_its_line_goes_around_and_says_if_there_is_none() {
        let mut page = page();
        search(&mut page, "LINE 2");
        assert_eq!(marked(&page).as_deref(), Some("line 2 of text"), "the first one in view, in any case");
        page.press(&Key::Char('n'), SIZE);
        assert_eq!(marked(&page).as_deref(), Some("line 20 of text"));
        page.press(&Key::Char('N'), SIZE);
        page.press(&Key::Char('N'), SIZE);
        assert_eq!(marked(&page).as_deref(), Some("line 29 of text"), "before the first one is the last one");
        page.press(&Key::Char('n'), SIZE);
        assert_eq!(marked(&page).as_deref(), Some("line 2 of text"));
        search(&mut page, "nowhere");
        let shown = text(&page, SIZE);
        assert!(shown.last().is_some_and(|row| row.contains("Not found: nowhere")), "{shown:?}");
        assert_eq!((marked(&page), shown[1].as_str()), (None, "line 2 of text"), "the place stays");
    }

    #[test]
    fn keys_are_not_cut_on_a_narrow_screen_and_any_size_is_filled() {
        let mut page = page();
        page.press(&Key::End, (20, 8));
        let shown = text(&page, (20, 8));
        assert_eq!(shown[5], "line 29 of text", "{shown:?}");
        assert!(shown[6..].join(" · ").ends_with("q close"), "{shown:?}");
        for (width, height) in [(1, 2), (3, 4), (20, 7), (200, 50)] {
            assert_eq!(page.rows((width, height)).len(), height, "{width}x{height}");
        }
    }
}
