//! The calls of an answer while they run, side by side where they may.
//!
//! The turn decides which run, and [`Lifecycle`](codex_tools::lifecycle::Lifecycle) takes each through its one door. Here
//! what comes of them reaches the log and the turn.

use std::sync::Arc;

use codex_log::settings::Settings;
use codex_log::{Abort, Answer, ItemId, Outcome, Question};
use codex_thread::{OpenQuestions, QuestionName};
use codex_tools::call::ToolCall;
use codex_tools::context::{ToolContext, ToolSetup};
use codex_tools::lifecycle::{CallEvent, ToolOutput};

use super::Session;
use crate::opening::asks_first;
use crate::turn::Input;
use crate::work::Work;

impl Session {
    /// Begins a call. Returns what the turn is told when that is already its end.
    pub(super) fn run_call(&mut self, call: ToolCall) -> Vec<Input> {
        if let Some(over) = self.update_goal(&call) {
            return vec![over];
        }
        // The answer that led to it is whole.
        self.work(Work::Nothing);
        let cx = self.tool_context();
        let events = self.calls.begin(call, &cx);
        self.take_call_events(events)
    }

    /// Takes what has come of calls.
    pub(super) async fn called(&mut self, events: Vec<CallEvent>) {
        let inputs = self.take_call_events(events);
        if inputs.is_empty() {
            return self.publish().await;
        }
        for input in inputs {
            self.step(input).await;
        }
    }

    /// Logs what calls have to say, and returns what the turn is told.
    fn take_call_events(&mut self, events: Vec<CallEvent>) -> Vec<Input> {
        let mut inputs = Vec::new();
        for event in events {
            match event {
                CallEvent::Emit(body) => self.emit(body),
                CallEvent::Ended(id, output) => inputs.push(Input::CallEnded(id, output)),
                CallEvent::TurnStopped => {
                    // The others go with it.
                    let outputs = self.cut_off_calls();
                    inputs.push(Input::Stop(Outcome::Aborted(Abort::Interrupted), outputs));
                }
            }
        }
        inputs
    }

    /// Hands an answer to the call that waits for it; false when none does.
    pub(super) async fn answer(&mut self, name: &QuestionName, answer: Answer) -> bool {
        let Some(question) = self.meant(name) else { return false };
        let Some(events) = self.calls.answer(&question.id, answer) else { return false };
        self.called(events).await;
        true
    }

    /// The open question that is meant: the one of that name, the last one about that call, or the only one if the turn is
    /// named.
    fn meant(&self, name: &QuestionName) -> Option<Arc<Question>> {
        let is_turn = |name: &str| self.running.as_ref().is_some_and(|running| running.id.as_str() == name);
        let meant = match name {
            QuestionName::Id(id) => self.asked.iter().find(|asked| asked.id == *id),
            QuestionName::CallOrTurn(name) => {
                let about_call = self.asked.iter().rfind(|asked| asked.item().as_str() == name);
                about_call.or_else(|| self.asked.first().filter(|_| self.asked.len() == 1 && is_turn(name)))
            }
        };
        meant.map(Arc::clone)
    }

    /// Whether nobody reads along and nothing happens: no turn runs, or one that only asks a person and is revived with its
    /// questions when the thread is resumed, or may be interrupted.
    pub(super) fn is_retirable(&mut self, questions: OpenQuestions) -> bool {
        let is_resting = self.running.is_none() && !self.aims.goal.is_due();
        let may_stop = questions == OpenQuestions::Interrupt;
        self.journal.listeners() == 0 && (is_resting || self.only_asks() && (may_stop || self.asks_again()))
    }

    /// Whether the running turn waits for answers of a person and nothing else.
    fn only_asks(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.machine.waits_for_calls()) && self.calls.only_asks()
    }

    /// Whether the questions of the running turn are asked again when the thread is resumed.
    fn asks_again(&self) -> bool {
        let Some(running) = &self.running else { return false };
        self.setup.profile.asks_again
            && asks_first(&running.settings)
            && self.reviewing.is_none()
            && self.journal.is_saved()
            && running.machine.can_be_set_aside()
            && self.calls.may_begin_again()
    }

    /// Leaves the running turn as it is, for whoever resumes the thread, or interrupts it if it could not go on from there.
    pub(super) async fn leave_turn(&mut self) {
        let goes_on_later = self.asks_again();
        let Some(running) = &mut self.running else { return };
        if goes_on_later {
            let effects = running.machine.set_aside();
            self.perform(effects).await;
        } else {
            self.is_finishing = true;
            self.stop(Abort::Interrupted).await;
        }
    }

    /// From here on nobody answers any more.
    pub(super) fn expect_no_answers(&mut self) {
        self.is_finishing = true;
        self.calls.expect_no_answers();
    }

    /// Waits for a call that must not be cut off half way, and returns what the model is told of it.
    pub(super) async fn finish_calls(&mut self) -> Vec<(ItemId, ToolOutput)> {
        let events = self.calls.finish().await;
        self.take_outputs(events)
    }

    /// Ends all running calls because their turn stops, and returns what the model is told of them.
    pub(super) fn cut_off_calls(&mut self) -> Vec<(ItemId, ToolOutput)> {
        let events = self.calls.stop();
        self.take_outputs(events)
    }

    fn take_outputs(&mut self, events: Vec<CallEvent>) -> Vec<(ItemId, ToolOutput)> {
        let mut outputs = Vec::new();
        for event in events {
            match event {
                CallEvent::Emit(body) => self.emit(body),
                CallEvent::Ended(id, output) => outputs.push((id, output)),
                CallEvent::TurnStopped => {}
            }
        }
        outputs
    }

    /// What the calls of the running turn run under, settled when the first of them begins.
    pub(super) fn tool_context(&mut self) -> Arc<ToolContext> {
        if let Some(cx) = self.running.as_ref().and_then(|running| running.tool_context.as_ref()) {
            return Arc::clone(cx);
        }
        let settings = Arc::clone(self.turn_settings());
        let cx = Arc::new(ToolContext::new(ToolSetup {
            config: &self.setup.config,
            home: &self.setup.home,
            programs: self.setup.programs.as_deref(),
            shell: self.setup.shell.as_deref(),
            is_verbatim: self.models.info(&settings.model).has_terminals,
            settings,
            thread: Arc::clone(self.calls.thread()),
        }));
        if let Some(running) = &mut self.running {
            running.tool_context = Some(Arc::clone(&cx));
        }
        cx
    }

    /// Finds out which folders the settings name, before any command can change what their names lead to.
    pub(super) fn hold_roots(&mut self) {
        let Settings { cwd, sandbox_policy, .. } = &**self.turn_settings();
        if self.held_for.as_ref().is_some_and(|(held, policy)| held == cwd && policy == sandbox_policy) {
            return;
        }
        let held = (cwd.clone(), sandbox_policy.clone());
        self.tool_context().hold_roots();
        self.held_for = Some(held);
    }
}
