//! The mouse: the wheel scrolls, a drag selects text, and its end copies it.
//!
//! Invariant: copied text is that of the conversation, without line breaks and marks of the layout.

use super::app::{App, Effect, Overlay};
use super::transcript::{Entry, Place};
use crate::Row;
use crate::input::{Mouse, MouseKind};
use crate::laid::{before, between, logical, selected};

/// The rows that one step of the wheel scrolls.
const WHEEL: isize = 3;

/// Selected text, from one cell to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Selection {
    from: (Place, usize),
    to: (Place, usize),
    /// Whether the mouse was moved, so that it is no click.
    is_moved: bool,
}

impl Selection {
    fn ordered(&self) -> ((Place, usize), (Place, usize)) {
        if self.from <= self.to { (self.from, self.to) } else { (self.to, self.from) }
    }
}

impl App {
    pub(super) fn mouse(&mut self, mouse: Mouse) {
        match mouse.kind {
            MouseKind::WheelUp => self.wheel(-WHEEL),
            MouseKind::WheelDown => self.wheel(WHEEL),
            MouseKind::Press => {
                self.selection = self.place_at(mouse).map(|at| Selection { from: at, to: at, is_moved: false });
            }
            MouseKind::Drag => {
                let at = self.place_at(mouse);
                if let (Some(selection), Some(at)) = (&mut self.selection, at) {
                    (selection.to, selection.is_moved) = (at, true);
                }
            }
            MouseKind::Release => self.release(),
        }
    }

    fn wheel(&mut self, by: isize) {
        if self.panel.scroll(by, self.now, self.size) {
            return;
        }
        match &mut self.overlay {
            Some(Overlay::Page(page)) => page.scroll(by, (self.size.0, self.size.1.saturating_sub(1))),
            Some(Overlay::Board(_, board)) => board.scroll(by.signum()),
            Some(Overlay::Threads(threads)) => threads.scroll(by.signum()),
            Some(Overlay::Choice(_, list)) => list.scroll(by.signum()),
            Some(Overlay::Search(_)) | None => self.scroll(by),
        }
    }

    fn place_at(&self, mouse: Mouse) -> Option<(Place, usize)> {
        if self.overlay.is_some() {
            return None;
        }
        let view = self.transcript.view(self.open_thread(), self.transcript_size());
        let (place, _) = view.get(usize::from(mouse.row))?;
        Some((*place, usize::from(mouse.column)))
    }

    /// A click on an item shows more or less of it; a drag copies.
    fn release(&mut self) {
        let Some(selection) = self.selection else { return };
        if selection.is_moved {
            let text = self.selected(&selection);
            if !text.is_empty() {
                self.effect(Effect::Copy(text));
                self.hint = Some("Copied".to_owned());
            }
            return;
        }
        self.selection = None;
        let Place { entry, row } = selection.from.0;
        let rows = self.transcript.rows(entry, self.open_thread(), self.size.0);
        let is_mark = rows.get(row).is_some_and(|laid| logical(&laid.row).starts_with('…'));
        let is_head = row == 0 && matches!(self.transcript.entries.get(entry), Some(Entry::Item { .. }));
        if is_mark || is_head {
            self.transcript.toggle(entry);
        }
    }

    /// The text of a selection.
    fn selected(&self, selection: &Selection) -> String {
        let ((start, first), (end, last)) = selection.ordered();
        let mut text = String::new();
        for entry in start.entry..=end.entry {
            let rows = self.transcript.rows(entry, self.open_thread(), self.size.0);
            for (row, laid) in rows.iter().enumerate() {
                let place = Place { entry, row };
                if place < start || place > end {
                    continue;
                }
                match &laid.glue {
                    _ if text.is_empty() => {}
                    Some(glue) => text.push_str(glue),
                    None => text.push('\n'),
                }
                let from = if place == start { first } else { 0 };
                let to = if place == end { last + 1 } else { usize::MAX };
                text.push_str(&between(&laid.row, from, to));
            }
        }
        text.trim_end().to_owned()
    }

    /// A row with its selected part marked.
    pub(super) fn with_selection(&self, place: Place, row: Row) -> Row {
        let Some(selection) = self.selection.as_ref().filter(|selection| selection.is_moved) else { return row };
        let ((start, first), (end, last)) = selection.ordered();
        if place < start || place > end {
            return row;
        }
        let from = (if place == start { first } else { 0 }).max(before(&row));
        let to = if place == end { last + 1 } else { usize::MAX };
        selected(row, from, to)
    }

    /// Copies the last block of code of the last answer that has one.
    pub(super) fn copy_code(&mut self) {
        let items = self.open_thread().into_iter().flat_map(|thread| thread.turns().iter().rev());
        let mut items = items.flat_map(|turn| turn.items().iter().rev()).filter(|item| item.kind() == "agentMessage");
        let code = items.find_map(|item| crate::rich_text::last_code(item.members().get("text")?.as_str()?));
        match code {
            Some(code) => {
                self.effect(Effect::Copy(code));
                self.hint = Some("Copied the last block of code".to_owned());
            }
            None => self.hint = Some("There is no block of code yet".to_owned()),
        }
    }

    /// Copies the last answer of the model.
    pub(super) fn copy_last(&mut self) {
        let thread = self.open_thread();
        let mut items = thread
            .into_iter()
            .flat_map(|thread| thread.turns().iter().rev())
            .flat_map(|turn| turn.items().iter().rev());
        let last = items.find(|item| item.kind() == "agentMessage");
        let text = last.and_then(|item| item.members().get("text")).and_then(serde_json::Value::as_str);
        match text.map(str::to_owned) {
            Some(text) => {
                self.effect(Effect::Copy(text));
                self.hint = Some("Copied the last answer".to_owned());
            }
            None => self.hint = Some("There is no answer yet".to_owned()),
        }
    }
}
