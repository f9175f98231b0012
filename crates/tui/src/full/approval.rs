//! Requests in a panel above the status line: approvals, and forms of MCP servers and models.
//!
//! Invariant: that of [`crate::question`]: a key counts only if it was pressed after the choices were drawn, and nothing
//! can be approved before its last row was in view.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use codex_client::approvals;
use codex_dialogue::form::{Form, FormKey};
use codex_wire::ids::RequestId;

use crate::key::Key;
use crate::keymap::Keymap;
use crate::laid::wrapped;
use crate::question::{Decision, Question, Readiness, choice};
use crate::reply::{filled_in, reply};
use crate::wrap::choice_rows;
use crate::{Row, Span, Style};

/// The most open requests that are listed.
const MOST_LISTED: usize = 4;

/// A request that waits.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) question: Question,
    /// The thread that asks, if it is not the open one.
    pub(super) from: Option<String>,
    /// The request in full.
    pub(super) lines: Vec<Row>,
    /// The form to fill in.
    pub(super) form: Option<Form>,
    /// The time at which the server continues without an answer.
    pub(super) until: Option<Instant>,
}

/// A request that was answered.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) question: Question,
    pub(super) reply: approvals::Decision,
    /// The line that stays in the transcript.
    pub(super) past: &'static str,
    pub(super) is_cancelled: bool,
    pub(super) is_accepted: bool,
}

#[derive(Debug)]
pub(super) struct Panel {
    waiting: VecDeque<Asked>,
    pub(super) readiness: Readiness,
    first_row: usize,
    is_seen: bool,
    /// The keys of choices that a person has changed.
    changed: Vec<(String, String)>,
    /// The key that shows the next request.
    next: String,
}

/// The keys that choices name, and their actions.
const ACTIONS: &[(&str, &str)] = &[
    ("y", "approve"),
    ("a", "approve-session"),
    ("p", "approve-always"),
    ("n", "decline"),
    ("esc", "cancel"),
    ("space", "request-page-down"),
];

impl Panel {
    pub(super) fn new(keymap: &Keymap) -> Self {
        let changed = |(key, action): &(&str, &str)| {
            let known = keymap.key_of(action);
            (known.to_lowercase() != *key).then(|| (format!("[{key}] "), format!("[{known}] ")))
        };
        Self {
            waiting: VecDeque::new(),
            readiness: Readiness::Ready,
            first_row: 0,
            is_seen: false,
            changed: ACTIONS.iter().filter_map(changed).collect(),
            next: keymap.key_of("next-request"),
        }
    }

