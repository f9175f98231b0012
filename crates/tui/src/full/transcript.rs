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
use crate::laid::{LaidRow, LaidText, rows_with};

/// The key of the note before all items.
pub(super) const HEAD: &str = "head";

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
    /// Whether the item has grown since.
    is_behind: bool,
    rows: Rc<LaidText>,
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
    /// The row that a search has found last.
    pub(super) found: Option<Place>,
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
        let notes = self.entries.split_off(self.head());
        self.counted.clear();
        self.printed = 0;
        self.laid.borrow_mut().clear();
        (self.top, self.found) = (None, None);
        self.take_new(thread);
        self.entries.extend(notes);
    }

    /// The number of entries before all items.
    fn head(&self) -> usize {
        let is_head = |entry: &Entry| matches!(entry, Entry::Note { key: Some(key), .. } if key == HEAD);
        usize::from(self.entries.first().is_some_and(is_head))
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
        let (head, count) = (self.head(), earlier.len());
        for place in self.top.iter_mut().chain(&mut self.found).filter(|place| place.entry >= head) {
            place.entry += count;
        }
        // Items that are printed already are not printed again behind earlier ones.
        self.printed = if self.printed > 0 { self.printed + count } else { 0 };
        self.entries.splice(head..head, earlier);
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

    /// The text of an item has grown at its end.
    pub(super) fn grown(&mut self, id: &str) {
        if let Some(at) = self.position(id)
            && let Some(laid) = self.laid.borrow_mut().get_mut(&at)
        {
            laid.is_behind = true;
        }
    }

    /// The entry of an item; the last one without a name.
    fn position(&self, id: &str) -> Option<usize> {
        let is_it = |entry: &Entry| matches!(entry, Entry::Item { id: known, .. } if known == id || id.is_empty());
        self.entries.iter().rposition(is_it)
    }

    /// The rows of an entry, with an empty one behind them.
    pub(super) fn rows(&self, at: usize, thread: Option<&Thread>, width: usize) -> Rc<LaidText> {
        let Some(entry) = self.entries.get(at) else { return Rc::default() };
        let fold = match entry {
            Entry::Item { id, .. } => self.folds.get(id).copied().unwrap_or(self.fold),
            Entry::Note { .. } => Fold::All,
        };
        let mut laid = self.laid.borrow_mut();
        let before = match laid.remove(&at).filter(|known| known.width == width && known.fold == fold) {
            Some(known) if !known.is_behind => {
                let rows = Rc::clone(&known.rows);
                laid.insert(at, known);
                return rows;
            }
            known => known.map(|known| known.rows),
        };
        let rows = lay_out(entry, thread, Context { cwd: &self.cwd, width, fold }, before);
        if laid.len() >= MOST_LAID {
            laid.clear();
        }
        laid.insert(at, Laid { width, fold, is_behind: false, rows: Rc::clone(&rows) });
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
            for laid in rows.iter().skip(row).take(height - view.len()) {
                view.push((Place { entry, row }, laid.clone()));
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

    /// Goes to the next row with a text: first those in view, then towards the start, and from there on again from the
    /// end. An item that hides it is unfolded. Returns whether there is one.
    pub(super) fn find(&mut self, thread: Option<&Thread>, size: (usize, usize), text: &str) -> bool {
        let needle = text.trim().to_lowercase();
        let view = self.view(thread, size);
        let (Some((first, _)), Some((last, _))) = (view.first().cloned(), view.last().cloned()) else { return false };
        if needle.is_empty() {
            return false;
        }
        let in_view = first..=last;
        let before = self.found.take().filter(|found| in_view.contains(found));
        let from = before.unwrap_or(Place { entry: last.entry, row: usize::MAX });
        let upwards = (0..=from.entry).rev().map(|entry| (entry, false));
        let around = (from.entry..self.entries.len()).rev().map(|entry| (entry, true));
        for (entry, is_again) in upwards.chain(around) {
            let Some(place) = self.last_with(entry, thread, size.0, &needle, |place| is_again || *place < from) else {
                continue;
            };
            self.found = Some(place);
            if !in_view.contains(&place) {
                self.go_to(thread, size, place);
            }
            return true;
        }
        false
    }

    /// The last row of an entry with a text that counts. An item that hides it is unfolded.
    fn last_with(
        &mut self,
        entry: usize,
        thread: Option<&Thread>,
        width: usize,
        needle: &str,
        counts: impl Fn(&Place) -> bool,
    ) -> Option<Place> {
        if !self.may_have(entry, thread, needle) {
            return None;
        }
        let found = self.places_with(entry, thread, width, needle);
        if found.is_empty() && self.is_folded(entry) {
            self.set_fold(entry, Fold::All);
            return self.places_with(entry, thread, width, needle).pop();
        }
        found.into_iter().rev().find(counts)
    }

    /// Whether an entry has all words of a text, so that it is worth a layout. Marks between words are none of the text: those
    /// of Markdown are not shown.
    fn may_have(&self, entry: usize, thread: Option<&Thread>, needle: &str) -> bool {
        let Some(Entry::Item { turn, item, .. }) = self.entries.get(entry) else { return true };
        let known = thread.and_then(|thread| thread.turns().get(*turn)?.items().get(*item));
        let Some(known) = known else { return false };
        let mut texts: Vec<String> = known.texts().iter().map(|text| text.to_lowercase()).collect();
        texts.push(layout::labels(known));
        needle.split(|c: char| !c.is_alphanumeric()).all(|word| texts.iter().any(|text| text.contains(word)))
    }

    /// The places of an entry with a text.
    fn places_with(&self, entry: usize, thread: Option<&Thread>, width: usize, needle: &str) -> Vec<Place> {
        let rows = self.rows(entry, thread, width);
        let rows: Vec<&LaidRow> = rows.iter().collect();
        rows_with(&rows, needle).into_iter().map(|row| Place { entry, row }).collect()
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

/// Lays out an entry. Of an answer that streams in, only what is new since `before`.
fn lay_out(entry: &Entry, thread: Option<&Thread>, context: Context<'_>, before: Option<Rc<LaidText>>) -> Rc<LaidText> {
    match entry {
        Entry::Note { lines, .. } => Rc::new(LaidText::of(lines, context.width)),
        Entry::Item { turn, item, .. } => {
            let turn = thread.and_then(|thread| thread.turns().get(*turn));
            let Some((turn, item)) = turn.and_then(|turn| Some((turn, turn.items().get(*item)?))) else {
                return Rc::default();
            };
            if layout::is_repeated(item, turn) {
                return Rc::default();
            }
            if let Some(text) = layout::growing_text(item) {
                let mut rows = before.unwrap_or_default();
                Rc::make_mut(&mut rows).grow(text, context.width);
                return rows;
            }
            Rc::new(LaidText::of(&layout::lines(item, context), context.width))
        }
    }
}
