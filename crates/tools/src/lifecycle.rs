//! The lifecycle of every call, the user's own included: gate, begin, ask, run, gate.
//!
//! Invariants: nothing begins that the gate does not admit; a question is answered at most once, and by its id; a call
//! ends exactly once, and the state that it leaves for later calls is kept here and nowhere else.

/// Whether an event tells that its call has failed, or was declined.
fn is_failure(body: &Body) -> bool {
    let Body::ItemCompleted(item) = body else { return false };
    matches!(item.status(), Some(Status::Failed | Status::Declined))
}

#[cfg(test)]
mod tests;

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use codex_config::Home;
use codex_log::{Answer, Body, Item, ItemId, Question, QuestionId, Status};
use codex_wire::goal::GoalStatus;
use codex_wire::permissions::{CommandForecast, CommandRule, Permissions};
use codex_wire::response::FunctionCallOutputPayload;
use futures_util::future::{BoxFuture, select_all};
use tokio::time::{Sleep, sleep};

use crate::call::ToolCall;
use crate::command::forecast;
use crate::context::{ThreadTools, ToolContext};
use crate::grants::{Background, Grant, Grants};
use crate::registry::Registry;

/// The output of a call for the model.
pub type ToolOutput = FunctionCallOutputPayload;

/// A call in progress: a state machine, and the code that performs its effects. Dropping it cancels it.
pub trait Call: Send {
    /// The first effects.
    fn begun(&mut self) -> Vec<Effect>;
    /// Handles the answer to its latest question.
    fn answered(&mut self, answer: Answer) -> Vec<Effect>;
    /// Waits for the next effects. Cancel safe.
    fn next(&mut self) -> BoxFuture<'_, Vec<Effect>>;
    /// The turn stops: returns its last events, and its output if there is more to report than that it was aborted.
    fn stop(&mut self) -> Vec<Effect>;
    /// Whether a stop has to wait for it, because half of its work is worse than a short wait.
    fn must_finish(&self) -> bool {
        false
    }
    /// Whether it tells nothing but its output, also if it succeeds. Any other call without an event has failed.
    fn is_quiet(&self) -> bool {
        false
    }
    /// Whether it has done nothing yet, so that it may start again in another run of the program.
    fn may_begin_again(&self) -> bool {
        false
    }
}

/// The effects of a call, in order.
#[derive(Debug)]
pub enum Effect {
    /// Append to the log.
    Emit(Body),
    /// Ask a person.
    Ask(Question),
    /// Record an approval.
    Grant(Grant),
    /// Report the status of the goal.
    ReportGoal(GoalStatus),
    /// Keep a terminal after the call.
    Keep(Background),
    /// The call is over; this goes to the model.
    End(ToolOutput),
    /// The call is over, and so is the turn.
    EndTurn,
}

/// The events of calls for a session.
#[derive(Debug)]
pub enum CallEvent {
    /// An event for the log.
    Emit(Body),
    /// The model reports the status of the goal.
    GoalReported(GoalStatus),
    /// A call has failed or was refused. Its end follows.
    Failed(ItemId),
    /// A call is over, with its output for the model.
    Ended(ItemId, ToolOutput),
    /// A person has stopped the turn when asked about a call.
    TurnStopped,
}

/// Can refuse any call before it begins, and sees the output of each.
pub trait Gate: Send + Sync {
    /// Admits a call, or returns the reason for refusing it. The model is told.
    ///
    /// # Errors
    /// When the call must not begin.
    fn enter(&self, call: &ToolCall, cx: &ToolContext) -> Result<(), String>;
    /// Sees the output of a call for the model.
    fn leave(&self, call: &ItemId, output: ToolOutput) -> ToolOutput;
}

/// A gate that admits everything.
#[derive(Debug, Default)]
pub struct OpenGate;

impl Gate for OpenGate {
    fn enter(&self, _: &ToolCall, _: &ToolContext) -> Result<(), String> {
        Ok(())
    }

    fn leave(&self, _: &ItemId, output: ToolOutput) -> ToolOutput {
        output
    }
}

/// A running call and its open question.
struct RunningCall {
    id: ItemId,
    call: Box<dyn Call>,
    cx: Arc<ToolContext>,
    question: Option<OpenQuestion>,
}

/// An open question.
struct OpenQuestion {
    asked: Arc<Question>,
    /// The time when it counts as declined, and the duration from when it was asked.
    due: Option<(Pin<Box<Sleep>>, Duration)>,
}

/// The result of a running call.
enum CallResult {
    Effects(Vec<Effect>),
    /// Nobody has answered in time.
    Unanswered(Duration),
}

