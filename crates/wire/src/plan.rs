//! The plan a model keeps while it works.

use serde::{Deserialize, Serialize};

spelled! {
    /// The status of one step of a plan.
    pub enum StepStatus {
        "pending" => Pending,
        "in_progress" => InProgress,
        "completed" => Completed,
    }
}

/// The whole plan, as in the model's `update_plan` call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct UpdatePlanArgs {
    /// The reason for the change.
    #[serde(default)]
    pub explanation: Option<String>,
    /// The steps, in order.
    pub plan: Vec<PlanItemArg>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct PlanItemArg {
    pub step: String,
    /// Its status.
    pub status: StepStatus,
}
