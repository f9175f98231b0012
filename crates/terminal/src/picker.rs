//! A list to pick from: arrows move, typing searches, a number selects an entry.

use crate::key::Key;
use crate::wrap::row_columns;
use crate::{Row, Span, Style, printable, query, selection};

/// The widest title next to which others are aligned.
const MOST_TITLE: usize = 30;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// A leading note, such as the time of the last change.
    pub note: String,
    pub title: String,
    /// Words behind the title that explain it.
    pub help: String,
}

/// The effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picked {
    /// Nothing yet.
    Open,
    /// The index of the picked entry.
    Entry(usize),
    /// Cancelled.
    Nothing,
}

#[derive(Debug, Default)]
pub struct Picker {
    entries: Vec<Entry>,
    query: String,
    /// The position of the selection among the visible entries.
    at: usize,
}

impl Picker {
    #[must_use]
    pub fn new(entries: Vec<Entry>) -> Self {
        Self { entries, ..Self::default() }
    }

    /// Selects an entry.
    pub fn select(&mut self, at: usize) {
        self.at = at.min(self.entries.len().saturating_sub(1));
    }

    /// The search text.
    #[must_use]
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Handles a key.
    pub fn press(&mut self, key: &Key) -> Picked {
        let count = self.found().len();
        match key {
            Key::Enter => return self.chosen().map_or(Picked::Open, Picked::Entry),
            Key::Esc | Key::Ctrl('c' | 'd') => return Picked::Nothing,
            Key::Ctrl('n') => self.at = selection::moved(self.at, count, &Key::Down).unwrap_or(self.at),
            key if query::edit(&mut self.query, key) => self.at = self.number().unwrap_or(0),
            key => self.at = selection::moved(self.at, count, key).unwrap_or(self.at),
        }
        Picked::Open
    }

    /// The entry selected by its number.
    fn number(&self) -> Option<usize> {
        self.query
            .trim()
            .parse::<usize>()
            .ok()
            .filter(|number| (1..=self.entries.len()).contains(number))
            .map(|n| n - 1)
    }

    /// The indices of the entries that match the search text.
    fn found(&self) -> Vec<usize> {
        if self.number().is_some() {
            return (0..self.entries.len()).collect();
        }
        let words: Vec<String> = self.query.split_whitespace().map(str::to_lowercase).collect();
        let fits = |entry: &Entry| {
            let text = format!("{} {} {}", entry.note, entry.title, entry.help).to_lowercase();
            words.iter().all(|word| text.contains(word.as_str()))
        };
        (0..self.entries.len()).filter(|place| fits(&self.entries[*place])).collect()
    }

    /// The selected entry.
    #[must_use]
    pub fn chosen(&self) -> Option<usize> {
        self.found().get(self.at).copied()
    }

    /// The rows around the selection that fit the given width and height.
    #[must_use]
    pub fn rows(&self, width: usize, height: usize) -> Vec<Row> {
        let found = self.found();
        if found.is_empty() {
            return vec![vec![Span::new(Style::Dim, "  nothing matches")]];
        }
        let first = selection::first_in_view(self.at, found.len(), height);
        let explained = self.entries.iter().filter(|entry| !entry.help.is_empty());
        let widest = explained.map(|entry| entry.title.chars().count()).max().unwrap_or(0).min(MOST_TITLE);
        let row = |(place, number): (usize, &usize)| {
            let Entry { note, title, help } = &self.entries[*number];
            let is_chosen = place == self.at;
            let style = if is_chosen { Style::Bold } else { Style::Plain };
            let mark = if is_chosen { "> " } else { "  " };
            let mut row = vec![Span::new(style, format!("{mark}{:>3}  ", number + 1))];
            row.extend((!note.is_empty()).then(|| Span::new(Style::Dim, format!("{note}  "))));
            let room = |row: &Row| width.saturating_sub(row_columns(row) + 1);
            row.push(Span::new(style, cut(title, room(&row))));
            if !help.is_empty() && room(&row) > 2 {
                row.push(Span::new(style, " ".repeat(widest.saturating_sub(title.chars().count()))));
                row.push(Span::new(Style::Dim, format!("  {}", cut(help, room(&row).saturating_sub(2)))));
            }
            row
        };
        found.iter().enumerate().skip(first).take(height).map(row).collect()
    }
}

/// Shortens text to one line of at most `columns` columns.
fn cut(text: &str, columns: usize) -> String {
    let line = printable(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned();
    let width = |text: &str| row_columns(&[Span::new(Style::Plain, text)]);
    if width(&line) <= columns {
        return line;
    }
    let mut short = String::new();
    for c in line.chars() {
        if width(&short) + width(c.encode_utf8(&mut [0; 4])) + 1 > columns {
            break;
        }
        short.push(c);
    }
    short + "…"
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn picker() -> Picker {
        let titles = ["fix the parser", "Write docs", "review: current\nchanges", "日本語のとても長い題名がここにある"];
        let entry = |(at, title): (usize, &&str)| Entry {
            note: format!("May {}", at + 1),
            title: (*title).to_owned(),
            ..Entry::default()
        };
        Picker::new(titles.iter().enumerate().map(entry).collect())
    }

    #[track_caller]
    fn shown(picker: &Picker, height: usize) -> String {
        let text = |row: &Row| row.iter().map(|span| span.text.as_str()).collect::<String>() + "\n";
        picker.rows(34, height).iter().map(text).collect()
    }

    fn check(picker: &Picker, height: usize, expected: Expect) {
        expected.assert_eq(&shown(picker, height));
    }

    #[test]
    fn arrows_move_within_the_list() {
        let mut picker = picker();
        assert_eq!(picker.press(&Key::Up), Picked::Open);
        for _ in 0..9 {
            picker.press(&Key::Down);
        }
        picker.press(&Key::Up);
        check(
            &picker,
            3,
            expect![[r#"
                    2  May 2  Write docs
                >   3  May 3  review: current ch…
                    4  May 4  日本語のとても長い…
            "#]],
        );
        assert_eq!(picker.press(&Key::Enter), Picked::Entry(2));
        assert_eq!(picker.press(&Key::Esc), Picked::Nothing);
    }

    #[test]
    fn typing_searches() {
        let mut picker = picker();
        for c in "doc WR".chars() {
            picker.press(&Key::Char(c));
        }
        check(
            &picker,
            3,
            expect![[r#"
                >   2  May 2  Write docs
            "#]],
        );
        assert_eq!(picker.press(&Key::Enter), Picked::Entry(1));
        picker.press(&Key::Char('!'));
        assert_eq!(shown(&picker, 3), "  nothing matches\n");
        assert_eq!(picker.press(&Key::Enter), Picked::Open);
        picker.press(&Key::Ctrl('u'));
        assert_eq!(picker.press(&Key::Enter), Picked::Entry(0));
    }

    #[test]
    fn a_number_goes_to_its_entry() {
        let mut picker = picker();
        picker.press(&Key::Char('3'));
        assert_eq!(picker.press(&Key::Enter), Picked::Entry(2));
        picker.press(&Key::Char('0'));
        assert_eq!(picker.press(&Key::Enter), Picked::Open, "there is no entry 30, and nothing holds that text");
    }
}
