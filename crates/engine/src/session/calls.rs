//! The calls of an answer while they run, side by side where they may.
//!
//! The turn decides which run. Here each is begun, fed with what arrives for it, and cut off when the turn stops.

use std::sync::Arc;

use codex_log::{Abort, Answer, ItemId, Outcome, Question, QuestionKind};
use codex_wire::response::FunctionCallOutputPayload;

use super::Session;
use crate::opening::asks_first;
use crate::turn::Input;
use crate::work::{CallEvent, Doing, RunningCall, Work};
use codex_thread::{OpenQuestions, QuestionName};
use codex_tools::call::{ToolCall, ToolInput};
use codex_tools::command::{self, CommandRequest, Place};
use codex_tools::patching::{self, PatchRequest};
use codex_tools::plain::{self, Begun, CallResult};

impl Session {
    /// Begins a call. Returns what the turn is told when that is already its end.
    pub(super) fn run_call(&mut self, call: &ToolCall) -> Option<Input> {
        if let ToolInput::UserShell { command, timeout } = &call.input {
            return self.start_own(&call.id, command, *timeout);
        }
        if let Some(over) = self.update_goal(call) {
            return Some(over);
        }
        let place = Place {
            cwd: &self.turn_settings().cwd,
            shell: self.setup.shell.as_deref().unwrap_or("/bin/sh"),
            next_process: self.terminals.next,
            is_verbatim: self.models.info(&self.turn_settings().model).has_terminals,
        };
        match PatchRequest::read(call, place.cwd) {
            Some(Ok(request)) => {
                self.start_patch(request);
                return None;
            }
            Some(Err(error)) => {
                return Some(refused(&call.id, format!("failed to parse function arguments: {error}")));
            }
            None => {}
        }
        match CommandRequest::read(call, place) {
            Some(Ok(request)) => match PatchRequest::find(&request) {
                Some(patch) => {
                    self.start_patch(patch);
                    None
                }
                None => self.start_command(request),
            },
            Some(Err(error)) => Some(refused(&call.id, error.to_string())),
            None => match &call.input {
                ToolInput::Function(arguments) if call.tool == "write_stdin" => {
                    self.write_terminal(&call.id, arguments)
                }
                ToolInput::Function(_) | ToolInput::Custom(_) | ToolInput::UserShell { .. } => self.run_tool(call),
            },
        }
    }

    fn run_tool(&mut self, call: &ToolCall) -> Option<Input> {
        match plain::run(call, &self.turn_settings().cwd) {
            Begun::Over(result) => Some(self.take_result(&call.id, result)),
            Begun::Later(later) => {
                self.begin_call(&call.id, Doing::Other(later));
                None
            }
        }
    }

    /// Takes what a call led to.
    fn take_result(&mut self, id: &ItemId, result: CallResult) -> Input {
        for body in result.events {
            self.emit(body);
        }
        self.end_call(id, result.output)
    }

    /// Takes what has arrived for a call.
    pub(super) async fn step_call(&mut self, id: ItemId, news: CallEvent) {
        let over = match news {
            CallEvent::Command(input) => self.step_command(&id, input),
            CallEvent::Patch(input) => self.step_patch(&id, input),
            CallEvent::Looked(look, shown) => Some(self.looked(&id, look, shown)),
            CallEvent::Called(result) => Some(self.take_result(&id, result)),
        };
        match over {
            Some(input) => self.step(input).await,
            None => self.publish().await,
        }
    }

    /// Waits for a call that has begun.
    pub(super) fn begin_call(&mut self, id: &ItemId, doing: Doing) {
        if let Some(running) = &mut self.running {
            running.work.begin(id.clone(), doing);
        }
    }

    /// Waits no longer for a call that is over, and returns what the turn is told.
    pub(super) fn end_call(&mut self, id: &ItemId, output: FunctionCallOutputPayload) -> Input {
        if let Some(running) = &mut self.running {
            running.work.drop_call(id);
        }
        Input::CallEnded(id.clone(), output)
    }

    /// Stops the turn because a person said so when asked about a call. The others go with it.
    pub(super) fn abort_turn(&mut self, id: &ItemId) -> Input {
        if let Some(running) = &mut self.running {
            running.work.drop_call(id);
        }
        Input::Stop(Outcome::Aborted(Abort::Interrupted), self.cut_off_calls())
    }

    /// Hands an answer to the call that waits for it; false when none does.
    pub(super) async fn answer(&mut self, name: &QuestionName, answer: Answer) -> bool {
        let Some(question) = self.meant(name) else { return false };
        let event = match question.kind {
            QuestionKind::Command { .. } => CallEvent::Command(command::Input::Answered(answer)),
            QuestionKind::Patch { .. } => CallEvent::Patch(patching::Input::Answered(answer)),
        };
        self.step_call(question.item().clone(), event).await;
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

    /// The calls about which a person is being asked.
    fn asking_calls(&self) -> Vec<ItemId> {
        let calls = self.running.as_ref().map_or(&[][..], |running| running.work.calls());
        let asking = calls.iter().filter(|call| match &call.doing {
            Doing::Command(command) => command.call.is_asking(),
            Doing::Patch(patch) => patch.call.is_asking(),
            Doing::Poll(_) | Doing::Other(_) => false,
        });
        asking.map(|call| call.id.clone()).collect()
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
        let Some(running) = &self.running else { return false };
        let calls = running.work.calls().len();
        running.machine.waits_for_calls() && calls > 0 && self.asking_calls().len() == calls
    }

    /// Whether the questions of the running turn are asked again when the thread is resumed.
    fn asks_again(&self) -> bool {
        let Some(running) = &self.running else { return false };
        let has_run = |call: &RunningCall| matches!(&call.doing, Doing::Command(it) if !it.call.asks_first());
        self.setup.profile.asks_again
            && asks_first(&running.settings)
            && self.reviewing.is_none()
            && self.journal.is_saved()
            && running.machine.can_be_set_aside()
            && !running.work.calls().iter().any(has_run)
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
        for id in self.asking_calls() {
            self.await_answer(&id);
            self.await_patch_answer(&id);
        }
    }

    /// Ends all running calls because their turn stops, and returns what the model is told of them.
    pub(super) fn cut_off_calls(&mut self) -> Vec<(ItemId, FunctionCallOutputPayload)> {
        let Some(running) = &self.running else { return Vec::new() };
        let ids: Vec<ItemId> = running.work.calls().iter().map(|call| call.id.clone()).collect();
        let mut told = Vec::new();
        for id in ids {
            if let Some(text) = self.cut_off_command(&id) {
                told.push((id.clone(), FunctionCallOutputPayload::Text(text)));
            }
            self.cut_off_patch(&id);
        }
        self.work(Work::Nothing);
        told
    }
}

/// What the turn is told of a call that cannot begin.
pub(super) fn refused(id: &ItemId, why: String) -> Input {
    Input::CallEnded(id.clone(), FunctionCallOutputPayload::Text(why))
}
