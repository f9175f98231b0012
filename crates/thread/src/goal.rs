//! What others ask of a thread's goal.

use codex_wire::goal::{Goal, GoalStatus};

use crate::handle::Thread;
use crate::request::{Closed, ThreadRequest};

/// How many characters an objective may have.
pub const LONGEST_OBJECTIVE: usize = 4_000;

/// What a client wants of a goal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GoalChange {
    /// What is to be reached. Another objective than the present one is a new goal.
    pub objective: Option<String>,
    /// How far it is; a new goal is active unless something else is said.
    pub status: Option<GoalStatus>,
    /// How many tokens may be used for it, or `Some(None)` for as many as it takes.
    pub token_budget: Option<Option<i64>>,
}

/// Why a goal cannot be set like that.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GoalError {
    /// There is nothing in the objective.
    #[error("the objective must not be empty")]
    EmptyObjective,
    /// The objective is longer than a model should be told again and again.
    #[error("the objective has {characters} characters, {LONGEST_OBJECTIVE} are allowed")]
    LongObjective {
        /// How many it has.
        characters: usize,
    },
    /// The budget leaves nothing to work with.
    #[error("the token budget must be at least 1, not {budget}")]
    NoBudget {
        /// What was asked for.
        budget: i64,
    },
    /// The goal cannot be active any more.
    #[error("the token budget of {budget} is used up; set a larger one")]
    BudgetUsedUp {
        /// The budget.
        budget: i64,
    },
    /// There is nothing to change.
    #[error("the thread has no goal; set one with an objective")]
    NoGoal,
    /// The user wants none.
    #[error("goals are switched off: `features.goals` is false")]
    SwitchedOff,
}

impl Thread {
    /// Sets a goal, or changes how the present one stands, and returns it. A thread that does nothing begins to work
    /// towards a goal that is active.
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

    /// Takes the goal away; false if there is none. A turn that runs goes on.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn clear_goal(&self) -> Result<bool, Closed> {
        self.ask(|reply| ThreadRequest::ClearGoal { reply }).await
    }
}
