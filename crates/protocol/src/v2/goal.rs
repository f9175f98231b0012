//! The goal of a thread: `thread/goal/set`, `thread/goal/get` and `thread/goal/clear`, and their notifications.

use codex_wire::goal::{Goal, GoalStatus};
use serde::{Deserialize, Deserializer, Serialize};

/// The goal of a thread, which it works towards over several turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoal {
    /// The thread.
    pub thread_id: String,
    pub objective: String,
    /// Its status.
    pub status: GoalStatus,
    /// Its token budget.
    pub token_budget: Option<i64>,
    /// The number of used tokens, including the latest answer of a running turn.
    pub tokens_used: i64,
    /// The total time of turns that worked towards it.
    pub time_used_seconds: i64,
    /// The creation time in Unix seconds.
    pub created_at: i64,
    /// The time of the latest change in Unix seconds.
    pub updated_at: i64,
}

impl ThreadGoal {
    /// The goal of a thread, in the form for clients.
    #[must_use]
    pub fn new(thread_id: String, goal: &Goal) -> Self {
        Self {
            thread_id,
            objective: goal.objective.clone(),
            status: goal.status,
            token_budget: goal.token_budget,
            tokens_used: goal.tokens_used,
            time_used_seconds: i64::try_from(goal.time_used_ms / 1000).unwrap_or(i64::MAX),
            created_at: goal.created_at,
            updated_at: goal.updated_at,
        }
    }
}

codex_wire::spelled! {
    /// The origin of a goal change: a person or a program. It has no effect here.
    pub enum ThreadGoalMutationOrigin {
        /// A person.
        "user" => User,
        /// A program.
        "automatic" => Automatic,
    }
}

/// `thread/goal/set`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalSetParams {
    /// The thread.
    pub thread_id: String,
    /// The new objective. Without one the current goal is changed.
    #[serde(default)]
    pub objective: Option<String>,
    /// Its status; a new goal is active by default.
    #[serde(default)]
    pub status: Option<GoalStatus>,
    /// Its token budget; `null` for none.
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<i64>"))]
    pub token_budget: Option<Option<i64>>,
    /// The origin of the command.
    #[serde(default)]
    pub origin: Option<ThreadGoalMutationOrigin>,
}

#[expect(clippy::option_option, reason = "absent, null and a value mean three different things")]
fn nullable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<i64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// The response of `thread/goal/set`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadGoalSetResponse {
    /// The goal as it is now.
    pub goal: ThreadGoal,
}

/// `thread/goal/get`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalGetParams {
    /// The thread.
    pub thread_id: String,
}

/// The response of `thread/goal/get`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadGoalGetResponse {
    /// The goal, if the thread has one.
    pub goal: Option<ThreadGoal>,
}

/// `thread/goal/clear`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalClearParams {
    /// The thread.
    pub thread_id: String,
    /// The origin of the command.
    #[serde(default)]
    pub origin: Option<ThreadGoalMutationOrigin>,
}

/// The response of `thread/goal/clear`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadGoalClearResponse {
    /// Whether there was a goal.
    pub cleared: bool,
}

/// The goal of a thread has changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalUpdated {
    /// The thread.
    pub thread_id: String,
    /// The turn in which it happened.
    pub turn_id: Option<String>,
    /// The goal.
    pub goal: ThreadGoal,
}
