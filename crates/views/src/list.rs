//! A list to pick from, on the whole screen.

use codex_terminal::key::Key;
use codex_terminal::picker::{Entry, Picked, Picker};
use codex_terminal::wrap::hint_rows;
use codex_terminal::{Row, Span, Style, query};

/// A list to pick from, with a title. Each entry stands for a value.
#[derive(Debug)]
pub struct List {
    title: String,
    pub values: Vec<String>,
    picker: Picker,
}

impl List {
    #[must_use]
    pub fn new(title: &str, entries: Vec<(String, Entry)>) -> Self {
        let (values, entries) = entries.into_iter().unzip();
        Self { title: title.to_owned(), values, picker: Picker::new(entries) }
    }

    /// The same with the entry of a value selected, if there is one.
    #[must_use]
    pub fn at(mut self, value: &str) -> Self {
        self.picker.select(self.values.iter().position(|known| known == value).unwrap_or(0));
        self
    }

    /// The value of the selected entry.
    #[must_use]
    pub fn selected(&self) -> Option<&str> {
        self.values.get(self.picker.chosen()?).map(String::as_str)
    }

    pub fn press(&mut self, key: &Key) -> Picked {
        self.picker.press(key)
    }

    /// Moves the selection, as the wheel does.
    pub fn scroll(&mut self, by: isize) {
        self.picker.press(if by < 0 { &Key::Up } else { &Key::Down });
    }

    #[must_use]
    pub fn rows(&self, (width, height): (usize, usize)) -> Vec<Row> {
        let keys = hint_rows("type to search · arrows or a number select · Enter choose · Esc cancel", width);
        let room = height.saturating_sub(2 + keys.len()).max(1);
        let mut rows = vec![vec![Span::new(Style::Bar, format!(" {} ", self.title))]];
        rows.extend(self.picker.rows(width, room));
        rows.resize(room + 1, Row::new());
        rows.push(query::row("> ", self.picker.query()));
        rows.extend(keys);
        rows
    }
}
