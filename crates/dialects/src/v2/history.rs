//! The turns of a thread, from its file.

use codex_log::decode::{Decoder, Wanted};
use codex_log::line::Line;
use codex_log::{Body, Event, Failure, Item, ItemId, Outcome, ReviewEntered, RolledBack, TurnId, review};
use codex_protocol::v2::item::{InputItem, ThreadItem, TimedItem};
use codex_protocol::v2::turn::{ErrorInfo, ItemsView, Turn, TurnError, TurnStatus};
use codex_wire::error_info::CodexErrorInfo;

use super::items::{is_known, stored_item, thread_item};
use crate::ProtocolRelease;

/// Assembles the turns of a thread from its lines.
#[derive(Debug)]
pub struct TurnReader {
    decoder: Decoder,
    release: ProtocolRelease,
    turns: Vec<Turn>,
    /// Decoded events that are not processed yet.
    events: Vec<Event>,
    /// The number of items so far, for ids that the file does not contain.
    items: usize,
}

impl TurnReader {
    /// Creates a reader for clients of a release. Those of older releases are not shown stored calls.
    #[must_use]
    pub fn new(release: ProtocolRelease) -> Self {
        let shown = Wanted::TURNS | Wanted::SHOWN;
        let wanted = if release == ProtocolRelease::V0166 { shown | Wanted::CALLS } else { shown };
        let decoder = Decoder::new(wanted);
        Self { decoder, release, turns: Vec::new(), events: Vec::new(), items: 0 }
    }

    /// The turns of the lines so far.
    #[must_use]
    pub fn into_turns(mut self) -> Vec<Turn> {
        self.decoder.end(&mut self.events);
        self.take_events(None);
        self.turns
    }

    /// Processes the next line.
    pub fn take(&mut self, line: &Line<'_>) {
        self.decoder.line(line, &mut self.events);
        self.take_events(self.decoder.began_ms());
    }

    /// Processes decoded events, of which the last is an item that started at this time.
    fn take_events(&mut self, began_ms: Option<i64>) {
        let mut events = std::mem::take(&mut self.events);
        let last = events.pop();
        events.drain(..).for_each(|event| self.see(event, None));
        if let Some(event) = last {
            self.see(event, began_ms);
        }
        self.events = events;
    }

    fn see(&mut self, event: Event, began_ms: Option<i64>) {
        let at_ms = event.at_ms;
        let when = (began_ms.unwrap_or(at_ms), at_ms);
        match event.body {
            Body::TurnStarted { .. } => self.begin(event.turn.as_ref(), self.cut_off(), at_ms),
            Body::ItemCompleted(item) => self.add_item(item, event.turn.as_ref(), when),
            Body::ItemInterrupted(item) => {
                self.add_item(item, event.turn.as_ref(), when);
                self.break_off();
            }
            Body::ReviewEntered(review) => self.review_entered(&review, at_ms),
            Body::ReviewExited(output) => {
                let review = output.as_deref().map(review::describe).unwrap_or_default();
                let id = self.item_name();
                self.add(ThreadItem::ExitedReviewMode { id, review }, at_ms, at_ms);
            }
            Body::Compacted(_) if self.release == ProtocolRelease::V0166 => {
                let id = self.item_name();
                self.add(ThreadItem::ContextCompaction { id }, at_ms, at_ms);
            }
            Body::TurnEnded(outcome) => self.ended(&outcome, at_ms),
            Body::RolledBack(RolledBack { turns, first, .. }) => self.take_back(first.as_ref(), turns),
            _ => {}
        }
    }

    fn ended(&mut self, outcome: &Outcome, at_ms: i64) {
        match outcome {
            Outcome::Completed { .. } => {
                let is_failed = self.turns.last().is_some_and(|turn| turn.status == TurnStatus::Failed);
                if !is_failed {
                    self.end(TurnStatus::Completed, None, at_ms);
                }
            }
            Outcome::Aborted(_) => self.end(TurnStatus::Interrupted, None, at_ms),
            Outcome::Failed(failure) => {
                self.end(TurnStatus::Failed, Some(turn_error(failure, self.release)), at_ms);
            }
        }
    }

    /// The request to a reviewer is shown as a message of the user.
    fn review_entered(&mut self, entered: &ReviewEntered, at_ms: i64) {
        let (id, review) = (self.item_name(), entered.hint.clone());
        self.add(ThreadItem::EnteredReviewMode { id, review }, at_ms, at_ms);
        if !entered.prompt.is_empty() {
            let (id, client_id) = (self.item_name(), None);
            let content = vec![InputItem::Text { text: entered.prompt.clone(), text_elements: Vec::new() }];
            self.add(ThreadItem::UserMessage { id, client_id, content }, at_ms, at_ms);
        }
    }

