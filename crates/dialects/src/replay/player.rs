//! A stored thread as a sequence of events, as if it were running.
//!
//! Details that no file stores, such as the deltas of a text, are replayed as one piece. An open turn ends when another
//! starts, or with the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use codex_log::decode::{Decoder, Wanted};
use codex_log::line::Line;
use codex_log::settings::Settings;
use codex_log::{Abort, Body, Delta, Event, Item, ItemId, Outcome, Seq, ThreadStarted, TurnId};
use codex_wire::event::EventMsg;
use codex_wire::ids::ThreadId;

/// Plays the log of a thread from its lines.
#[derive(Debug)]
pub struct Player {
    decoder: Decoder,
    path: PathBuf,
    thread: Option<ThreadId>,
    /// The start of the thread, until its first event is played.
    started: Option<Box<ThreadStarted>>,
    /// The settings of its first turn.
    settings: Option<Arc<Settings>>,
    /// The number of the previous event: the last event of a line is numbered by the end of the line, all others repeat
    /// this number.
    number: Seq,
    turn: Option<TurnId>,
    turns: u64,
    items: u64,
    /// The error of the running turn, which is reported when the turn ends.
    failure: Option<Outcome>,
    at_ms: i64,
}

impl Player {
    /// Creates a player for a file whose first turn had these settings.
    #[must_use]
    pub fn new(path: &Path, settings: Option<Arc<Settings>>) -> Self {
        let calls = Wanted::CALLS | Wanted::PLANS | Wanted::GOALS | Wanted::TOKENS | Wanted::COMPACTIONS;
        Self {
            decoder: Decoder::new(Wanted::META | Wanted::TURNS | Wanted::SHOWN | calls),
            path: path.to_owned(),
            thread: None,
            started: None,
            settings,
            number: Seq::default(),
            turn: None,
            turns: 0,
            items: 0,
            failure: None,
            at_ms: 0,
        }
    }

    /// Plays a line.
    pub fn take(&mut self, line: &Line<'_>, out: &mut Vec<Event>) {
        let mut events = Vec::new();
        self.decoder.line(line, &mut events);
        let before = out.len();
        let is_silent = events.is_empty();
        for event in events {
            self.play(event, out);
        }
        self.at_ms = line.at_ms();
        if is_silent && self.failure.is_some() && matches!(line.message(), Some(EventMsg::TaskComplete(_))) {
            self.interrupt(out);
        }
        self.number = Seq::at(line.range.end);
        if let Some(event) = out[before..].last_mut().filter(|event| !event.body.is_thought()) {
            event.seq = self.number;
        }
    }

    /// Plays the events that waited for further lines.
    pub fn catch_up(&mut self, out: &mut Vec<Event>) {
        let mut events = Vec::new();
        self.decoder.end(&mut events);
        let at_ms = self.at_ms;
        for event in events {
            self.play(event, out);
        }
        self.at_ms = at_ms;
    }

    /// Ends the open turn.
    pub fn finish(&mut self, out: &mut Vec<Event>) {
        self.catch_up(out);
        self.start(out);
        self.interrupt(out);
    }

    fn play(&mut self, event: Event, out: &mut Vec<Event>) {
        self.at_ms = event.at_ms;
        // Reasoning waits for further lines, and is emitted with a later one.
        let number = self.number;
        if event.body.is_thought() {
            self.number = event.seq;
        }
        match event.body {
            Body::ThreadStarted(started) => {
                self.thread = Some(event.thread);
                self.started = Some(started);
            }
            Body::TurnStarted { context_window } => self.begin(event.turn, context_window, out),
            Body::TurnEnded(outcome @ Outcome::Failed(_)) if self.turn.is_some() => self.failure = Some(outcome),
            Body::TurnEnded(outcome) => self.end(outcome, out),
            Body::ItemCompleted(item) => self.item(item, Body::ItemCompleted, event.turn, out),
            Body::ItemInterrupted(item) => self.item(item, Body::ItemInterrupted, event.turn, out),
            // Rewinds and rolled-back turns are not replayed.
            Body::WentBack { .. } | Body::RolledBack(_) => {}
            body => self.push(body, out),
        }
        self.number = number;
    }

    /// Emits the start of the thread, once. It was ready before its first turn, which may be waiting already.
    fn start(&mut self, out: &mut Vec<Event>) {
        let Some(started) = self.started.take() else { return };
        let settings = self.settings.take().unwrap_or_else(|| Arc::clone(&started.settings));
        let started = ThreadStarted { settings, rollout: self.path.clone(), ..*started };
        out.extend(self.event(None, Body::ThreadStarted(Box::new(started))));
    }

    fn begin(&mut self, turn: Option<TurnId>, context_window: Option<i64>, out: &mut Vec<Event>) {
        self.start(out);
        self.interrupt(out);
        self.turns += 1;
        self.turn = Some(turn.unwrap_or_else(|| TurnId::new(self.turns.to_string())));
        self.push(Body::TurnStarted { context_window }, out);
    }

    fn interrupt(&mut self, out: &mut Vec<Event>) {
        if self.turn.is_some() {
            self.end(Outcome::Aborted(Abort::Interrupted), out);
        }
    }

    fn end(&mut self, outcome: Outcome, out: &mut Vec<Event>) {
        let outcome = self.failure.take().unwrap_or(outcome);
        self.push(Body::TurnEnded(outcome), out);
        self.turn = None;
    }

    fn item(&mut self, item: Item, ended: fn(Item) -> Body, turn: Option<TurnId>, out: &mut Vec<Event>) {
        // In files without records of starts, each message of the user starts a turn.
        if item.said().is_some() && self.turn.is_none() {
            self.begin(turn, None, out);
        }
        for part in item.parts() {
            let part = if part.is_call() { part } else { self.named(part) };
            self.push(Body::ItemStarted(part.begun()), out);
            if let Some(delta) = whole(&part) {
                self.push(Body::ItemDelta { item: part.id().clone(), delta }, out);
            }
            self.push(ended(part), out);
        }
    }

    fn named(&mut self, item: Item) -> Item {
        self.items += 1;
        if item.id().as_str().is_empty() { item.with_id(ItemId::new(format!("item-{}", self.items))) } else { item }
    }

    fn push(&mut self, body: Body, out: &mut Vec<Event>) {
        self.start(out);
        let turn = self.turn.clone();
        out.extend(self.event(turn, body));
    }

    fn event(&self, turn: Option<TurnId>, body: Body) -> Option<Event> {
        Some(Event { thread: self.thread?, seq: self.number, at_ms: self.at_ms, turn, body })
    }
}

/// The text of an item as one delta.
fn whole(item: &Item) -> Option<Delta> {
    match item.answer() {
        Some(text) => Some(Delta::Text(text.clone())),
        None if item.is_thought() => Some(Delta::Summary { index: 0, text: item.title().into_owned().into() }),
        None => None,
    }
}
