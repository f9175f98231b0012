//! The token usage of a thread.

use codex_config::Price;
use codex_log::state::Tokens;
use codex_wire::tokens::{RateLimitSnapshot, TokenUsage, TokenUsageInfo, add_costs};

/// The rules for counting the tokens of an answer.
pub(super) struct CountRules {
    /// The size of the model's window, if known.
    pub(super) window: Option<i64>,
    /// The price of the model, if the user has set one.
    pub(super) price: Option<Price>,
    /// Whether this is the first count of the turn.
    pub(super) begins_turn: bool,
}

/// The token usage after an answer, and its cost.
pub(super) fn after_answer(
    mut tokens: Tokens,
    usage: Option<TokenUsage>,
    rate_limits: Option<RateLimitSnapshot>,
    rules: &CountRules,
) -> Tokens {
    if let Some(usage) = usage {
        let info = tokens.info.get_or_insert_with(|| TokenUsageInfo {
            turn_cost: Some(0.0),
            thread_cost: Some(0.0),
            ..TokenUsageInfo::new(rules.window)
        });
        info.total_token_usage += usage;
        info.last_token_usage = usage;
        info.model_context_window = rules.window;
    }
    if let Some(info) = &mut tokens.info {
        charge(info, usage.as_ref(), rules);
    }
    if let Some(limits) = rate_limits {
        tokens.limit(limits);
    }
    tokens
}

/// Adds the cost of an answer. If a part of the cost is unknown, so is the sum.
fn charge(info: &mut TokenUsageInfo, usage: Option<&TokenUsage>, rules: &CountRules) {
    let cost = rules.price.map(|price| usage.map_or(0.0, |usage| price.of(usage)));
    let before = if rules.begins_turn { Some(0.0) } else { info.turn_cost };
    info.turn_cost = before.zip(cost).map(|(one, other)| add_costs(one, other));
    if usage.is_some() {
        info.thread_cost = info.thread_cost.zip(cost).map(|(one, other)| add_costs(one, other));
    }
}

/// The same with an estimate of the tokens at the start of the next request, which the model has not counted yet.
pub(super) fn estimated(mut tokens: Tokens, count: usize) -> Tokens {
    if let Some(info) = &mut tokens.info {
        let total_tokens = i64::try_from(count).unwrap_or(i64::MAX);
        info.last_token_usage = TokenUsage { total_tokens, ..TokenUsage::default() };
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price { input: 2.0, cached: 0.2, cache_write: 2.5, output: 10.0 };

    fn count(tokens: Tokens, output_tokens: Option<i64>, price: Option<Price>, begins_turn: bool) -> Tokens {
        let usage = output_tokens.map(|output_tokens| TokenUsage { output_tokens, ..TokenUsage::default() });
        after_answer(tokens, usage, None, &CountRules { window: None, price, begins_turn })
    }

    fn costs(tokens: &Tokens) -> (Option<f64>, Option<f64>) {
        tokens.info.as_ref().map(|info| (info.turn_cost, info.thread_cost)).unwrap()
    }

    #[test]
    fn turns_and_threads_add_up() {
        let first = count(Tokens::default(), Some(10_000), Some(PRICE), true);
        assert_eq!(costs(&first), (Some(0.1), Some(0.1)));
        let second = count(first, Some(20_000), Some(PRICE), false);
        assert_eq!(costs(&second), (Some(0.3), Some(0.3)));
        let begun = count(second, None, Some(PRICE), true);
        assert_eq!(costs(&begun), (Some(0.0), Some(0.3)));
        let third = count(begun, Some(10_000), Some(PRICE), false);
        assert_eq!(costs(&third), (Some(0.1), Some(0.4)));
    }

    #[test]
    fn what_has_no_price_makes_the_cost_unknown() {
        let first = count(Tokens::default(), Some(10_000), None, true);
        assert_eq!(costs(&first), (None, None));
        let second = count(first, Some(10_000), Some(PRICE), false);
        assert_eq!(costs(&second), (None, None));
        // The cost of the next turn is known again.
        let third = count(second, Some(10_000), Some(PRICE), true);
        assert_eq!(costs(&third), (Some(0.1), None));
    }
}
