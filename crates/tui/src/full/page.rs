//! A page over the transcript: help, usage, a diff. It scrolls and can be searched.

use super::layout::{logical, wrapped};
use crate::key::Key;
use crate::{Row, Span, Style};

#[derive(Debug)]
pub(super) struct Page {
    title: String,
    lines: Vec<Row>,
    first: usize,
    /// The text being searched for, while it is typed.
    typing: Option<String>,
    sought: String,
}

impl Page {
    pub(super) fn new(title: impl Into<String>, lines: Vec<Row>) -> Self {
        Self { title: title.into(), lines, first: 0, typing: None, sought: String::new() }
    }

    /// Handles a key; `false` closes the page.
    pub(super) fn press(&mut self, key: &Key, (width, height): (usize, usize)) -> bool {
        if let Some(typing) = &mut self.typing {
            match key {
                Key::Char(c) => typing.push(*c),
                Key::Backspace => drop(typing.pop()),
                Key::Enter => {
                    self.sought = self.typing.take().unwrap_or_default();
                    self.find(width);
                }
                Key::Esc | Key::Ctrl('c') => self.typing = None,
                _ => {}
            }
            return true;
        }
        let last = wrapped(&self.lines, width).len().saturating_sub(height.saturating_sub(2));
        match key {
            Key::Esc | Key::Char('q') | Key::Ctrl('c' | 'd') => return false,
            Key::Up | Key::Char('k') => self.first = self.first.saturating_sub(1),
            Key::Down | Key::Char('j') => self.first += 1,
            Key::PageUp => self.first = self.first.saturating_sub(height.saturating_sub(3)),
            Key::PageDown | Key::Char(' ') => self.first += height.saturating_sub(3),
            Key::Home | Key::Char('g') => self.first = 0,
            Key::End | Key::Char('G') => self.first = last,
            Key::Char('/') | Key::Ctrl('f') => self.typing = Some(String::new()),
            Key::Char('n') => self.find(width),
            _ => {}
        }
        self.first = self.first.min(last);
        true
    }

    pub(super) fn scroll(&mut self, by: isize) {
        self.first = self.first.saturating_add_signed(by);
    }

    fn find(&mut self, width: usize) {
        let needle = self.sought.to_lowercase();
        let rows = wrapped(&self.lines, width);
        let has = |(at, _): &(usize, _)| *at > self.first;
        let mut after = rows.iter().enumerate().filter(has);
        let found = after.find(|(_, laid)| logical(&laid.row).to_lowercase().contains(&needle));
        if let Some((at, _)) = found.filter(|_| !needle.is_empty()) {
            self.first = at;
        }
    }

    /// Its rows: a title, the text, and the keys.
    pub(super) fn rows(&self, (width, height): (usize, usize)) -> Vec<Row> {
        let rows = wrapped(&self.lines, width);
        let room = height.saturating_sub(2);
        let first = self.first.min(rows.len().saturating_sub(room));
        let count = rows.len();
        let mut shown = vec![vec![Span::new(Style::Bar, format!(" {} ", self.title))]];
        shown.extend(rows.into_iter().skip(first).take(room).map(|laid| laid.row));
        shown.resize(height.saturating_sub(1).max(1), Row::new());
        let end = match &self.typing {
            Some(typing) => format!("/{typing}"),
            None => format!("{}–{} of {count} · / search · n next · q close", first + 1, (first + room).min(count)),
        };
        shown.push(vec![Span::new(Style::Dim, end)]);
        shown
    }
}
