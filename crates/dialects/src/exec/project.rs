//! From the log to the events.

use std::collections::HashMap;

use codex_log::{Abort, Body, Event, Failure, ItemId, Outcome, Question, QuestionKind, Status, limit_words};
use codex_wire::ids::ThreadId;
use codex_wire::mcp::McpInvocation;
use codex_wire::plan::{StepStatus, UpdatePlanArgs};
use codex_wire::tokens::{TokenUsage, TokenUsageInfo, add_costs};

use super::event::{ApprovalRequest, Subject, ThreadError, ThreadEvent, ThreadItem, ThreadItemDetails, Todo, Usage};
use super::items::updated;
use crate::ProtocolRelease;

pub(super) type Out<'a> = &'a mut Vec<ThreadEvent>;

/// The events of one run. The state is limited to data that later events repeat: ids of open items, the plan, and the
/// token usage.
#[derive(Debug, Default)]
pub struct Projector {
    /// The number of items with an id.
    named: u64,
    /// The commands that have begun.
    pub(super) begun: HashMap<ItemId, String>,
    /// The plan of this turn, and its id.
    plan: Option<(String, Vec<Todo>)>,
    /// The token usage before this run, once the first answer has started.
    before: Option<TokenUsage>,
    /// The token usage of this run.
    used: Usage,
    costs: Costs,
    is_in_turn: bool,
    /// The release whose events these are; `None` for the form that most clients read.
    release: Option<ProtocolRelease>,
}

/// The cost of a run.
#[derive(Debug, Default)]
struct Costs {
    /// The turns that have ended.
    before: f64,
    /// The current turn, as far as it is known.
    turn: Option<f64>,
    /// Whether the current turn was counted at all.
    is_counted: bool,
    /// Whether the cost of a turn that has ended is unknown.
    is_unknown: bool,
}

impl Costs {
    fn count(&mut self, turn: Option<f64>) -> Option<f64> {
        (self.turn, self.is_counted) = (turn, true);
        turn.filter(|_| !self.is_unknown).map(|turn| add_costs(self.before, turn))
    }

    fn end_turn(&mut self) {
        match self.turn.take() {
            Some(cost) => self.before = add_costs(self.before, cost),
            None => self.is_unknown |= self.is_counted,
        }
        self.is_counted = false;
    }
}

impl Projector {
    /// The events of one run in the form of a release.
    #[must_use]
    pub fn of(release: Option<ProtocolRelease>) -> Self {
        Self { release, ..Self::default() }
    }

    /// Appends the events of an entry of the log.
    pub fn project(&mut self, event: &Event, out: &mut Vec<ThreadEvent>) {
        match &event.body {
            Body::ThreadStarted(_) => out.push(ThreadEvent::ThreadStarted { thread_id: event.thread }),
            Body::TurnStarted { .. } => self.turn_started(out),
            // An item that needs approval starts when it is approved.
            Body::ItemStarted(item) if item.status() == Some(Status::Running) => self.item_started(item, out),
            Body::Answered { item: Some(item), answer, .. } if answer.allows() => {
                self.item_started(item, out);
            }
            Body::ItemCompleted(item) => self.item_completed(item, out),
            Body::PlanUpdated(plan) => self.plan_updated(plan, out),
            Body::TokensCounted { info, .. } => self.count(info.as_ref()),
            Body::AnswerRetried { failure, attempt, limit, .. } => {
                let message = format!("{}; retry {attempt} of {limit}", failure.message);
                out.push(ThreadEvent::Error(ThreadError { message }));
            }
            Body::LimitReached { failure, until_ms, .. } => {
                // A turn of an earlier run may go on waiting.
                if !self.is_in_turn {
                    self.turn_started(out);
                }
                out.push(ThreadEvent::Error(ThreadError { message: limit_words(failure, *until_ms) }));
            }
            Body::Warning { message } => {
                let id = self.name();
                let details = ThreadItemDetails::Error { message: message.clone() };
                out.push(ThreadEvent::ItemCompleted { item: ThreadItem { id, details } });
            }
            Body::TurnEnded(outcome) => self.turn_ended(outcome, out),
            Body::Asked(_)
            | Body::Answered { .. }
            | Body::ItemStarted(_)
            | Body::ItemDelta { .. }
            | Body::ItemInterrupted(_)
            | Body::ModelAsked(_)
            | Body::Recorded(_)
            | Body::TerminalWritten { .. }
            | Body::DiffChanged(_)
            | Body::ImageViewed { .. }
            | Body::ReviewEntered(_)
            | Body::ReviewExited(_)
            | Body::Compacted(_)
            | Body::WentBack { .. }
            | Body::RolledBack(_)
            | Body::ServerChanged(_)
            | Body::ServersStarted(_)
            | Body::CallProgressed { .. }
            | Body::Agent(_)
            | Body::Budget(_)
            | Body::Unread(_)
            | Body::GoalChanged(_)
            | Body::GoalCleared
            | Body::Queue(_) => {}
        }
    }

    /// The token usage of this run so far.
    #[must_use]
    pub fn used(&self) -> Usage {
        self.used
    }

    /// Counts the tokens of a child agent, which has a projector of its own.
    pub fn count_child(&mut self, event: &Event) {
        match &event.body {
            Body::TokensCounted { info, .. } => self.count(info.as_ref()),
            Body::TurnEnded(_) => self.costs.end_turn(),
            _ => {}
        }
    }

