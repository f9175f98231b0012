//! The goal of a thread: what it works towards until that is reached, and what that has cost.

use serde::{Deserialize, Serialize};

spelled! {
    /// How far a goal is.
    pub enum GoalStatus {
        /// The thread works towards it.
        "active" => Active,
        /// Somebody has put it aside, or a turn towards it came to a bad end.
        "paused" => Paused,
        /// The model cannot go on without a person.
        "blocked" => Blocked,
        /// The account's allowance is used up.
        "usageLimited" => UsageLimited,
        /// The tokens set aside for it are used up.
        "budgetLimited" => BudgetLimited,
        /// It is reached.
        "complete" => Complete,
    }
}

/// A goal as the rollout keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct Goal {
    /// What is to be reached.
    pub objective: String,
    /// How far it is.
    pub status: GoalStatus,
    /// How many tokens may be used for it.
    #[serde(default)]
    pub token_budget: Option<i64>,
    /// How many were used.
    #[serde(default)]
    pub tokens_used: i64,
    /// How long turns have worked towards it, in milliseconds.
    #[serde(default)]
    pub time_used_ms: u64,
    /// When it was set, in seconds of Unix time.
    #[serde(default)]
    pub created_at: i64,
    /// When anything about it changed last, in seconds of Unix time.
    #[serde(default)]
    pub updated_at: i64,
}

impl Goal {
    /// Whether the thread works towards it.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.status == GoalStatus::Active
    }

    /// Whether as many tokens were used as were set aside.
    #[must_use]
    pub fn is_budget_used_up(&self) -> bool {
        self.token_budget.is_some_and(|budget| self.tokens_used >= budget)
    }
}
