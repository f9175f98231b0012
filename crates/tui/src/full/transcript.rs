//! The transcript: the items of a thread and notes of the chat, the part of it in view, folds and search.
//!
//! Invariant: the place in view is a row of an entry and not a number of rows from the start, so that a resize or a fold
//! above it moves nothing, and only entries in view are laid out.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use codex_client::state::Thread;

use super::layout::{self, Context, Fold};
use crate::Row;
use crate::laid::{LaidRow, logical, wrapped};

/// The most entries whose layout is kept.
const MOST_LAID: usize = 2000;

/// A part of the transcript.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    /// An item, by the positions of its turn and of itself.
    Item { turn: usize, item: usize, id: String },
    /// A note of the chat. One with a key replaces the last one with the same key.
    Note { lines: Vec<Row>, key: Option<String> },
}

/// A row of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) entry: usize,
    pub(super) row: usize,
}

#[derive(Debug)]
struct Laid {
    width: usize,
    fold: Fold,
    rows: Rc<[LaidRow]>,
}

#[derive(Debug, Default)]
pub(super) struct Transcript {
    pub(super) entries: Vec<Entry>,
    /// The number of items of each turn that have an entry.
    counted: Vec<usize>,
    pub(super) fold: Fold,
    folds: HashMap<String, Fold>,
    laid: RefCell<HashMap<usize, Laid>>,
    /// The first row in view; `None` follows the end.
    pub(super) top: Option<Place>,
    pub(super) cwd: PathBuf,
    /// The number of entries that were printed to the shell's screen.
    printed: usize,
}

impl Transcript {
    /// An empty one that shows this part of items.
    pub(super) fn new(fold: Fold) -> Self {
        Self { fold, ..Self::default() }
    }

    /// Starts over with another thread.
    pub(super) fn clear(&mut self) {
        let fold = self.fold;
        *self = Self { fold, ..Self::default() };
    }

    /// The thread was read again: its items have other positions.
    pub(super) fn reset(&mut self, thread: &Thread) {
        self.entries.retain(|entry| matches!(entry, Entry::Note { .. }));
        let notes = std::mem::take(&mut self.entries);
        self.counted.clear();
        self.printed = 0;
        self.laid.borrow_mut().clear();
        self.top = None;
        self.take_new(thread);
        self.entries.extend(notes);
    }

    /// Adds entries for new items.
    pub(super) fn take_new(&mut self, thread: &Thread) {
        // Mostly only the last turn grows.
        self.counted.resize(thread.turns().len(), 0);
        for (turn, (told, counted)) in thread.turns().iter().zip(&mut self.counted).enumerate() {
            for (item, known) in told.items().iter().enumerate().skip(*counted) {
                self.entries.push(Entry::Item { turn, item, id: known.id().to_owned() });
            }
            *counted = told.items().len();
        }
    }

    /// Adds entries for this many earlier turns, which are now the first ones. The place in view stays.
    pub(super) fn take_earlier(&mut self, thread: &Thread, turns: usize) {
        for entry in &mut self.entries {
            if let Entry::Item { turn, .. } = entry {
                *turn += turns;
            }
        }
        let mut earlier = Vec::new();
        for (turn, told) in thread.turns().iter().take(turns).enumerate() {
            let entry = |(item, known): (usize, &codex_client::state::Item)| Entry::Item {
                turn,
                item,
                id: known.id().to_owned(),
            };
            earlier.extend(told.items().iter().enumerate().map(entry));
        }
        self.counted.splice(0..0, thread.turns().iter().take(turns).map(|turn| turn.items().len()));
        let count = earlier.len();
        if let Some(top) = &mut self.top {
            top.entry += count;
        }
        // Items that are printed already are not printed again behind earlier ones.
        self.printed = if self.printed > 0 { self.printed + count } else { 0 };
        self.entries.splice(0..0, earlier);
        self.laid.borrow_mut().clear();
    }

    /// The number of items.
    pub(super) fn count(&self) -> usize {
        self.counted.iter().sum()
    }

    /// Adds a note.
    pub(super) fn note(&mut self, lines: Vec<Row>) {
        self.entries.push(Entry::Note { lines, key: None });
    }

    /// Adds a note, or replaces the one with this key.
    pub(super) fn keyed(&mut self, key: &str, lines: Vec<Row>) {
        let is_it = |entry: &Entry| matches!(entry, Entry::Note { key: Some(known), .. } if known == key);
        let entry = Entry::Note { lines, key: Some(key.to_owned()) };
        match self.entries.iter().rposition(is_it) {
            Some(at) => {
                self.entries[at] = entry;
                self.laid.borrow_mut().remove(&at);
            }
            None => self.entries.push(entry),
        }
    }

    /// An item has changed.
    pub(super) fn changed(&mut self, id: &str) {
        if let Some(at) = self.position(id) {
            self.laid.borrow_mut().remove(&at);
        }
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.entries.iter().rposition(|entry| matches!(entry, Entry::Item { id: known, .. } if known == id))
    }

