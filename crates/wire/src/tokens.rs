//! The token usage of a thread, its context window, and the rate limits of the account.

use serde::{Deserialize, Serialize};

/// The tokens of the instructions and tools before the first input.
pub const BASELINE_TOKENS: i64 = 12_000;

/// The approximate number of bytes per token.
pub const BYTES_PER_TOKEN: usize = 4;

/// The tokens of one answer, or a sum of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct TokenUsage {
    /// Tokens sent, cached ones included.
    pub input_tokens: i64,
    /// The part of the input that the provider had cached.
    pub cached_input_tokens: i64,
    /// The part of the input that the provider added to its cache, if it reports that.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_input_tokens: i64,
    /// Tokens received, reasoning included.
    pub output_tokens: i64,
    /// The part of the output that was reasoning.
    pub reasoning_output_tokens: i64,
    /// Input and output together.
    pub total_tokens: i64,
}

/// Most providers do not report this, and clients of older releases do not know it.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(tokens: &i64) -> bool {
    *tokens == 0
}

impl TokenUsage {
    /// Tokens of the window in use after this answer. Reasoning is dropped between turns, so it does not count.
    #[must_use]
    pub fn tokens_in_window(&self) -> i64 {
        (self.total_tokens - self.reasoning_output_tokens).max(0)
    }

    /// The remaining part of the context window in percent, with the baseline subtracted from both sides.
    #[must_use]
    pub fn percent_of_window_left(&self, window: i64) -> i64 {
        let usable = window - BASELINE_TOKENS;
        if usable <= 0 {
            return 0;
        }
        let used = (self.tokens_in_window() - BASELINE_TOKENS).max(0);
        ((usable - used).max(0) * 100 + usable / 2) / usable
    }
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.cached_input_tokens += other.cached_input_tokens;
        self.cache_write_input_tokens += other.cache_write_input_tokens;
        self.output_tokens += other.output_tokens;
        self.reasoning_output_tokens += other.reasoning_output_tokens;
        self.total_tokens += other.total_tokens;
    }
}

/// The token usage of a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct TokenUsageInfo {
    /// The sum of all answers.
    pub total_token_usage: TokenUsage,
    /// The latest answer.
    pub last_token_usage: TokenUsage,
    /// The size of the model's window, if known.
    pub model_context_window: Option<i64>,
    /// The cost of the latest turn so far; only if the user has set prices for everything that it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "proptest::option::of(crate::forms::any_score())"))]
    pub turn_cost: Option<f64>,
    /// The cost of the thread, under the same condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "proptest::option::of(crate::forms::any_score())"))]
    pub thread_cost: Option<f64>,
}

impl TokenUsageInfo {
    /// No usage yet, in a window of this size.
    #[must_use]
    pub fn new(model_context_window: Option<i64>) -> Self {
        let none = TokenUsage::default();
        Self {
            total_token_usage: none,
            last_token_usage: none,
            model_context_window,
            turn_cost: None,
            thread_cost: None,
        }
    }
}

/// Adds two amounts of money, without the rounding errors of binary fractions.
#[must_use]
pub fn add_costs(one: f64, other: f64) -> f64 {
    const DIGITS: f64 = 1e9;
    ((one + other) * DIGITS).round() / DIGITS
}

/// The rate limits of the account, from the provider's latest headers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct RateLimitSnapshot {
    /// The short window.
    pub primary: Option<RateLimitWindow>,
    /// The long window.
    pub secondary: Option<RateLimitWindow>,
    /// Prepaid credits.
    pub credits: Option<CreditsSnapshot>,
    /// The plan of the account.
    pub plan_type: Option<String>,
}

/// One rate-limit window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct RateLimitWindow {
    /// The used part in percent.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_score()"))]
    pub used_percent: f64,
    /// The length of the window.
    #[serde(default)]
    pub window_minutes: Option<i64>,
    /// The time of the reset in Unix seconds.
    #[serde(default)]
    pub resets_at: Option<i64>,
    /// Seconds until the reset: the older spelling of `resets_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_in_seconds: Option<i64>,
}

/// Prepaid credits of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct CreditsSnapshot {
    pub has_credits: bool,
    /// Whether they are unlimited.
    pub unlimited: bool,
    /// The remaining amount, as the provider writes it.
    #[serde(default)]
    pub balance: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::TokenUsage;

    #[track_caller]
    fn check_left(total_tokens: i64, reasoning_output_tokens: i64, window: i64, percent: i64) {
        let usage = TokenUsage { reasoning_output_tokens, total_tokens, ..TokenUsage::default() };
        assert_eq!(usage.percent_of_window_left(window), percent);
    }

    #[test]
    fn baseline_is_taken_off_both_sides() {
        check_left(0, 0, 112_000, 100);
        check_left(12_000, 0, 112_000, 100);
        check_left(62_000, 0, 112_000, 50);
        check_left(112_000, 0, 112_000, 0);
        check_left(500_000, 0, 112_000, 0);
    }

    #[test]
    fn reasoning_does_not_fill_the_window() {
        check_left(62_000, 25_000, 112_000, 75);
    }

    #[test]
    fn percent_is_rounded_to_the_nearest() {
        check_left(12_000 + 1_004, 0, 13_000 + 199_000, 99);
        check_left(12_000 + 996, 0, 13_000 + 199_000, 100);
    }

    #[test]
    fn window_within_the_baseline_has_nothing_left() {
        check_left(0, 0, 12_000, 0);
        check_left(0, 0, 0, 0);
        check_left(0, 0, -1, 0);
    }

    #[test]
    fn reasoning_does_not_count_in_the_window() {
        let usage = TokenUsage {
            input_tokens: 120,
            cached_input_tokens: 40,
            cache_write_input_tokens: 0,
            output_tokens: 30,
            reasoning_output_tokens: 10,
            total_tokens: 150,
        };
        assert_eq!(usage.tokens_in_window(), 140);
    }

    #[test]
    fn usages_add_up() {
        let one = TokenUsage {
            input_tokens: 1,
            cached_input_tokens: 2,
            cache_write_input_tokens: 6,
            output_tokens: 3,
            reasoning_output_tokens: 4,
            total_tokens: 5,
        };
        let mut sum = one;
        sum += one;
        assert_eq!(sum.input_tokens + sum.cached_input_tokens + sum.output_tokens, 12);
        assert_eq!(sum.reasoning_output_tokens + sum.total_tokens, 18);
    }
}
