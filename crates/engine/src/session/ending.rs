//! Ends turns and the thread: interrupts, the last events of a turn, turns that are left for later, and an idle thread
//! that is given to another process and taken back.

use std::sync::Arc;

use codex_log::{Abort, Body, ItemId, Outcome};
use codex_thread::{
    ClientProfile, ExplicitOverrides, HistoryMode, InitialHistory, OpenQuestions, ThreadRequest, TurnStart,
};
use codex_tools::lifecycle::{CallEvent, ToolOutput};
use codex_wire::response::Message;

use super::Session;
use super::calls::give;
use super::conversations::Conversations;
use super::running::{INTERRUPTED, unsaved};
use super::spending;
use crate::open_error::OpenError;
use crate::prepared_thread::{PreparedThread, ResumedWork, asks_first, told_under};
use crate::review;
use crate::setup::Setup;
use crate::turn::Input;

impl Session {
    /// Interrupts the running turn, if there is one.
    pub(super) async fn stop(&mut self, abort: Abort) -> bool {
        let running = self.turn.is_some();
        self.stop_with(Outcome::Aborted(abort)).await;
        running
    }

    pub(super) async fn stop_with(&mut self, outcome: Outcome) {
        let mut outputs = self.finish_calls().await;
        outputs.extend(self.cut_off_calls());
        self.step(Input::Stop(outcome, outputs)).await;
    }

    /// Writes what is left at the end of the thread.
    pub(super) async fn close_log(&mut self) {
        let left = self.calls.lifecycle.end_terminals();
        self.emit_all(left);
        self.end_agents().await;
        self.journal.close().await;
    }

    /// Ends the turn: its changes are inspected and saved, then its end is published.
    pub(super) async fn end(&mut self, outcome: Outcome) {
        if outcome == Outcome::Aborted(Abort::Interrupted) && self.setup.profile.tells_of_interrupts {
            self.tell_model(Message::user(INTERRUPTED));
        }
        // A client that sees the end of the turn finds the folders as its commands left them.
        let cwd = self.turn_settings().cwd.clone();
        let left = self.calls.lifecycle.end_turn(&cwd).await;
        self.emit_all(left);
        let told = self.goals.end_turn(&outcome, self.is_finishing);
        self.emit_all(told);
        self.pause_queue_after(&outcome);
        let outcome = self.end_review(outcome);
        let outcome = self.conversations.bookmark(outcome, &self.state, &self.profile.environment);
        self.note_result(&outcome).await;
        self.emit(Body::TurnEnded(outcome.clone()));
        match (unsaved(self.journal.publish_durably().await), &outcome) {
            (Some(failed), Outcome::Completed { .. }) => {
                self.journal.withdraw_end();
                self.pause_queue_after(&failed);
                self.emit(Body::TurnEnded(failed));
                self.publish_durably().await;
            }
            (Some(_) | None, _) => {
                if let Some(turn) = &self.turn {
                    turn.tell_program(&self.setup, self.started.meta.id, &outcome);
                }
            }
        }
        self.turn = None;
    }

    /// Marks the thread as unread before the end of the turn is published. A person who interrupts a turn knows its
    /// result, and neither a summary nor a shell command of the user is a result.
    async fn note_result(&mut self, outcome: &Outcome) {
        let Some(running) = self.turn.as_ref().filter(|_| self.setup.profile.keeps_read_marks) else { return };
        if matches!(outcome, Outcome::Aborted(_)) || !running.machine.is_for_user() || self.journal.is_in_memory() {
            return;
        }
        let (store, thread, turn) = (Arc::clone(&self.setup.store), self.started.meta.id, running.id.clone());
        let noting = tokio::task::spawn_blocking(move || store.turn_ended(thread, turn.as_str()));
        // The thread is complete without the mark.
        if let Ok(Ok(state)) = noting.await {
            self.emit(Body::Unread(Arc::new(state)));
        }
    }

    /// Whether the thread has no subscriber and is idle: no turn is running, or one that only asks a person and either
    /// asks again when the thread is resumed or may be interrupted.
    pub(super) fn is_retirable(&mut self, questions: OpenQuestions) -> bool {
        let has_agents = self.calls.agents.as_ref().is_some_and(|agents| agents.is_busy());
        let is_due = self.state.queue.is_due() || self.goals.goal.is_due();
        let is_resting = self.turn.is_none() && !is_due && !has_agents;
        let may_stop = questions == OpenQuestions::Interrupt;
        self.journal.listeners() == 0 && (is_resting || self.only_asks() && (may_stop || self.asks_again()))
    }

    /// Whether another process may have the thread until its next request here: everything is saved, and nothing is at
    /// work that could add to it. A thread with agents stays, and so does an agent: their tree needs them.
    pub(super) fn is_lendable(&self) -> bool {
        let has_tree = self.calls.agents.as_ref().is_some_and(|agents| agents.has_tree());
        let has_agents = has_tree || self.setup.child.is_some() || !self.state.agents.is_empty();
        let is_at_work = self.turn.is_some() || self.calls.lifecycle.has_terminals() || self.goals.goal.is_due();
        self.journal.can_be_wanted()
            && !has_agents
            && !is_at_work
            && !self.state.queue.is_due()
            && !self.conversations.has_bookmarks()
            && self.journal.is_saved()
    }

    /// Gives the idle thread to the process that asks for it.
    pub(super) async fn lend(&mut self) {
        self.publish_durably().await;
        if self.journal.is_saved() {
            self.journal.lend();
        }
    }

