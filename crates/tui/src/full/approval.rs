//! Approval requests in a panel above the status line.
//!
//! Invariant: that of [`crate::question`]: a key counts only if it was pressed after the choices were drawn, and nothing
//! can be approved before its last row was in view.

use std::collections::VecDeque;
use std::time::Instant;

use codex_wire::ids::RequestId;

use crate::key::Key;
use crate::laid::wrapped;
use crate::question::{Decision, Question, Readiness, choice};
use crate::{Row, Span, Style};

/// A request that waits.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) question: Question,
    /// The thread that asks, if it is not the open one.
    pub(super) from: Option<String>,
    /// The request in full.
    pub(super) lines: Vec<Row>,
}

#[derive(Debug)]
pub(super) struct Panel {
    waiting: VecDeque<Asked>,
    pub(super) readiness: Readiness,
    first_row: usize,
    is_seen: bool,
}

impl Default for Panel {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), readiness: Readiness::Ready, first_row: 0, is_seen: false }
    }
}

impl Panel {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn add(&mut self, asked: Asked, now: Instant) {
        self.waiting.push_back(asked);
        if self.waiting.len() == 1 {
            self.begin(now);
        }
    }

    fn begin(&mut self, now: Instant) {
        self.readiness = Readiness::begin(now);
        (self.first_row, self.is_seen) = (0, false);
    }

    /// Removes requests that are over; returns their ids.
    pub(super) fn withdraw(&mut self, now: Instant, is_over: impl Fn(&Question) -> bool) -> Vec<RequestId> {
        let was_first = self.waiting.front().is_some_and(|asked| is_over(&asked.question));
        let (over, waiting): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(|asked| is_over(&asked.question));
        self.waiting = waiting.into();
        if was_first {
            self.begin(now);
        }
        over.into_iter().map(|asked| asked.question.id).collect()
    }

    /// Whether the choices are to be seen.
    pub(super) fn has_choices(&self) -> bool {
        !self.is_empty() && self.readiness.has_choices()
    }

    /// Whether the choices were seen.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.readiness, Readiness::Open { .. })
    }

    /// Handles a key with the time of its press.
    pub(super) fn press(&mut self, key: &Key, at: Instant, size: (usize, usize)) -> Option<(Question, Decision)> {
        if !self.readiness.pressed(at) {
            return None;
        }
        let (count, room) = (self.rows(size.0).len(), room(size.1));
        let last = count.saturating_sub(room);
        let before = self.first_row;
        match key {
            Key::Up => self.first_row = self.first_row.saturating_sub(1),
            Key::Down => self.first_row = (self.first_row + 1).min(last),
            Key::PageUp => self.first_row = self.first_row.saturating_sub(room),
            Key::PageDown | Key::Char(' ') => self.first_row = (self.first_row + room).min(last),
            _ => {}
        }
        if self.first_row != before {
            if !self.is_seen {
                // New text has to be looked at first.
                self.readiness = Readiness::begin(at);
            }
            self.settle(size);
            return None;
        }
        let decision = self.waiting.front().and_then(|asked| asked.question.decide(key));
        let is_refusal = matches!(decision, Some(Decision::Decline | Decision::Cancel));
        let decision = decision.filter(|_| self.is_seen || is_refusal)?;
        let asked = self.waiting.pop_front()?;
        self.begin(at);
        Some((asked.question, decision))
    }

    /// Notes whether the last row is in view.
    pub(super) fn settle(&mut self, (width, height): (usize, usize)) {
        self.is_seen |= !self.is_empty() && self.first_row + room(height) >= self.rows(width).len();
    }

    fn rows(&self, width: usize) -> Vec<Row> {
        let lines = self.waiting.front().map_or(&[][..], |asked| &asked.lines);
        wrapped(lines, width).into_iter().map(|laid| laid.row).collect()
    }

    /// The panel: the request and the choices.
    pub(super) fn shown(&self, (width, height): (usize, usize)) -> Vec<Row> {
        let Some(asked) = self.waiting.front() else { return Vec::new() };
        let rows = self.rows(width);
        let (count, room) = (rows.len(), room(height));
        let others = if self.waiting.len() > 1 { format!("· 1 of {} ", self.waiting.len()) } else { String::new() };
        let from = asked.from.as_ref().map(|from| format!("· asked by {from} ")).unwrap_or_default();
        let title = format!(" Approval needed {others}{from}");
        let mut shown = vec![vec![Span::new(Style::Bar, title)]];
        shown.extend(rows.into_iter().skip(self.first_row).take(room));
        if !self.readiness.has_choices() {
            shown.push(vec![Span::new(Style::Dim, "…")]);
        } else if self.is_seen {
            shown.extend(crate::wrap::rows(&asked.question.choices(), width.max(1)));
        } else {
            let left = count.saturating_sub(self.first_row + room);
            let mut row = Row::from(choice("space", &format!("more ({left} rows)  ")));
            row.extend(choice("n", "no  "));
            row.extend(choice("esc", "no, and stop"));
            shown.extend(crate::wrap::rows(&row, width.max(1)));
        }
        shown
    }
}

/// The number of rows for the request on a screen of a height: one each is for the title, the choices and the status.
fn room(height: usize) -> usize {
    height.saturating_sub(4).max(1)
}
