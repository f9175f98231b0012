//! Token usage in camel case.

use codex_wire::tokens::{TokenUsage, TokenUsageInfo};
use serde::{Deserialize, Serialize};

/// The tokens of a thread.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadTokenUsage {
    /// All answers added up.
    pub total: TokenUsageBreakdown,
    /// The newest answer alone.
    pub last: TokenUsageBreakdown,
    /// The size of the model's window, where known.
    pub model_context_window: Option<i64>,
    /// The cost of the latest turn so far; only if the user has set prices for everything that it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_cost: Option<f64>,
    /// The cost of the thread, under the same condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_cost: Option<f64>,
}

impl From<&TokenUsageInfo> for ThreadTokenUsage {
    fn from(info: &TokenUsageInfo) -> Self {
        Self {
            total: info.total_token_usage.into(),
            last: info.last_token_usage.into(),
            model_context_window: info.model_context_window,
            turn_cost: info.turn_cost,
            thread_cost: info.thread_cost,
        }
    }
}

/// Tokens by kind.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TokenUsageBreakdown {
    /// Input and output together.
    pub total_tokens: i64,
    /// Tokens sent, cached ones included.
    pub input_tokens: i64,
    /// The part of the input that the provider had cached.
    pub cached_input_tokens: i64,
    /// The part of the input that the provider added to its cache, if it reports that.
    pub cache_write_input_tokens: i64,
    /// Tokens received, reasoning included.
    pub output_tokens: i64,
    /// The part of the output that was reasoning.
    pub reasoning_output_tokens: i64,
}

impl From<TokenUsage> for TokenUsageBreakdown {
    fn from(usage: TokenUsage) -> Self {
        Self {
            total_tokens: usage.total_tokens,
            input_tokens: usage.input_tokens,
            cached_input_tokens: usage.cached_input_tokens,
            cache_write_input_tokens: usage.cache_write_input_tokens,
            output_tokens: usage.output_tokens,
            reasoning_output_tokens: usage.reasoning_output_tokens,
        }
    }
}
