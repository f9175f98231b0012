//! The goal of the thread.

use codex_log::{Abort, Body, ItemId, Outcome};
use codex_thread::goal::{GoalChange, GoalError};
use codex_tools::call::ToolCall;
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::goal::{Goal, GoalStatus};
use codex_wire::ids::ThreadId;
use codex_wire::response::Message;

use crate::goal::{GoalState, TurnEnd};
use crate::setup::Setup;
use crate::turn::UserMessage;

/// The tool with which the model reports the status of a goal.
const TOOL: &str = "update_goal";

/// The goal of a session, and its pending changes.
#[derive(Default)]
pub(super) struct Goals {
    pub(super) goal: GoalState,
}

impl Goals {
    /// Whether the user has enabled goals.
    pub(super) fn are_kept(setup: &Setup) -> bool {
        setup.config.features.get("goals").copied().unwrap_or(true)
    }

    /// Sets the goal, or changes it.
    pub(super) fn set(&mut self, change: GoalChange, setup: &Setup, is_running: bool) -> Result<Goal, GoalError> {
        if !Self::are_kept(setup) {
            return Err(GoalError::SwitchedOff);
        }
        self.goal.set(change, is_running, now())
    }

    /// The event for the log, if the goal has changed.
    pub(super) fn changed(&mut self) -> Option<Body> {
        self.goal.take_changed().map(|goal| Body::GoalChanged(goal.into()))
    }

    /// Records that the model works: it calls a tool other than the one that reports.
    pub(super) fn note_call(&mut self, call: &ToolCall, is_report_offered: bool) {
        if call.tool != TOOL || !is_report_offered {
            self.goal.act();
        }
    }

    /// Sets the status that the model reports.
    pub(super) fn report(&mut self, status: GoalStatus) -> Option<Body> {
        self.goal.report(status, now());
        self.changed()
    }

    /// Counts the tokens of an answer, and returns whether they exhausted the budget.
    pub(super) fn charge(&mut self, tokens: i64) -> Option<Body> {
        if self.goal.count(tokens, now()) { self.changed() } else { None }
    }

    /// Counts the tokens of agents below, and returns whether they exhausted the budget.
    pub(super) fn charge_below(&mut self, tokens: i64) -> Option<Body> {
        if self.goal.count_below(tokens, now()) { self.changed() } else { None }
    }

    /// Records the end of a turn, and returns the events to publish.
    pub(super) fn end_turn(&mut self, outcome: &Outcome, is_finishing: bool) -> Vec<Body> {
        let end = match outcome {
            Outcome::Completed { last_message, .. } => TurnEnd::Completed(last_message.as_deref()),
            Outcome::Aborted(Abort::Replaced) => TurnEnd::Replaced,
            Outcome::Aborted(_) if is_finishing => TurnEnd::Left,
            Outcome::Failed(failure) if failure.info == CodexErrorInfo::UsageLimitExceeded => TurnEnd::UsageLimited,
            Outcome::Aborted(_) | Outcome::Failed(_) => TurnEnd::Stopped,
        };
        let warning = self.goal.end_turn(end, now()).map(|message| Body::Warning { message });
        self.changed().into_iter().chain(warning).collect()
    }

    /// The input of a turn that the goal starts.
    pub(super) fn next_step(&mut self) -> UserMessage {
        UserMessage {
            id: ItemId::new(ThreadId::fresh().to_string()),
            key: None,
            content: Vec::new(),
            message: Message::user(self.goal.next_step()),
            is_echoed: false,
            context: Vec::new(),
        }
    }
}

/// The time in seconds of Unix time.
fn now() -> i64 {
    crate::journal::now_ms() / 1000
}
