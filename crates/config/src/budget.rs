//! The budget of threads: the most that a thread and the agents below it may use.

use crate::{Reader, ValueError};

/// The limits of a budget. Anything without a limit is not restricted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BudgetConfig {
    /// `budget.max_tokens`: tokens, input and output together.
    pub tokens: Option<i64>,
    /// `budget.max_cost`: the cost by the user's prices.
    pub cost: Option<f64>,
    /// `budget.max_seconds`: the time of turns.
    pub seconds: Option<u64>,
    /// `budget.max_commands`: commands of the model.
    pub commands: Option<u64>,
    /// `budget.max_requests`: requests to the model.
    pub requests: Option<u64>,
}

impl BudgetConfig {
    pub(crate) fn read(root: &Reader<'_>) -> Result<Self, ValueError> {
        let section = root.section("budget")?;
        Ok(Self {
            tokens: section.integer("max_tokens", 0..)?,
            cost: section.amount("max_cost")?,
            seconds: section.integer("max_seconds", 0..)?,
            commands: section.integer("max_commands", 0..)?,
            requests: section.integer("max_requests", 0..)?,
        })
    }
}
