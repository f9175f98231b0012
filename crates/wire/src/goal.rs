//! The goal of a thread: its objective, its status, and its cost.

use serde::{Deserialize, Serialize};

spelled! {
    /// The status of a goal.
    pub enum GoalStatus {
        /// The thread works towards it.
        "active" => Active,
        /// A person paused it, or a turn failed.
        "paused" => Paused,
        /// The model cannot continue without a person.
        "blocked" => Blocked,
        /// The account's allowance is exhausted.
        "usageLimited" => UsageLimited,
        /// Its token budget is exhausted.
        "budgetLimited" => BudgetLimited,
        /// It is complete.
        "complete" => Complete,
    }
}

/// A goal as the rollout stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct Goal {
    pub objective: String,
    /// Its status.
    pub status: GoalStatus,
    /// Its token budget.
    #[serde(default)]
    pub token_budget: Option<i64>,
    /// The number of used tokens.
    #[serde(default)]
    pub tokens_used: i64,
    /// The total time of turns that worked towards it, in milliseconds.
    #[serde(default)]
    pub time_used_ms: u64,
    /// The creation time in Unix seconds.
    #[serde(default)]
    pub created_at: i64,
    /// The time of the latest change in Unix seconds.
    #[serde(default)]
    pub updated_at: i64,
}

impl Goal {
    /// Whether the thread works towards it.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.status == GoalStatus::Active
    }

    /// Whether the token budget is exhausted.
    #[must_use]
    pub fn is_budget_used_up(&self) -> bool {
        self.token_budget.is_some_and(|budget| self.tokens_used >= budget)
    }
}
