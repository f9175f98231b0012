//! The goal of the thread: what others and the model do with it, and the turns that the thread begins by itself.

use codex_log::{Abort, Body, ItemId, Outcome, TurnId};
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::goal::{Goal, GoalStatus};
use codex_wire::ids::ThreadId;
use codex_wire::response::{FunctionCallOutputPayload, Message};
use serde::Deserialize;

use super::Session;
use crate::goal::TurnEnd;
use crate::turn::{Input, Turn, UserMessage};
use codex_thread::goal::{GoalChange, GoalError};
use codex_tools::call::{ToolCall, ToolInput};

/// The tool by which the model says how a goal stands.
const TOOL: &str = "update_goal";

#[derive(Deserialize)]
struct UpdateGoalArguments {
    status: GoalStatus,
}

impl Session {
    /// Whether the user wants goals to be kept.
    pub(super) fn has_goals(&self) -> bool {
        self.setup.config.features.get("goals").copied().unwrap_or(true)
    }

    pub(super) async fn set_goal(&mut self, change: GoalChange) -> Result<Goal, GoalError> {
        if !self.has_goals() {
            return Err(GoalError::SwitchedOff);
        }
        let goal = self.aims.goal.set(change, self.running.is_some(), now())?;
        self.log_goal();
        self.publish_durably().await;
        Ok(goal)
    }

    pub(super) async fn clear_goal(&mut self) -> bool {
        let had_one = self.aims.goal.clear();
        if had_one {
            self.emit(Body::GoalCleared);
            self.publish_durably().await;
        }
        had_one
    }

    /// Whether the model is offered the tool: while it works towards a goal, and is not the reviewer.
    pub(super) fn offers_goal_tool(&self) -> bool {
        self.aims.goal.is_active() && self.reviewing.is_none()
    }

    /// Takes the model's word for how the goal stands; none if that is not what it calls.
    pub(super) fn update_goal(&mut self, call: &ToolCall) -> Option<Input> {
        let ToolInput::Function(arguments) = &call.input else { return None };
        if call.tool != TOOL || !self.offers_goal_tool() {
            self.aims.goal.act();
            return None;
        }
        let told = match serde_json::from_str::<UpdateGoalArguments>(arguments).map(|arguments| arguments.status) {
            Ok(status @ (GoalStatus::Complete | GoalStatus::Blocked)) => {
                self.aims.goal.report(status, now());
                self.log_goal();
                "Goal updated".to_owned()
            }
            Ok(_) => "the status must be `complete` or `blocked`".to_owned(),
            Err(error) => format!("failed to parse function arguments: {error}"),
        };
        Some(Input::CallEnded(call.id.clone(), FunctionCallOutputPayload::Text(told)))
    }

    /// Tells the model of the goal, if it does not know how that stands.
    pub(super) fn tell_goal(&mut self) {
        if self.reviewing.is_none()
            && let Some(text) = self.aims.goal.note()
        {
            self.tell_model(Message::user(text));
        }
    }

    /// Adds to the log what has changed.
    pub(super) fn log_goal(&mut self) {
        if let Some(goal) = self.aims.goal.take_changed() {
            self.emit(Body::GoalChanged(goal.into()));
        }
    }

    /// Counts the tokens of an answer, and says so if they were the last.
    pub(super) fn charge_goal(&mut self, tokens: i64) {
        if self.aims.goal.count(tokens, now()) {
            self.log_goal();
        }
    }

    /// Notes how a turn has ended.
    pub(super) fn end_turn_of_goal(&mut self, outcome: &Outcome) {
        let end = match outcome {
            Outcome::Completed { last_message, .. } => TurnEnd::Completed(last_message.as_deref()),
            Outcome::Aborted(Abort::Replaced) => TurnEnd::Replaced,
            Outcome::Aborted(_) if self.is_finishing => TurnEnd::Left,
            Outcome::Failed(failure) if failure.info == CodexErrorInfo::UsageLimitExceeded => TurnEnd::UsageLimited,
            Outcome::Aborted(_) | Outcome::Failed(_) => TurnEnd::Stopped,
        };
        let warning = self.aims.goal.end_turn(end, now());
        self.log_goal();
        if let Some(message) = warning {
            self.emit(Body::Warning { message });
        }
    }

    /// Goes on towards the goal, in a turn that nobody has asked for.
    pub(super) async fn pursue(&mut self) {
        let turn = TurnId::new(ThreadId::fresh().to_string());
        let said = UserMessage {
            id: ItemId::new(ThreadId::fresh().to_string()),
            key: None,
            content: Vec::new(),
            message: Message::user(self.aims.goal.next_step()),
            is_echoed: false,
        };
        let (machine, effects) = Turn::start(&turn, said, self.window(), self.turn_policy(&self.settings));
        self.begin(turn, machine, None);
        self.aims.goal.begin_own();
        self.tell_environment();
        self.perform(effects).await;
    }
}

/// The time in seconds of Unix time.
fn now() -> i64 {
    crate::journal::now_ms() / 1000
}
