//! A page over the transcript: help, usage, a diff. It scrolls and can be searched.
//!
//! Invariant: only lines in view are laid out, so a diff of any length scrolls at once.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::changes::{self, SPLIT_WIDTH, Source};
use super::layout::{Context, Fold};
use crate::key::Key;
use crate::laid::logical;
use crate::wrap::rows;
use crate::{Row, Span, Style};
use codex_terminal::query;

/// A line, and a row of it.
type Place = (usize, usize);

#[derive(Debug)]
pub(super) struct Page {
    title: String,
    source: Source,
    cwd: PathBuf,
    /// The lines for a width from which on they differ.
    lines: RefCell<Option<(usize, Rc<[Row]>)>>,
    first: Place,
    /// The text being searched for, while it is typed.
    typing: Option<String>,
    sought: String,
}

impl Page {
    pub(super) fn new(title: impl Into<String>, lines: Vec<Row>) -> Self {
        Self::of(title, Source::Lines(lines), Path::new(""))
    }

    /// A page of changes; paths are relative to a folder.
    pub(super) fn of(title: impl Into<String>, source: Source, cwd: &Path) -> Self {
        let (title, cwd) = (title.into(), cwd.to_owned());
        let (lines, sought) = (RefCell::new(None), String::new());
        Self { title, source, cwd, lines, first: (0, 0), typing: None, sought }
    }

    /// The lines for a width.
    fn lines(&self, width: usize) -> Rc<[Row]> {
        // Only changes next to each other depend on the width.
        let key = match &self.source {
            Source::Files(_) if width >= SPLIT_WIDTH => width,
            Source::Files(_) | Source::Lines(_) => 0,
        };
        let mut known = self.lines.borrow_mut();
        if let Some((_, lines)) = known.as_ref().filter(|(known, _)| *known == key) {
            return Rc::clone(lines);
        }
        let context = Context { cwd: &self.cwd, width: key, fold: Fold::All };
        let lines: Rc<[Row]> = match &self.source {
            Source::Lines(lines) => lines.clone().into(),
            Source::Files(files) => files.iter().flat_map(|file| changes::of_file(file, context)).collect(),
        };
        *known = Some((key, Rc::clone(&lines)));
        lines
    }

    /// Handles a key; `false` closes the page.
    pub(super) fn press(&mut self, key: &Key, (width, height): (usize, usize)) -> bool {
        if let Some(typing) = &mut self.typing {
            match key {
                Key::Enter => {
                    self.sought = self.typing.take().unwrap_or_default();
                    self.find(width, false);
                }
                Key::Esc | Key::Ctrl('c') => self.typing = None,
                key => drop(query::edit(typing, key)),
            }
            return true;
        }
        let page = isize::try_from(height.saturating_sub(3)).unwrap_or(1).max(1);
        match key {
            Key::Esc | Key::Char('q') | Key::Ctrl('c' | 'd') => return false,
            Key::Up | Key::Char('k') => self.move_by(-1, (width, height)),
            Key::Down | Key::Char('j') => self.move_by(1, (width, height)),
            Key::PageUp => self.move_by(-page, (width, height)),
            Key::PageDown | Key::Char(' ') => self.move_by(page, (width, height)),
            Key::Home | Key::Char('g') => self.first = (0, 0),
            Key::End | Key::Char('G') => self.first = self.last((width, height)),
            Key::Char('/') | Key::Ctrl('f' | 's') => self.typing = Some(String::new()),
            Key::Char('n') => self.find(width, false),
            Key::Char('N') => self.find(width, true),
            _ => {}
        }
        true
    }

    /// Whether keys are the text of a search.
    pub(super) fn is_typing(&self) -> bool {
        self.typing.is_some()
    }

    pub(super) fn scroll(&mut self, by: isize, size: (usize, usize)) {
        self.move_by(by, size);
    }

    /// The first place from which on everything is in view.
    fn last(&self, (width, height): (usize, usize)) -> Place {
        let (lines, mut left) = (self.lines(width), height.saturating_sub(2));
        for (at, line) in lines.iter().enumerate().rev() {
            let count = rows(line, width.max(1)).len();
            if count >= left {
                return (at, count - left);
            }
            left -= count;
        }
        (0, 0)
    }

    fn move_by(&mut self, by: isize, size: (usize, usize)) {
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

    /// Goes to the next line with the text, or the one before.
    fn find(&mut self, width: usize, is_back: bool) {
        let needle = self.sought.to_lowercase();
        let lines = self.lines(width);
        let has = |at: &usize| logical(&lines[*at]).to_lowercase().contains(&needle);
        let here = self.first.0;
        let found = match is_back {
            _ if needle.is_empty() => None,
            true => (0..here.min(lines.len())).rev().find(has),
            false => (here + 1..lines.len()).find(has),
        };
        if let Some(at) = found {
            self.first = (at, 0);
        }
    }

    /// Its rows: a title, the text, and the keys.
    pub(super) fn rows(&self, (width, height): (usize, usize)) -> Vec<Row> {
        let lines = self.lines(width);
        let room = height.saturating_sub(2);
        let (first, mut skipped) = self.first.min(self.last((width, height)));
        let mut shown = vec![vec![Span::new(Style::Bar, format!(" {} ", self.title))]];
        let mut last = first;
        for (at, line) in lines.iter().enumerate().skip(first) {
            if shown.len() > room {
                break;
            }
            shown.extend(rows(line, width.max(1)).into_iter().skip(std::mem::take(&mut skipped)));
            last = at + 1;
        }
        shown.truncate(room + 1);
        shown.resize(height.saturating_sub(1).max(1), Row::new());
        let end = if let Some(typing) = &self.typing {
            format!("/{typing}")
        } else {
            let from = (first + 1).min(lines.len());
            format!("{from}–{last} of {} · / search · n next · N previous · q close", lines.len())
        };
        shown.push(vec![Span::new(Style::Dim, end)]);
        shown
    }
}