    /// The rows of an entry, with an empty one behind them.
    pub(super) fn rows(&self, at: usize, thread: Option<&Thread>, width: usize) -> Rc<[LaidRow]> {
        let Some(entry) = self.entries.get(at) else { return Rc::from([]) };
        let fold = match entry {
            Entry::Item { id, .. } => self.folds.get(id).copied().unwrap_or(self.fold),
            Entry::Note { .. } => Fold::All,
        };
        let mut laid = self.laid.borrow_mut();
        if let Some(known) = laid.get(&at).filter(|known| known.width == width && known.fold == fold) {
            return Rc::clone(&known.rows);
        }
        let lines = match entry {
            Entry::Note { lines, .. } => lines.clone(),
            Entry::Item { turn, item, .. } => {
                let known =
                    thread.and_then(|thread| thread.turns().get(*turn)).and_then(|turn| turn.items().get(*item));
                let context = Context { cwd: &self.cwd, width, fold };
                known.map(|item| layout::lines(item, context)).unwrap_or_default()
            }
        };
        let mut rows = wrapped(&lines, width);
        if !rows.is_empty() {
            rows.push(LaidRow { row: Row::new(), glue: None });
        }
        let rows: Rc<[LaidRow]> = rows.into();
        if laid.len() >= MOST_LAID {
            laid.clear();
        }
        laid.insert(at, Laid { width, fold, rows: Rc::clone(&rows) });
        rows
    }

    /// The number of entries whose layout is known.
    #[cfg(test)]
    pub(super) fn laid_out(&self) -> usize {
        self.laid.borrow().len()
    }

    /// The first row in view.
    pub(super) fn first(&self, thread: Option<&Thread>, (width, height): (usize, usize)) -> Place {
        self.top.unwrap_or_else(|| self.last_first(thread, (width, height)))
    }

    /// The first row in view at the end.
    fn last_first(&self, thread: Option<&Thread>, (width, height): (usize, usize)) -> Place {
        let mut left = height;
        for entry in (0..self.entries.len()).rev() {
            let count = self.rows(entry, thread, width).len();
            if count >= left {
                return Place { entry, row: count - left };
            }
            left -= count;
        }
        Place { entry: 0, row: 0 }
    }

    /// The rows in view.
    pub(super) fn view(&self, thread: Option<&Thread>, (width, height): (usize, usize)) -> Vec<(Place, LaidRow)> {
        let Place { mut entry, mut row } = self.first(thread, (width, height));
        let mut view = Vec::with_capacity(height);
        while view.len() < height && entry < self.entries.len() {
            let rows = self.rows(entry, thread, width);
            while view.len() < height && row < rows.len() {
                view.push((Place { entry, row }, rows[row].clone()));
                row += 1;
            }
            (entry, row) = (entry + 1, 0);
        }
        view
    }

    /// Scrolls by rows: towards the start if negative. At the end it follows what comes.
    pub(super) fn scroll(&mut self, thread: Option<&Thread>, size: (usize, usize), by: isize) {
        let Place { mut entry, mut row } = self.first(thread, size);
        let mut left = by.unsigned_abs();
        if by < 0 {
            while left > row && entry > 0 {
                left -= row + 1;
                entry -= 1;
                row = self.rows(entry, thread, size.0).len().saturating_sub(1);
            }
            row = row.saturating_sub(left);
        } else {
            while left > 0 && entry < self.entries.len() {
                let count = self.rows(entry, thread, size.0).len();
                if row + left < count {
                    row += left;
                    break;
                }
                left -= count - row.min(count);
                (entry, row) = (entry + 1, 0);
            }
        }
        self.go_to(thread, size, Place { entry, row });
    }

    /// Puts a row at the top, or follows the end if everything behind it is in view.
    pub(super) fn go_to(&mut self, thread: Option<&Thread>, size: (usize, usize), place: Place) {
        self.top = Some(place).filter(|place| *place < self.last_first(thread, size));
    }

    /// Puts an item at the top; `false` if it has no entry.
    pub(super) fn go_to_item(&mut self, thread: Option<&Thread>, size: (usize, usize), id: &str) -> bool {
        let Some(entry) = self.position(id) else { return false };
        self.go_to(thread, size, Place { entry, row: 0 });
        true
    }

    /// Goes to the previous or the next message of the user.
    pub(super) fn go_by_turn(&mut self, thread: &Thread, size: (usize, usize), is_back: bool) {
        let first = self.first(Some(thread), size);
        let is_user = |at: &usize| match &self.entries[*at] {
            Entry::Item { turn, item, .. } => thread
                .turns()
                .get(*turn)
                .and_then(|turn| turn.items().get(*item))
                .is_some_and(|item| item.kind() == "userMessage"),
            Entry::Note { .. } => false,
        };
        let found = if is_back {
            let end = first.entry + usize::from(first.row > 0);
            (0..end.min(self.entries.len())).rev().find(is_user)
        } else {
            (first.entry + 1..self.entries.len()).find(is_user)
        };
        match found {
            Some(entry) => self.go_to(Some(thread), size, Place { entry, row: 0 }),
            None if is_back => self.go_to(Some(thread), size, Place { entry: 0, row: 0 }),
            None => self.top = None,
        }
    }