    /// Ends the run for a reason that is not in the log.
    pub fn fail(&mut self, message: String, out: &mut Vec<ThreadEvent>) {
        self.end_plan(out);
        out.push(ThreadEvent::Error(ThreadError { message: message.clone() }));
        out.push(ThreadEvent::TurnFailed { error: ThreadError { message } });
    }

    /// The approval request of a question, which a child agent may have asked.
    #[must_use]
    pub fn ask(question: &Question, child: Option<ThreadId>) -> ThreadEvent {
        let subject = match &question.kind {
            QuestionKind::Command { argv, cwd, .. } => {
                Subject::Command { command: codex_wire::command_line::join(argv), argv: argv.clone(), cwd: cwd.clone() }
            }
            QuestionKind::Permissions { asked, cwd } => {
                let (argv, cwd) = (asked.argv(), cwd.clone());
                Subject::Command { command: codex_wire::command_line::join(&argv), argv, cwd }
            }
            QuestionKind::Patch { changes, .. } => Subject::FileChange { changes: updated(changes) },
            QuestionKind::Tool { invocation, .. } => {
                let McpInvocation { server, tool, arguments } = invocation.clone();
                Subject::McpTool { server, tool, arguments }
            }
            QuestionKind::Elicitation(asked) => {
                Subject::Elicitation { server: asked.server.clone(), message: asked.message.clone() }
            }
        };
        let (id, reason) = (question.item().as_str().to_owned(), question.reason.clone());
        let request = ApprovalRequest { id, thread_id: child, reason, subject };
        ThreadEvent::ApprovalRequested { request }
    }

    pub(super) fn name(&mut self) -> String {
        self.named += 1;
        format!("item_{}", self.named - 1)
    }

    fn plan_updated(&mut self, plan: &UpdatePlanArgs, out: Out<'_>) {
        let items: Vec<Todo> = plan
            .plan
            .iter()
            .map(|step| Todo { text: step.step.clone(), completed: step.status == StepStatus::Completed })
            .collect();
        let details = ThreadItemDetails::TodoList { items: items.clone() };
        if let Some((id, known)) = &mut self.plan {
            *known = items;
            out.push(ThreadEvent::ItemUpdated { item: ThreadItem { id: id.clone(), details } });
        } else {
            let id = self.name();
            self.plan = Some((id.clone(), items));
            out.push(ThreadEvent::ItemStarted { item: ThreadItem { id, details } });
        }
    }

    fn end_plan(&mut self, out: Out<'_>) {
        if let Some((id, items)) = self.plan.take() {
            let details = ThreadItemDetails::TodoList { items };
            out.push(ThreadEvent::ItemCompleted { item: ThreadItem { id, details } });
        }
    }

    /// The first count arrives when an answer begins, before it has cost anything: the costs of a resumed thread until
    /// now.
    fn count(&mut self, info: Option<&TokenUsageInfo>) {
        let now = info.map(|info| info.total_token_usage).unwrap_or_default();
        let before = *self.before.get_or_insert(now);
        self.used = Usage {
            input_tokens: now.input_tokens - before.input_tokens,
            cached_input_tokens: now.cached_input_tokens - before.cached_input_tokens,
            cache_write_input_tokens: Some(now.cache_write_input_tokens - before.cache_write_input_tokens),
            output_tokens: now.output_tokens - before.output_tokens,
            reasoning_output_tokens: Some(now.reasoning_output_tokens - before.reasoning_output_tokens),
            cost: info.and_then(|info| self.costs.count(info.turn_cost)),
        };
    }

    fn turn_started(&mut self, out: Out<'_>) {
        self.is_in_turn = true;
        out.push(ThreadEvent::TurnStarted);
    }

    fn turn_ended(&mut self, outcome: &Outcome, out: Out<'_>) {
        self.is_in_turn = false;
        self.costs.end_turn();
        match outcome {
            Outcome::Completed { .. } => {
                self.end_plan(out);
                let mut usage = self.used;
                let written = usage.cache_write_input_tokens.unwrap_or_default();
                let is_told = match self.release {
                    Some(ProtocolRelease::V0166) => true,
                    Some(ProtocolRelease::V058 | ProtocolRelease::V077) => false,
                    None => written > 0,
                };
                usage.cache_write_input_tokens = is_told.then_some(written);
                let thought = usage.reasoning_output_tokens.unwrap_or_default();
                usage.reasoning_output_tokens =
                    (self.release.is_none_or(|release| release == ProtocolRelease::V0166)).then_some(thought);
                out.push(ThreadEvent::TurnCompleted { usage });
            }
            Outcome::Aborted(abort) => {
                let why = match abort {
                    Abort::Interrupted => "the turn was interrupted",
                    Abort::Replaced => "another turn took the place of this one",
                    Abort::ReviewEnded => "the review was stopped",
                };
                self.fail(why.to_owned(), out);
            }
            Outcome::Failed(failure) => self.fail(in_words(failure), out),
        }
    }
}

fn in_words(failure: &Failure) -> String {
    let hint = failure.hint.map(|hint| format!("\n{hint}")).unwrap_or_default();
    format!("{}{hint}", failure.message)
}