/// The calls of a thread, and the state that they leave.
pub struct Lifecycle {
    registry: Arc<Registry>,
    gate: Arc<dyn Gate>,
    thread: Arc<ThreadTools>,
    grants: Grants,
    /// Calls in the order of their start.
    running: Vec<RunningCall>,
    /// Whether nobody answers any more.
    is_unanswered: bool,
}

impl Lifecycle {
    #[must_use]
    pub fn new(registry: Arc<Registry>, gate: Arc<dyn Gate>, grants: Grants) -> Self {
        Self { registry, gate, thread: Arc::default(), grants, running: Vec::new(), is_unanswered: false }
    }

    /// The state that the calls of the thread share.
    #[must_use]
    pub fn thread(&self) -> &Arc<ThreadTools> {
        &self.thread
    }

    #[must_use]
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub fn begin(&mut self, call: ToolCall, cx: &Arc<ToolContext>) -> Vec<CallEvent> {
        let id = call.id.clone();
        if let Err(why) = self.gate.enter(&call, cx) {
            return vec![CallEvent::Failed(id.clone()), CallEvent::Ended(id, ToolOutput::Text(why))];
        }
        let mut call = self.registry.snapshot().find(&call).begin(call, cx, &self.grants);
        let effects = call.begun();
        self.running.push(RunningCall { id: id.clone(), call, cx: Arc::clone(cx), question: None });
        self.perform(&id, effects)
    }

    /// Waits for the next events. Cancel safe.
    pub async fn next(&mut self) -> Vec<CallEvent> {
        if self.running.is_empty() {
            return std::future::pending().await;
        }
        // Earlier calls go first. Their output is bounded, so no other call waits for long.
        let ((id, arrived), ..) = select_all(self.running.iter_mut().map(|call| Box::pin(call.next()))).await;
        match arrived {
            CallResult::Effects(effects) => self.perform(&id, effects),
            CallResult::Unanswered(after) => self.unanswered(&id, after),
        }
    }

    /// Answers a question; `None` if it is not open.
    pub fn answer(&mut self, question: &QuestionId, answer: Answer) -> Option<Vec<CallEvent>> {
        let asks = |call: &&mut RunningCall| call.question.as_ref().is_some_and(|open| open.asked.id == *question);
        let running = self.running.iter_mut().find(asks)?;
        running.question = None;
        let (id, effects) = (running.id.clone(), running.call.answered(answer));
        Some(self.perform(&id, effects))
    }

    /// From here on nobody answers any more.
    pub fn expect_no_answers(&mut self) {
        self.is_unanswered = true;
        for open in self.running.iter_mut().filter_map(|call| call.question.as_mut()) {
            open.due = Some((Box::pin(sleep(Duration::ZERO)), Duration::ZERO));
        }
    }

    /// Whether there are calls and all of them wait for a person.
    #[must_use]
    pub fn only_asks(&self) -> bool {
        !self.running.is_empty() && self.running.iter().all(|call| call.question.is_some())
    }

    /// Whether all calls may start again in another run of the program.
    #[must_use]
    pub fn may_begin_again(&self) -> bool {
        self.running.iter().all(|call| call.call.may_begin_again())
    }

    /// Waits for a call that must not be aborted.
    pub async fn finish(&mut self) -> Vec<CallEvent> {
        let Some(running) = self.running.iter_mut().find(|call| call.call.must_finish()) else { return Vec::new() };
        let (id, effects) = (running.id.clone(), running.call.next().await);
        self.perform(&id, effects)
    }

    /// Ends all calls because their turn stops.
    pub fn stop(&mut self) -> Vec<CallEvent> {
        let mut told = Vec::new();
        for id in self.running.iter().map(|call| call.id.clone()).collect::<Vec<_>>() {
            let running = self.running.iter_mut().find(|call| call.id == id);
            if let Some(effects) = running.map(|running| running.call.stop()) {
                told.extend(self.perform(&id, effects));
            }
        }
        self.running.clear();
        told
    }

    /// Drops all calls.
    pub fn cancel(&mut self) {
        self.running.clear();
    }

    /// Cleans up at the end of a turn: terminals whose commands have ended, and the folders.
    pub async fn end_turn(&mut self, cwd: &Path) -> Vec<Body> {
        let mut told = self.grants.look_after_terminals(&self.thread).await;
        told.extend(self.thread.inspect_folders(cwd).await);
        self.thread.granted.end_turn();
        told
    }

