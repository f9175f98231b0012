//! The state as a frame.
//!
//! Invariant: pure. A frame has exactly the rows of the screen and no row is wider than it, whatever its size.

use super::app::{App, Overlay};
use super::transcript::Place;
use crate::laid::{LaidRow, fitted, with_found};
use crate::wrap::{hint_rows, typed_rows_with};
use crate::{Row, Span, Style, one_line, printable};
use codex_dialogue::paint::Frame;

/// The text in the prompt of a new thread.
const INVITATION: &str = "Describe a task · / lists commands · @ names a file";

/// The parts of the screen below the transcript.
struct Below {
    rows: Vec<Row>,
    /// The cursor, among these rows.
    cursor: Option<(usize, usize)>,
}

impl App {
    /// Draws everything.
    pub(super) fn draw(&self) -> Frame {
        let (width, height) = self.size;
        let below = self.below();
        let room = height.saturating_sub(below.rows.len());
        let mut rows = match &self.overlay {
            Some(Overlay::Page(page)) => page.rows((width, room)),
            Some(Overlay::Board(_, board)) => board.rows((width, room)),
            Some(Overlay::Threads(threads)) => threads.rows((width, room)),
            Some(Overlay::Choice(_, list)) => list.rows((width, room)),
            Some(Overlay::Search(_)) | None => self.transcript_rows((width, room)),
        };
        rows.resize(room, Row::new());
        rows.extend(below.rows);
        let cut = rows.len().saturating_sub(height);
        rows.drain(..cut);
        let rows = rows.into_iter().map(|row| fitted(row, width)).collect();
        let cursor =
            below.cursor.map(|(row, column)| ((room + row).saturating_sub(cut), column.min(width.saturating_sub(1))));
        Frame { rows, cursor, theme: self.theme, is_whole: false }
    }

    /// The number of rows of the transcript.
    pub(super) fn transcript_size(&self) -> (usize, usize) {
        (self.size.0, self.size.1.saturating_sub(self.below().rows.len()))
    }

    fn transcript_rows(&self, size: (usize, usize)) -> Vec<Row> {
        let view = self.transcript.view(self.open_thread(), size);
        let row = |(place, laid): (Place, LaidRow)| match self.transcript.found {
            Some(found) if found == place => with_found(laid.row, &self.calls.sought),
            _ => self.with_selection(place, laid.row),
        };
        view.into_iter().map(row).collect()
    }

    fn below(&self) -> Below {
        let (width, height) = self.size;
        let mut rows = Vec::new();
        let mut cursor = None;
        if !self.panel.is_empty() {
            rows.extend(self.panel.shown(self.size, self.now));
        } else if self.overlay.as_ref().is_none_or(|overlay| matches!(overlay, Overlay::Search(_))) {
            rows.extend(self.working_row());
            rows.extend(self.queue_rows());
            rows.extend(self.composer.list_rows());
            let (text, at) = match &self.overlay {
                Some(Overlay::Search(text)) => (text.clone(), text.len()),
                _ => self.composer.editor.shown(),
            };
            let most = height.saturating_sub(rows.len() + 2).clamp(1, (height / 2).max(1));
            let is_search = matches!(self.overlay, Some(Overlay::Search(_)));
            let selected = self.composer.selection().filter(|_| !is_search).unwrap_or_default();
            let mark = if is_search { "/ " } else { self.composer.mark() };
            let (typed, (row, column)) = typed_rows_with(mark, &text, at, selected, (width.max(3), most));
            cursor = Some((rows.len() + row, column));
            rows.extend(typed);
            let is_new = self.thread.as_ref().is_some_and(|thread| !thread.has_turns);
            if is_new && text.is_empty() && !is_search {
                rows.last_mut().into_iter().for_each(|row| row.push(Span::new(Style::Dim, INVITATION)));
            }
        }
        rows.push(self.status_row());
        Below { rows, cursor }
    }

    /// The line above the prompt: the turn that runs, the last message to the person, and that the view is scrolled back. As
    /// many of its parts as fit.
    fn working_row(&self) -> Option<Row> {
        let key = |action: &str| self.settings.keymap.key_of(action);
        let mut parts = Vec::new();
        // Nobody knows what the model does while the server cannot be reached.
        let running = self.running.as_ref().filter(|_| self.lost.is_none());
        match self.waiting_messages() {
            0 => {}
            1 => parts.push("1 message waits for the connection".to_owned()),
            count => parts.push(format!("{count} messages wait for the connection")),
        }
        if let Some(running) = running {
            parts.push(format!("Working… {} s", self.now.saturating_duration_since(running.since).as_secs()));
        }
        if self.is_warned {
            parts.push(format!("Press {} again to quit", key("interrupt")));
        }
        parts.extend(self.hint.as_deref().map(|hint| one_line(&printable(hint))));
        if let Some(running) = running {
            // Once it was pressed, Ctrl-C quits.
            let keys = [key("stop"), if self.is_warned { String::new() } else { key("interrupt") }];
            let keys: Vec<&str> = keys.iter().map(String::as_str).filter(|key| !key.is_empty()).collect();
            parts.push(format!("{} to stop", keys.join(" or ")));
            match running.steered {
                0 => {}
                1 => parts.push("1 message sent".to_owned()),
                count => parts.push(format!("{count} messages sent")),
            }
        }
        if self.transcript.top.is_some() {
            parts.push(format!("Scrolled back, {} for the end", key("bottom")));
        }
        hint_rows(&parts.join(" · "), self.size.0).into_iter().next().filter(|_| !parts.is_empty())
    }
}
