//! The budget of a thread: what it and the agents below it have used, and the limit that was reached.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

use crate::tokens::add_costs;

/// The use of a thread, together with all agents below it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Used {
    pub tokens: i64,
    /// The cost of the answers whose model has a price.
    pub cost: f64,
    /// The time of turns, in milliseconds. Turns that run at the same time add up.
    pub time_ms: u64,
    /// Commands of the model.
    pub commands: u64,
    /// Requests to the model.
    pub requests: u64,
}

impl Add for Used {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            cost: add_costs(self.cost, other.cost),
            time_ms: self.time_ms.saturating_add(other.time_ms),
            commands: self.commands.saturating_add(other.commands),
            requests: self.requests.saturating_add(other.requests),
        }
    }
}

impl AddAssign for Used {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Used {
    type Output = Self;

    /// The use since then.
    fn sub(self, before: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(before.tokens),
            cost: add_costs(self.cost, -before.cost).max(0.0),
            time_ms: self.time_ms.saturating_sub(before.time_ms),
            commands: self.commands.saturating_sub(before.commands),
            requests: self.requests.saturating_sub(before.requests),
        }
    }
}

/// A limit of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "limit", content = "most", rename_all = "snake_case")]
pub enum BudgetLimit {
    Tokens(i64),
    Cost(f64),
    Seconds(u64),
    Commands(u64),
    Requests(u64),
}

impl BudgetLimit {
    /// The number or the amount that was used of it, for people.
    fn amount_of(self, used: &Used) -> String {
        match self {
            Self::Tokens(_) => format!("{} used", used.tokens),
            // Enough digits to be more than zero.
            Self::Cost(_) if used.cost > 0.0 && used.cost < 0.01 => format!("spent {:.6}", used.cost),
            Self::Cost(_) => format!("spent {:.4}", used.cost),
            Self::Seconds(_) => format!("{}.{} used", used.time_ms / 1000, used.time_ms % 1000 / 100),
            Self::Commands(_) => format!("{} used", used.commands),
            Self::Requests(_) => format!("{} used", used.requests),
        }
    }
}

/// The budget in words.
impl fmt::Display for BudgetLimit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tokens(most) => write!(out, "budget of {most} tokens"),
            Self::Cost(most) => write!(out, "budget of {most}"),
            Self::Seconds(most) => write!(out, "budget of {most} seconds"),
            Self::Commands(most) => write!(out, "budget of {most} commands"),
            Self::Requests(most) => write!(out, "budget of {most} requests"),
        }
    }
}

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BudgetReached {
    #[serde(flatten)]
    pub limit: BudgetLimit,
    /// The use that counts against the limit.
    pub spent: Used,
}

/// The limit that was reached, and the amount that was used.
impl fmt::Display for BudgetReached {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} exhausted: {}", self.limit, self.limit.amount_of(&self.spent))
    }
}

/// Something that has happened to the budget of a thread. Files contain these as lines, which other releases skip.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum BudgetEvent {
    /// The use so far.
    #[serde(rename = "budget_used")]
    Used { used: Used },
    /// A limit was reached, and the turn ends.
    #[serde(rename = "budget_reached")]
    Reached {
        #[serde(flatten)]
        reached: BudgetReached,
        /// The use so far.
        used: Used,
    },
}

impl BudgetEvent {
    /// The use so far.
    #[must_use]
    pub fn used(&self) -> &Used {
        match self {
            Self::Used { used } | Self::Reached { used, .. } => used,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_told_with_what_was_used() {
        let spent = Used { tokens: 330, cost: 0.58, time_ms: 61_250, commands: 5, requests: 2 };
        let told = |limit| BudgetReached { limit, spent }.to_string();
        assert_eq!(told(BudgetLimit::Tokens(300)), "budget of 300 tokens exhausted: 330 used");
        assert_eq!(told(BudgetLimit::Cost(0.5)), "budget of 0.5 exhausted: spent 0.5800");
        assert_eq!(told(BudgetLimit::Seconds(60)), "budget of 60 seconds exhausted: 61.2 used");
        assert_eq!(told(BudgetLimit::Commands(4)), "budget of 4 commands exhausted: 5 used");
        assert_eq!(told(BudgetLimit::Requests(2)), "budget of 2 requests exhausted: 2 used");
    }

    #[test]
    fn an_event_has_one_form_in_files() {
        let used = Used { tokens: 330, cost: 0.5, time_ms: 1500, commands: 2, requests: 3 };
        let reached = BudgetReached { limit: BudgetLimit::Tokens(300), spent: used };
        let event = BudgetEvent::Reached { reached, used };
        let line = serde_json::to_string(&event).unwrap();
        let counts = r#"{"tokens":330,"cost":0.5,"time_ms":1500,"commands":2,"requests":3}"#;
        let expected =
            format!(r#"{{"type":"budget_reached","limit":"tokens","most":300,"spent":{counts},"used":{counts}}}"#);
        assert_eq!(line, expected);
        assert_eq!(serde_json::from_str::<BudgetEvent>(&line).unwrap(), event);
    }

    #[test]
    fn uses_add_up() {
        let one = Used { tokens: 10, cost: 0.1, time_ms: 5, commands: 1, requests: 2 };
        let other = Used { tokens: 3, cost: 0.2, ..Used::default() };
        assert_eq!(one + other - one, other);
    }
}