    /// Removes the last turns: from the one that is named, or this many.
    fn take_back(&mut self, first: Option<&TurnId>, count: usize) {
        let named = first.and_then(|first| self.turns.iter().rposition(|turn| turn.id == first.as_str()));
        self.turns.truncate(named.unwrap_or(self.turns.len().saturating_sub(count)));
    }

    /// The status of a turn that no line ends: it belongs to a program that is gone. Clients of 0.77 know it as completed.
    fn cut_off(&self) -> TurnStatus {
        match self.release {
            ProtocolRelease::V058 | ProtocolRelease::V077 => TurnStatus::Completed,
            ProtocolRelease::V0166 => TurnStatus::Interrupted,
        }
    }

    fn begin(&mut self, turn: Option<&TurnId>, status: TurnStatus, at_ms: i64) {
        let id = turn.map_or_else(|| format!("turn-{}", self.turns.len() + 1), |turn| turn.as_str().to_owned());
        let begun = Turn { items_view: ItemsView::Full, status, started_at: Some(at_ms / 1000), ..Turn::begun(id) };
        self.turns.push(begun);
    }

    fn begin_unless_running(&mut self, turn: Option<&TurnId>, at_ms: i64) {
        let runs = self.turns.last().is_some_and(|last| match turn {
            Some(id) => last.id == id.as_str(),
            // Old files contain only messages: each message of the user is a turn.
            None => last.items.is_empty(),
        });
        if !runs {
            // Files of old releases record neither the start nor the end of a turn.
            self.begin(turn, TurnStatus::Completed, at_ms);
        }
    }

    /// A turn whose answer broke off was interrupted, unless a line ends it otherwise.
    fn break_off(&mut self) {
        if let Some(turn) = self.turns.last_mut() {
            turn.status = TurnStatus::Interrupted;
        }
    }

    fn item_name(&mut self) -> String {
        self.items += 1;
        format!("item-{}", self.items)
    }

    fn add_item(&mut self, item: Item, turn: Option<&TurnId>, (began_ms, at_ms): (i64, i64)) {
        if !is_known(&item, self.release) {
            return;
        }
        if item.said().is_some() {
            self.begin_unless_running(turn, at_ms);
        }
        let is_named = !item.id().as_str().is_empty();
        if !is_named && item.is_thought() && self.thinks_on(&item) {
            return;
        }
        // Derived ids count all messages, with or without an id.
        let name = (!item.is_call()).then(|| self.item_name()).filter(|_| !is_named);
        let item = if let Some(name) = name { item.with_id(ItemId::new(name)) } else { item };
        self.add(stored_item(item, self.release), began_ms, at_ms);
    }

    /// Appends reasoning without an id to the previous reasoning.
    fn thinks_on(&mut self, more: &Item) -> bool {
        let last = self.turns.last_mut().and_then(|turn| turn.items.last_mut());
        let Some(ThreadItem::Reasoning { summary, content, .. }) = last.map(|timed| &mut timed.item) else {
            return false;
        };
        if let ThreadItem::Reasoning { summary: parts, content: thoughts, .. } = thread_item(more, self.release) {
            summary.extend(parts);
            content.extend(thoughts);
        }
        true
    }

    fn add(&mut self, item: ThreadItem, began_ms: i64, at_ms: i64) {
        if let Some(turn) = self.turns.last_mut() {
            turn.items.push(TimedItem { item, started_at_ms: Some(began_ms), completed_at_ms: Some(at_ms) });
        }
    }

    fn end(&mut self, status: TurnStatus, error: Option<TurnError>, at_ms: i64) {
        if let Some(turn) = self.turns.last_mut() {
            turn.status = status;
            turn.error = error;
            turn.completed_at = Some(at_ms / 1000);
            turn.duration_ms = turn.started_at.map(|started| (at_ms - started * 1000).max(0));
        }
    }
}

/// An error in the form for clients: the hint is a separate line of the message.
pub(super) fn turn_error(failure: &Failure, release: ProtocolRelease) -> TurnError {
    let hint = failure.hint.map(|hint| format!("\n{hint}")).unwrap_or_default();
    TurnError {
        message: format!("{}{hint}", failure.message),
        codex_error_info: Some(error_info(&failure.info, release)),
        additional_details: None,
        misalignment: (),
    }
}

/// The kind of an error, as far as a release knows it.
fn error_info(info: &CodexErrorInfo, release: ProtocolRelease) -> ErrorInfo {
    match (info.into(), release) {
        (ErrorInfo::SessionBudgetExceeded, ProtocolRelease::V058 | ProtocolRelease::V077) => ErrorInfo::Other,
        (info, _) => info,
    }
}