    /// Goes to the next row with a text, towards the start or the end, and unfolds an item that hides it. Returns whether
    /// there is one.
    pub(super) fn find(&mut self, thread: Option<&Thread>, size: (usize, usize), text: &str, is_back: bool) -> bool {
        let needle = text.trim().to_lowercase();
        if needle.is_empty() || self.entries.is_empty() {
            return false;
        }
        let first = self.first(thread, size);
        let last = self.entries.len() - 1;
        let entries: Vec<usize> =
            if is_back { (0..=first.entry.min(last)).rev().collect() } else { (first.entry..=last).collect() };
        // Whether a row is beyond the place in view.
        let is_beyond = |place: &Place| if is_back { *place < first } else { *place > first };
        for entry in entries {
            if !self.may_have(entry, thread, &needle) {
                continue;
            }
            let mut found = self.places_with(entry, thread, size.0, &needle);
            if found.is_empty() && entry != first.entry && self.is_folded(entry) {
                self.set_fold(entry, Fold::All);
                found = self.places_with(entry, thread, size.0, &needle);
            }
            let found = if is_back {
                found.iter().rev().find(|place| is_beyond(place))
            } else {
                found.iter().find(|place| is_beyond(place))
            };
            if let Some(place) = found {
                self.top = Some(*place);
                return true;
            }
        }
        false
    }

    /// Whether the text of an entry has all words of a text, so that it is worth a layout.
    fn may_have(&self, entry: usize, thread: Option<&Thread>, needle: &str) -> bool {
        let Some(Entry::Item { turn, item, .. }) = self.entries.get(entry) else { return true };
        let known = thread.and_then(|thread| thread.turns().get(*turn)?.items().get(*item));
        let texts: Vec<String> =
            known.map(|item| item.texts().iter().map(|text| text.to_lowercase()).collect()).unwrap_or_default();
        needle.split_whitespace().all(|word| texts.iter().any(|text| text.contains(word)))
    }

    /// The places of an entry with a text.
    fn places_with(&self, entry: usize, thread: Option<&Thread>, width: usize, needle: &str) -> Vec<Place> {
        let rows = self.rows(entry, thread, width);
        let has = |row: &usize| logical(&rows[*row].row).to_lowercase().contains(needle);
        (0..rows.len()).filter(has).map(|row| Place { entry, row }).collect()
    }

    fn is_folded(&self, at: usize) -> bool {
        match self.entries.get(at) {
            Some(Entry::Item { id, .. }) => self.folds.get(id).copied().unwrap_or(self.fold) != Fold::All,
            Some(Entry::Note { .. }) | None => false,
        }
    }

    fn set_fold(&mut self, at: usize, fold: Fold) {
        if let Some(Entry::Item { id, .. }) = self.entries.get(at) {
            self.folds.insert(id.clone(), fold);
        }
    }

    /// Shows all of one entry, or only its command if everything is shown.
    pub(super) fn toggle(&mut self, at: usize) {
        self.set_fold(at, if self.is_folded(at) { Fold::All } else { Fold::Commands });
    }

    /// The next fold level for one entry; `None` if it cannot be folded.
    pub(super) fn cycle_entry(&mut self, at: usize) -> Option<Fold> {
        let Some(Entry::Item { id, .. }) = self.entries.get(at) else { return None };
        let next = self.folds.get(id).copied().unwrap_or(self.fold).next();
        self.set_fold(at, next);
        Some(next)
    }

    /// The next fold level for everything.
    pub(super) fn cycle(&mut self) -> Fold {
        self.folds.clear();
        self.fold = self.fold.next();
        self.fold
    }

    /// The rows that were not printed yet, up to an item that still grows unless `is_all`.
    pub(super) fn unprinted(&mut self, thread: Option<&Thread>, width: usize, is_all: bool) -> Vec<Row> {
        let mut out = Vec::new();
        while self.printed < self.entries.len() {
            let is_open = match &self.entries[self.printed] {
                Entry::Item { turn, item, .. } => {
                    let known = thread.and_then(|thread| thread.turns().get(*turn)?.items().get(*item));
                    known.is_some_and(|item| !item.is_complete())
                }
                Entry::Note { .. } => false,
            };
            if is_open && !is_all {
                break;
            }
            out.extend(self.rows(self.printed, thread, width).iter().map(|laid| laid.row.clone()));
            self.printed += 1;
        }
        out
    }
}