    /// Takes the thread back if a request would add to it, and serves the request. If another process keeps the thread,
    /// the request is refused.
    pub(super) async fn take_back_for(&mut self, request: ThreadRequest) {
        if self.journal.is_lent()
            && request.may_write()
            && let Err(error) = self.take_back().await
        {
            let why = codex_tools::full_message(&error);
            self.tell_outside_turns(vec![Body::Warning { message: why.clone() }]).await;
            if let ThreadRequest::Say { reply, .. } = request {
                give(reply, TurnStart::Refused(why));
            }
            return;
        }
        self.obey(request).await;
    }

    /// Opens the thread again, and goes on from what the other process has appended. A turn that it has left open is not
    /// revived, as a request that begins another one waits.
    async fn take_back(&mut self) -> Result<(), OpenError> {
        let thread = self.started.meta.id;
        let explicit = ExplicitOverrides { cwd: true, model: true, approval_policy: true, sandbox_policy: true };
        let profile = ClientProfile { asks_again: false, ..self.setup.profile };
        let initial_history = InitialHistory::Resumed { thread, explicit };
        let setup = Setup { profile, initial_history, ..self.setup.clone() };
        let PreparedThread { journal, state, continued, .. } = PreparedThread::prepare(&setup).await?;
        self.journal.take_up(journal, self.setup.recent_bytes);
        // A client that counts from zero continues from what it has counted.
        let counted = std::mem::replace(&mut self.state, state).tokens;
        self.state.limit_wait = None;
        let window = self.state.tokens.info.as_ref().map(|info| info.last_token_usage.tokens_in_window());
        self.conversations = Conversations::default();
        self.budget = spending::budget_of(&self.setup, &self.state, false);
        if let Some(continued) = continued {
            let before = continued.before.map(|before| told_under(&before, &self.profile.settings));
            self.go_on(ResumedWork { before, unfinished: None, limit_wait: None, ..*continued }, false).await;
        }
        self.attach_agents();
        self.conversations.window_used = window.unwrap_or_default();
        if self.setup.profile.counts_from_zero {
            self.state.tokens = counted;
        }
        self.publish_durably().await;
        Ok(())
    }

    /// Whether the running turn waits only for answers of a person.
    pub(super) fn only_asks(&self) -> bool {
        self.turn.as_ref().is_some_and(|running| running.machine.waits_for_calls()) && self.calls.lifecycle.only_asks()
    }

    /// Whether the questions of the running turn are asked again when the thread is resumed.
    fn asks_again(&self) -> bool {
        let Some(running) = &self.turn else { return false };
        self.setup.profile.asks_again
            && asks_first(&running.settings)
            && !self.conversations.is_review()
            && self.journal.is_saved()
            && running.machine.can_be_set_aside()
            && self.calls.lifecycle.may_begin_again()
    }

    /// Leaves the running turn to be resumed with the thread, or interrupts it if it could not be resumed.
    pub(super) async fn leave_turn(&mut self) {
        let goes_on_later = self.asks_again();
        let Some(running) = &mut self.turn else { return };
        if goes_on_later {
            let effects = running.machine.set_aside();
            self.perform(effects).await;
        } else {
            self.is_finishing = true;
            self.stop(Abort::Interrupted).await;
        }
    }

    /// Ends the running turn because the thread is closed, or leaves it to be resumed with the thread if it waits for
    /// the account's allowance.
    pub(super) async fn close_turn(&mut self) {
        self.is_finishing = true;
        let waits = self.turn.as_ref().is_some_and(|running| running.machine.waits_for_limit());
        if waits && self.state.limit_wait.is_some() && self.journal.is_saved() {
            self.publish_durably().await;
            self.turn = None;
        } else {
            self.stop(Abort::Interrupted).await;
        }
    }

    /// Waits for a call that must not be interrupted, and returns its output for the model.
    pub(super) async fn finish_calls(&mut self) -> Vec<(ItemId, ToolOutput)> {
        let events = self.calls.lifecycle.finish().await;
        self.take_outputs(events)
    }

    /// Ends all running calls because their turn is interrupted, and returns their outputs for the model.
    pub(super) fn cut_off_calls(&mut self) -> Vec<(ItemId, ToolOutput)> {
        let events = self.calls.lifecycle.stop();
        self.take_outputs(events)
    }

    fn take_outputs(&mut self, events: Vec<CallEvent>) -> Vec<(ItemId, ToolOutput)> {
        let mut outputs = Vec::new();
        for event in events {
            match event {
                CallEvent::Emit(body) => self.emit(body),
                CallEvent::Ended(id, output) => outputs.push((id, output)),
                CallEvent::Failed(_) | CallEvent::GoalReported(_) | CallEvent::TurnStopped => {}
            }
        }
        outputs
    }

    /// Ends the review, if one is running, and returns the end of its turn.
    fn end_review(&mut self, outcome: Outcome) -> Outcome {
        if !self.conversations.end_review(&mut self.profile.instructions) {
            return outcome;
        }
        let answer = match &outcome {
            Outcome::Completed { last_message, .. } => last_message.clone(),
            Outcome::Aborted(_) | Outcome::Failed(_) => None,
        };
        let output = answer.as_deref().map(review::read);
        self.emit(Body::ReviewExited(output.clone().map(Arc::new)));
        self.tell_model(Message::user(review::report(output.as_ref())));
        match (outcome, output) {
            (Outcome::Aborted(_), _) => Outcome::Aborted(Abort::ReviewEnded),
            (Outcome::Completed { bookmark, .. }, Some(output)) if self.setup.profile.history == HistoryMode::Full => {
                self.emit_all(review::said(&output));
                Outcome::Completed { last_message: None, bookmark }
            }
            (outcome, _) => outcome,
        }
    }
}
