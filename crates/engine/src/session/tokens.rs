//! The token usage of a thread.

use codex_log::state::Tokens;
use codex_wire::tokens::{RateLimitSnapshot, TokenUsage, TokenUsageInfo};

/// The token usage after an answer, for a window of a given size.
pub(super) fn after_answer(
    mut tokens: Tokens,
    usage: Option<TokenUsage>,
    rate_limits: Option<RateLimitSnapshot>,
    window: Option<i64>,
) -> Tokens {
    if let Some(usage) = usage {
        let info = tokens.info.get_or_insert_with(|| TokenUsageInfo {
            total_token_usage: TokenUsage::default(),
            last_token_usage: TokenUsage::default(),
            model_context_window: window,
        });
        info.total_token_usage += usage;
        info.last_token_usage = usage;
        info.model_context_window = window;
    }
    // An answer that says nothing of limits leaves the last word standing.
    if let Some(limits) = rate_limits.filter(|limits| *limits != RateLimitSnapshot::default()) {
        tokens.rate_limits = limits;
    }
    tokens
}

/// The same with about how many tokens the next request begins with, which the model has not counted yet.
pub(super) fn estimated(mut tokens: Tokens, count: usize) -> Tokens {
    if let Some(info) = &mut tokens.info {
        let total_tokens = i64::try_from(count).unwrap_or(i64::MAX);
        info.last_token_usage = TokenUsage { total_tokens, ..TokenUsage::default() };
    }
    tokens
}
