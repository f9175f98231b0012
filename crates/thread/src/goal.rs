//! Requests about a thread's goal.

use codex_wire::goal::{Goal, GoalStatus};

use crate::handle::Thread;
use crate::request::{Closed, ThreadRequest};

/// The maximum number of characters of an objective.
pub const LONGEST_OBJECTIVE: usize = 4_000;

/// A client's change to a goal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GoalChange {
    /// The objective. One that differs from the current one starts a new goal.
    pub objective: Option<String>,
    /// The status; a new goal is active by default.
    pub status: Option<GoalStatus>,
    /// The token budget, or `Some(None)` for no limit.
    pub token_budget: Option<Option<i64>>,
}

/// The reason why a goal cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GoalError {
    #[error("the objective must not be empty")]
    EmptyObjective,
    /// The objective is too long to be repeated to a model again and again.
    #[error("the objective has {characters} characters, {LONGEST_OBJECTIVE} are allowed")]
    LongObjective { characters: usize },
    #[error("the token budget must be at least 1, not {budget}")]
    NoBudget { budget: i64 },
    /// The goal cannot be active any more.
    #[error("the token budget of {budget} is used up; set a larger one")]
    BudgetUsedUp { budget: i64 },
    /// There is no goal to change.
    #[error("the thread has no goal; set one with an objective")]
    NoGoal,
    /// Goals are disabled.
    #[error("goals are disabled: `features.goals` is false")]
    SwitchedOff,
}

impl Thread {
    /// Sets or changes the goal, and returns it. An idle thread starts to work towards an active goal.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn set_goal(&self, change: GoalChange) -> Result<Result<Goal, GoalError>, Closed> {
        let change = Box::new(change);
        self.ask(|reply| ThreadRequest::SetGoal { change, reply }).await
    }

    /// The goal, if there is one.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn goal(&self) -> Result<Option<Goal>, Closed> {
        self.ask(|reply| ThreadRequest::Goal { reply }).await
    }

    /// Removes the goal; false if there is none. A running turn continues.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn clear_goal(&self) -> Result<bool, Closed> {
        self.ask(|reply| ThreadRequest::ClearGoal { reply }).await
    }
}
