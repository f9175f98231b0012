//! Events of the server: what they change on the screen.

use codex_client::Event;
use codex_client::state::Thread;
use serde_json::Value;

use super::app::{App, Effect, Running, When};
use super::layout;
use crate::Style;
use codex_views::plan;

impl App {
    pub(super) fn event(&mut self, event: Event) {
        self.client.apply(&event);
        self.calls.agents.event(&event);
        self.board_event(&event);
        let is_here = self.is_about_this(crate::chat::about(&event));
        if let Event::Asked { thread, id, method, params } = event {
            self.asked(&thread, id, &method, &params);
            return;
        }
        if let Event::Resolved { id, .. } = &event {
            self.withdraw(|question| question.id == *id);
        }
        if !is_here {
            return;
        }
        if matches!(event, Event::TurnStarted { .. } | Event::Usage { .. }) {
            let usage = self.open_thread().map(|thread| thread.usage().clone()).unwrap_or_default();
            self.calls.ledger.event(&event, &usage);
        }
        match &event {
            Event::Thread { whole: true, id, .. } => {
                if let Some(thread) = self.client.thread(id) {
                    self.transcript.reset(thread);
                }
                self.take_running();
            }
            Event::ItemStarted { item, .. } | Event::ItemCompleted { item, .. } => {
                let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
                self.transcript.changed(text("id"));
                if text("type") == "agentMessage" {
                    self.review_may_be_repeated();
                }
                if let Some(running) = self.running.as_mut().filter(|_| text("type") == "userMessage") {
                    running.steered = running.steered.saturating_sub(1);
                }
            }
            Event::Delta(delta) => self.transcript.grown(&delta.item),
            _ => {}
        }
        if let Some(id) = self.thread.as_ref().map(|thread| thread.id.clone())
            && let Some(thread) = self.client.thread(&id)
        {
            self.transcript.take_new(thread);
        }
        self.show(&event);
    }

    /// Shows an event that is not an item.
    fn show(&mut self, event: &Event) {
        match event {
            Event::TurnStarted { turn, .. } => self.begin_turn(turn),
            Event::TurnEnded { status, error, .. } => {
                self.running = None;
                // Requests of child agents outlast the turn.
                let agents = std::mem::take(&mut self.calls.agents);
                self.withdraw(|question| !agents.has_asked(&question.id));
                self.calls.agents = agents;
                self.turn_ended(status, error);
            }
            Event::Disconnected | Event::Reconnected { .. } => self.connection_changed(event),
            Event::Plan { turn, plan, .. } => {
                let (key, lines) = (format!("plan {turn}"), plan::lines(plan));
                self.transcript.keyed(&key, lines);
            }
            Event::Error { turn, message, will_retry: true, .. } => {
                let key = format!("retry {turn}");
                self.transcript.keyed(&key, vec![layout::note(Style::Yellow, "retry", &crate::in_brief(message))]);
            }
            Event::Warning { message, .. } | Event::Note { text: message } => {
                self.say(Style::Yellow, "warning", message);
            }
            Event::Other { method, params } if method == "configWarning" || method == "deprecationNotice" => {
                let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default();
                self.say(Style::Yellow, "warning", &format!("{}{}", text("message"), text("summary")));
            }
            Event::Other { method, params } if method == "fuzzyFileSearch/sessionUpdated" => self.take_found(params),
            Event::Other { method, .. } | Event::Unknown { method, .. } if method == "thread/queue/changed" => {
                self.queue_changed();
            }
            // Other releases have no item for it.
            Event::Other { method, .. } if method == "thread/compacted" && !self.has_compaction() => {
                self.remark(Style::Dim, "Compacted: continuing from a summary");
            }
            _ => {}
        }
    }

    /// The last item of a kind in the latest turn.
    fn latest(&self, kind: &str) -> Option<String> {
        let turn = self.open_thread()?.turns().last()?;
        turn.items().iter().rev().find(|item| item.kind() == kind).map(|item| item.id().to_owned())
    }

    /// Whether a turn of the open thread is known to be over.
    pub(super) fn has_ended(&self, turn: &str) -> bool {
        let turns = self.open_thread().map(Thread::turns).unwrap_or_default();
        turns.iter().any(|known| known.id() == turn && known.status() != "inProgress")
    }

    fn has_compaction(&self) -> bool {
        self.latest("contextCompaction").is_some()
    }

    /// An answer has come, which may have the same text as the review before it.
    fn review_may_be_repeated(&mut self) {
        if let Some(review) = self.latest("exitedReviewMode") {
            self.transcript.changed(&review);
        }
    }

    pub(super) fn begin_turn(&mut self, turn: &str) {
        if self.running.as_ref().is_none_or(|running| running.turn != turn) {
            self.running = Some(Running { turn: turn.to_owned(), since: self.now, steered: 0 });
        }
        if let Some(thread) = &mut self.thread {
            thread.has_turns = true;
        }
    }

    /// Tells how a turn has ended, unless it is completed.
    pub(super) fn tell_end(&mut self, status: &str, error: &Value) {
        match status {
            "interrupted" => self.remark(Style::Yellow, "Interrupted"),
            "failed" => {
                let message = error.get("message").and_then(Value::as_str).unwrap_or("the turn failed");
                self.say(Style::Red, "error", &crate::in_brief(message));
                if self.settings.is_verbose {
                    self.remark(Style::Dim, message);
                }
            }
            _ => {}
        }
    }

    fn turn_ended(&mut self, status: &str, error: &Value) {
        self.tell_end(status, error);
        if self.calls.is_away {
            self.effect(Effect::Notify("the turn has ended".to_owned()));
        }
        self.ask_branch();
        self.effect(Effect::Rest(When::Later));
        self.send_next(status == "completed");
    }
}
