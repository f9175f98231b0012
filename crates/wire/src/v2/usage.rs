//! Tokens and limits in camel case.

use serde::Serialize;

use super::item::Nothing;
use crate::tokens::{RateLimitSnapshot, TokenUsage, TokenUsageInfo};

/// The tokens of a thread.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadTokenUsage {
    /// All answers added up.
    pub total: TokenUsageBreakdown,
    /// The newest answer alone.
    pub last: TokenUsageBreakdown,
    /// The size of the model's window, where known.
    pub model_context_window: Option<i64>,
}

impl From<&TokenUsageInfo> for ThreadTokenUsage {
    fn from(info: &TokenUsageInfo) -> Self {
        Self {
            total: info.total_token_usage.into(),
            last: info.last_token_usage.into(),
            model_context_window: info.model_context_window,
        }
    }
}

/// Tokens by kind.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsageBreakdown {
    /// Input and output together.
    pub total_tokens: i64,
    /// Tokens sent, cached ones included.
    pub input_tokens: i64,
    /// The part of the input that the provider had cached.
    pub cached_input_tokens: i64,
    /// The part of the input that the provider has cached now; not told by any.
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
            cache_write_input_tokens: 0,
            output_tokens: usage.output_tokens,
            reasoning_output_tokens: usage.reasoning_output_tokens,
        }
    }
}

/// What the account still allows, in camel case.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RateLimits {
    /// What is limited.
    pub limit_id: &'static str,
    /// Its name for people.
    pub limit_name: Nothing,
    /// Never known here.
    pub normal_model_slug: Nothing,
    /// The short window.
    pub primary: Option<RateLimitWindow>,
    /// The long window.
    pub secondary: Option<RateLimitWindow>,
    /// Prepaid credits.
    pub credits: Option<Credits>,
    /// Never known here.
    pub individual_limit: Nothing,
    /// Never known here.
    pub spend_control_reached: Nothing,
    /// The plan of the account.
    pub plan_type: Option<String>,
    /// Never known here.
    pub rate_limit_reached_type: Nothing,
}

/// One window of limits.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RateLimitWindow {
    /// How much is used, from 0 to 100.
    pub used_percent: i32,
    /// The length of the window.
    pub window_duration_mins: Option<i64>,
    /// When it starts again, in Unix seconds.
    pub resets_at: Option<i64>,
}

/// Prepaid credits.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Credits {
    /// Whether there are any.
    pub has_credits: bool,
    /// Whether they never run out.
    pub unlimited: bool,
    /// How many are left.
    pub balance: Option<String>,
}

impl From<&RateLimitSnapshot> for RateLimits {
    fn from(limits: &RateLimitSnapshot) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "a percentage")]
        let window = |window: &crate::tokens::RateLimitWindow| RateLimitWindow {
            used_percent: window.used_percent.round() as i32,
            window_duration_mins: window.window_minutes,
            resets_at: window.resets_at,
        };
        Self {
            limit_id: "codex",
            limit_name: (),
            normal_model_slug: (),
            primary: limits.primary.as_ref().map(window),
            secondary: limits.secondary.as_ref().map(window),
            credits: limits.credits.as_ref().map(|credits| Credits {
                has_credits: credits.has_credits,
                unlimited: credits.unlimited,
                balance: credits.balance.clone(),
            }),
            individual_limit: (),
            spend_control_reached: (),
            plan_type: limits.plan_type.clone(),
            rate_limit_reached_type: (),
        }
    }
}
