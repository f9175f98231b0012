//! The state as a frame.
//!
//! Invariant: pure. A frame has exactly the rows of the screen and no row is wider than it, whatever its size.

use super::app::{App, Overlay};
use super::paint::Frame;
use crate::laid::fitted;
use crate::wrap::{row_columns, typed_rows_with};
use crate::{Row, Span, Style};

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
            Some(Overlay::Earlier(list) | Overlay::Prompts(list)) => list.rows((width, room)),
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
        view.into_iter().map(|(place, laid)| self.with_selection(place, laid.row)).collect()
    }

    fn below(&self) -> Below {
        let (width, height) = self.size;
        let mut rows = Vec::new();
        let mut cursor = None;
        if !self.panel.is_empty() {
            rows.extend(self.panel.shown(self.size, self.now, &self.settings.keymap.key_of("next-request")));
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
        }
        rows.push(self.status_row());
        Below { rows, cursor }
    }

    /// The line above the prompt.
    fn working_row(&self) -> Option<Row> {
        let text = match &self.running {
            Some(running) => {
                let steps = match running.steered {
                    0 => String::new(),
                    1 => " · 1 message sent".to_owned(),
                    count => format!(" · {count} messages sent"),
                };
                let seconds = self.now.saturating_duration_since(running.since).as_secs();
                format!("Working… {seconds} s{steps} · Esc or Ctrl-C to stop")
            }
            None if self.is_warned => "Press Ctrl-C again to quit".to_owned(),
            None if self.transcript.top.is_some() => "Scrolled back · Alt-> for the end".to_owned(),
            None => self.hint.clone()?,
        };
        Some(vec![Span::new(Style::Dim, text)])
    }

    /// The last row: the model, the policies, the context, the folder, the branch, the cost, and open requests.
    fn status_row(&self) -> Row {
        let mut parts: Vec<String> = Vec::new();
        if let Some(lost) = &self.lost {
            parts.push(format!("disconnected: {lost}"));
        }
        if let Some(thread) = &self.thread {
            parts.push(thread.model.clone());
            parts.push(format!("{}/{}", thread.sandbox, thread.approvals));
        }
        parts.extend(self.context_used());
        parts.push(folder(&self.transcript.cwd.to_string_lossy()));
        parts.extend(self.branch.clone());
        parts.extend(self.cost().map(|cost| format!("cost {}", crate::amount(cost))));
        if !self.panel.is_empty() {
            parts.push(format!("{} waiting for you", self.panel.len()));
        }
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let text = format!(" {}", crate::printable(&parts.join(" · ")).replace('\n', " "));
        let room = self.size.0.saturating_sub(row_columns(&[Span::new(Style::Bar, text.clone())]));
        vec![Span::new(Style::Bar, text + &" ".repeat(room))]
    }
}

/// The last two parts of a path.
fn folder(path: &str) -> String {
    let mut parts: Vec<&str> = path.rsplit('/').filter(|part| !part.is_empty()).take(2).collect();
    parts.reverse();
    parts.join("/")
}