    /// The commands whose terminals are open, oldest first, after those that have ended are taken away; and the events
    /// about the latter.
    pub async fn terminals(&mut self) -> (Vec<Item>, Vec<Body>) {
        let told = self.grants.look_after_terminals(&self.thread).await;
        (self.grants.open_terminals(), told)
    }

    /// Whether a terminal is open, or was when it was last looked at.
    #[must_use]
    pub fn has_terminals(&self) -> bool {
        !self.grants.open_terminals().is_empty()
    }

    /// Ends the command of a terminal; `None` if there is no such terminal.
    pub fn end_terminal(&mut self, process: u64) -> Option<Body> {
        self.grants.end_terminal(process, &self.thread)
    }

    /// Ends all terminals, because the user or the end of the thread ends them.
    pub fn end_terminals(&mut self) -> Vec<Body> {
        self.grants.end_terminals(&self.thread)
    }

    /// The rules and approvals that commands are judged by.
    #[must_use]
    pub fn permissions(&self) -> Permissions {
        self.grants.listed()
    }

    /// The outcome of a command line if it were to run now.
    ///
    /// # Errors
    /// If it is a patch, which is judged by the files that it changes.
    pub fn forecast(&self, line: &str, cx: &ToolContext) -> Result<CommandForecast, String> {
        forecast(line, cx, &self.grants)
    }

    /// Takes an approval back; `false` if there is none with this id.
    pub fn revoke(&mut self, id: &str) -> bool {
        self.grants.revoke(id)
    }

    /// Removes a rule from its file. Threads that are loaded apart from this one keep it until they are loaded again.
    ///
    /// # Errors
    /// If it is not there any more, or the file cannot be written.
    pub fn remove_rule(&mut self, rule: &CommandRule, home: &Home) -> Result<(), String> {
        self.grants.remove_rule(rule, home)
    }

    fn unanswered(&mut self, id: &ItemId, after: Duration) -> Vec<CallEvent> {
        let Some(running) = self.running.iter_mut().find(|call| call.id == *id) else { return Vec::new() };
        let Some(open) = running.question.take() else { return Vec::new() };
        let effects = running.call.answered(Answer::Declined);
        let mut told = vec![CallEvent::Emit(Body::unanswered(open.asked.kind.noun(), after))];
        told.extend(self.perform(id, effects));
        told
    }

    /// Performs the effects of a call.
    fn perform(&mut self, id: &ItemId, effects: Vec<Effect>) -> Vec<CallEvent> {
        let mut told = Vec::with_capacity(effects.len());
        let Some(place) = self.running.iter().position(|call| call.id == *id) else { return told };
        let mut has_failed = matches!(effects.as_slice(), [Effect::End(_)]) && !self.running[place].call.is_quiet();
        for effect in effects {
            match effect {
                Effect::Emit(body) => {
                    has_failed |= is_failure(&body);
                    told.push(CallEvent::Emit(body));
                }
                Effect::Ask(question) => {
                    let asked = Arc::new(question);
                    told.push(CallEvent::Emit(Body::Asked(Arc::clone(&asked))));
                    let after = if self.is_unanswered { Some(Duration::ZERO) } else { asked.deadline };
                    let due = after.map(|after| (Box::pin(sleep(after)), after));
                    self.running[place].question = Some(OpenQuestion { asked, due });
                }
                Effect::Grant(grant) => {
                    let home = &self.running[place].cx.home;
                    told.extend(self.grants.add(grant, home).into_iter().map(CallEvent::Emit));
                }
                Effect::ReportGoal(status) => told.push(CallEvent::GoalReported(status)),
                Effect::Keep(background) => {
                    told.extend(self.grants.keep(background).into_iter().map(CallEvent::Emit));
                }
                Effect::End(output) => {
                    self.running.remove(place);
                    told.extend(has_failed.then(|| CallEvent::Failed(id.clone())));
                    let output = self.thread.with_findings(output);
                    told.push(CallEvent::Ended(id.clone(), self.gate.leave(id, output)));
                    return told;
                }
                Effect::EndTurn => {
                    self.running.remove(place);
                    told.push(CallEvent::TurnStopped);
                    return told;
                }
            }
        }
        told
    }
}

impl RunningCall {
    async fn next(&mut self) -> (ItemId, CallResult) {
        let arrived = match self.question.as_mut().map(|open| &mut open.due) {
            Some(Some((sleep, after))) => {
                sleep.await;
                CallResult::Unanswered(*after)
            }
            // There is nothing to do before the answer.
            Some(None) => std::future::pending().await,
            None => CallResult::Effects(self.call.next().await),
        };
        (self.id.clone(), arrived)
    }
}