    /// The rows of choices, with the keys that the person has given them. One without a key is left out.
    fn choice_rows(&self, choices: &[Span], width: usize) -> Vec<Row> {
        let mut row = Row::new();
        for choice in choices.chunk_by(|_, next| next.style != Style::Bold) {
            let Some((key, rest)) = choice.split_first() else { continue };
            match self.changed.iter().find(|(old, _)| *old == key.text) {
                Some((_, new)) if new == "[] " => continue,
                Some((_, new)) => row.push(Span::new(key.style, new.as_str())),
                None => row.push(key.clone()),
            }
            row.extend_from_slice(rest);
        }
        choice_rows(&row, width)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The requests on the status line: their number, and the threads that ask besides the open one.
    pub(super) fn waiting(&self) -> String {
        let mut from: Vec<&str> = self.waiting.iter().filter_map(|asked| asked.from.as_deref()).collect();
        from.dedup();
        let from = if from.is_empty() { String::new() } else { format!(" ({})", from.join(", ")) };
        format!("{} waiting for you{from}", self.len())
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

    /// Whether keys go into fields, so that letters are no answers.
    pub(super) fn has_form(&self) -> bool {
        self.waiting.front().is_some_and(|asked| asked.form.is_some())
    }

    /// The time at which something shown changes.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let left = self.waiting.front()?.until?.checked_duration_since(now)?;
        // The seconds that are left are shown.
        Some(now + Duration::from_nanos(u64::from(left.subsec_nanos()).max(1_000_000)))
    }

    /// Handles a key with the time of its press.
    pub(super) fn press(&mut self, key: &Key, at: Instant, size: (usize, usize)) -> Option<Answered> {
        if !self.readiness.pressed(at) {
            return None;
        }
        if self.has_form() {
            return self.press_form(key, at, size);
        }
        let (count, room) = (self.rows(size.0).0.len(), self.room(size));
        let last = count.saturating_sub(room);
        let before = self.first_row;
        match key {
            Key::Char('\t') if self.waiting.len() > 1 => {
                self.waiting.rotate_left(1);
                self.begin(at);
                return None;
            }
            Key::Up => self.first_row = self.first_row.saturating_sub(1),
            Key::Down => self.first_row = (self.first_row + 1).min(last),
            Key::PageUp => self.first_row = self.first_row.saturating_sub(room),
            Key::Char(' ') => self.first_row = (self.first_row + room).min(last),
            _ => {}
        }
        if self.first_row != before {
            self.scrolled(at, size);
            return None;
        }
        let decision = self.waiting.front().and_then(|asked| asked.question.decide(key));
        if decision.is_none() {
            self.readiness.missed(key, at);
        }
        let is_refusal = matches!(decision, Some(Decision::Decline | Decision::Cancel));
        let decision = decision.filter(|_| self.is_seen || is_refusal)?;
        self.answered(decision, at)
    }

    fn scrolled(&mut self, at: Instant, size: (usize, usize)) {
        if !self.is_seen {
            // New text has to be looked at first.
            self.readiness = Readiness::begin(at);
        }
        self.settle(size);
    }

    /// Scrolls a request that is longer than its room, as the wheel does; `false` if there is nothing to scroll.
    pub(super) fn scroll(&mut self, by: isize, at: Instant, size: (usize, usize)) -> bool {
        let last = self.rows(size.0).0.len().saturating_sub(self.room(size));
        if self.is_empty() || last == 0 {
            return false;
        }
        let before = self.first_row;
        self.first_row = before.saturating_add_signed(by).min(last);
        if self.first_row != before {
            self.scrolled(at, size);
        }
        true
    }

    /// Keys of a form. Esc cancels, and everything else is for its fields.
    fn press_form(&mut self, key: &Key, at: Instant, size: (usize, usize)) -> Option<Answered> {
        if matches!(key, Key::Esc | Key::Ctrl('c')) {
            return self.answered(Decision::Cancel, at);
        }
        let form = self.waiting.front_mut()?.form.as_mut()?;
        match form.press(key) {
            FormKey::Send => {
                let values = form.answer();
                let Asked { question, .. } = self.waiting.pop_front()?;
                self.begin(at);
                let reply = filled_in(&question, values);
                Some(Answered { question, reply, past: "answered", is_cancelled: false, is_accepted: true })
            }
            FormKey::Decline => self.answered(Decision::Decline, at),
            FormKey::Changed => {
                self.follow_focus(size);
                None
            }
            FormKey::Ignored => {
                let page = self.room(size);
                match key {
                    Key::PageUp => self.first_row = self.first_row.saturating_sub(page),
                    Key::PageDown => self.first_row += page,
                    _ => {}
                }
                None
            }
        }
    }

    /// Scrolls to the field with the focus.
    fn follow_focus(&mut self, (width, height): (usize, usize)) {
        let (_, focus) = self.rows(width);
        let room = self.room((width, height));
        if focus < self.first_row {
            self.first_row = focus;
        } else if focus >= self.first_row + room {
            self.first_row = focus + 1 - room;
        }
    }

    fn answered(&mut self, decision: Decision, at: Instant) -> Option<Answered> {
        let Asked { question, .. } = self.waiting.pop_front()?;
        self.begin(at);
        Some(Answered {
            reply: reply(&question, decision),
            question,
            past: decision.past(),
            is_cancelled: decision == Decision::Cancel,
            is_accepted: matches!(decision, Decision::Accept),
        })
    }

    /// Notes whether the last row is in view.
    pub(super) fn settle(&mut self, (width, height): (usize, usize)) {
        if !self.is_empty() {
            let (count, room) = (self.rows(width).0.len(), self.room((width, height)));
            self.first_row = self.first_row.min(count.saturating_sub(room));
            // On a screen that is too small for the choices, rows of the request are out of view.
            let fits = height >= room + self.below(width);
            self.is_seen |= fits && self.first_row + room >= count;
        }
    }

    /// The rows of the request, and the one with the focus.
    fn rows(&self, width: usize) -> (Vec<Row>, usize) {
        let Some(asked) = self.waiting.front() else { return (Vec::new(), 0) };
        let row = |lines: &[Row]| wrapped(lines, width).into_iter().map(|laid| laid.row).collect::<Vec<Row>>();
        let mut rows = row(&asked.lines);
        let Some(form) = &asked.form else { return (rows, 0) };
        let (lines, focus) = form.lines();
        let focus = rows.len() + row(lines.get(..focus).unwrap_or_default()).len();
        rows.extend(row(&lines));
        (rows, focus)
    }

    /// The open requests, if there are several.
    fn list(&self) -> Vec<Row> {
        let count = self.waiting.len();
        if count < 2 {
            return Vec::new();
        }
        let row = |(at, asked): (usize, &Asked)| {
            let mark = if at == 0 { "» " } else { "  " };
            let from = asked.from.as_ref().map(|from| format!(" · asked by {from}")).unwrap_or_default();
            vec![Span::new(Style::Hang, mark), Span::new(Style::Dim, format!("{}{from}", asked.question.title()))]
        };
        let mut rows: Vec<Row> = self.waiting.iter().enumerate().take(MOST_LISTED).map(row).collect();
        if count > MOST_LISTED {
            rows.push(vec![Span::new(Style::Dim, format!("  {} more", count - MOST_LISTED))]);
        }
        rows
    }

    /// The panel: the request and the choices.
    pub(super) fn shown(&self, (width, height): (usize, usize), now: Instant) -> Vec<Row> {
        let Some(asked) = self.waiting.front() else { return Vec::new() };
        let (rows, _) = self.rows(width);
        let (count, room) = (rows.len(), self.room((width, height)));
        let others = match self.waiting.len() {
            1 => String::new(),
            waiting => format!("· 1 of {waiting}, {} shows the next ", self.next),
        };
        let from = asked.from.as_ref().map(|from| format!("· asked by {from} ")).unwrap_or_default();
        let left = asked.until.map(|until| until.saturating_duration_since(now).as_secs());
        let left = left.map(|left| format!("· {left} s left ")).unwrap_or_default();
        let what = if asked.form.is_some() { "Question" } else { "Approval needed" };
        let mut shown = vec![vec![Span::new(Style::Bar, format!(" {what} {others}{from}{left}"))]];
        shown.extend(self.list_in(height));
        shown.extend(rows.into_iter().skip(self.first_row).take(room));
        let row = if !self.readiness.has_choices() {
            vec![Span::new(Style::Dim, "…")]
        } else if asked.form.is_some() {
            Self::form_keys()
        } else if self.is_seen {
            asked.question.choices()
        } else {
            Self::choices_before(count.saturating_sub(self.first_row + room))
        };
        shown.extend(self.choice_rows(&row, width));
        shown
    }

    /// The choices before the last row was in view.
    fn choices_before(left: usize) -> Row {
        let mut row = Row::new();
        row.extend(choice("space", &format!("more ({left} rows)  ")));
        row.extend(choice("n", "no  "));
        row.extend(choice("esc", "no, and stop"));
        row
    }

    /// The keys of a form.
    fn form_keys() -> Row {
        let mut row = Row::new();
        row.extend(choice("tab", "next field  "));
        row.extend(choice("enter", "go on or send  "));
        row.extend(choice("esc", "no, and stop"));
        row
    }

    /// The list of open requests, if there is room for it.
    fn list_in(&self, height: usize) -> Vec<Row> {
        Some(self.list()).filter(|list| height >= list.len() * 3 + 6).unwrap_or_default()
    }

    /// The number of rows below the request: those of the choices at their longest, so that nothing moves, and the status.
    fn below(&self, width: usize) -> usize {
        let Some(asked) = self.waiting.front() else { return 1 };
        let rows = |row: &Row| self.choice_rows(row, width).len();
        match asked.form {
            Some(_) => 1 + rows(&Self::form_keys()),
            None => 1 + rows(&asked.question.choices()).max(rows(&Self::choices_before(9999))),
        }
    }

    /// The number of rows for the request on a screen of a size. There is a title above it.
    fn room(&self, (width, height): (usize, usize)) -> usize {
        height.saturating_sub(1 + self.list_in(height).len() + self.below(width)).max(1)
    }
}
