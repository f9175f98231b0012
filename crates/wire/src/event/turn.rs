//! How a turn begins, goes and ends.

use serde::{Deserialize, Serialize};

use crate::error_info::CodexErrorInfo;
use crate::text::Text;
use crate::tokens::{RateLimitSnapshot, TokenUsageInfo};

/// The turn failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ErrorEvent {
    /// What went wrong, for people.
    pub message: String,
    /// What went wrong, for programs.
    #[serde(default)]
    pub codex_error_info: Option<CodexErrorInfo>,
}

/// The stream from the provider broke and is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct StreamErrorEvent {
    /// What went wrong, for people.
    pub message: String,
    /// What went wrong, for programs.
    #[serde(default)]
    pub codex_error_info: Option<CodexErrorInfo>,
}

/// Something is amiss, and work goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct WarningEvent {
    /// What is amiss.
    pub message: String,
}

/// A setting in use will go away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct DeprecationNoticeEvent {
    /// Which one.
    pub summary: String,
    /// What to do in its place.
    #[serde(default)]
    pub details: Option<String>,
}

/// Progress that belongs to no item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct BackgroundEventEvent {
    /// What is going on.
    pub message: String,
}

/// A turn began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct TaskStartedEvent {
    /// The size of the model's window, where known.
    #[serde(default)]
    pub model_context_window: Option<i64>,
}

/// A turn ended by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct TaskCompleteEvent {
    /// What the model said last.
    #[serde(default)]
    pub last_agent_message: Option<Text>,
    /// The provider's name for the last answer, which the earliest clients used as a bookmark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
}

/// Tokens used so far and what the account still allows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct TokenCountEvent {
    /// The tokens; absent before the first answer.
    #[serde(default)]
    pub info: Option<TokenUsageInfo>,
    /// The limits, from providers that tell them.
    #[serde(default)]
    pub rate_limits: Option<RateLimitSnapshot>,
}

/// A turn was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct TurnAbortedEvent {
    /// Why.
    pub reason: TurnAbortReason,
}

spelled! {
    /// Why a turn was stopped.
    pub open enum TurnAbortReason {
        /// The user said so.
        "interrupted" => Interrupted,
        /// Another turn took its place.
        "replaced" => Replaced,
        /// The review it belonged to ended.
        "review_ended" => ReviewEnded,
    }
}

/// The work tree is being put back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct UndoStartedEvent {
    /// What is going on.
    #[serde(default)]
    pub message: Option<String>,
}

/// The work tree has been put back, or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct UndoCompletedEvent {
    /// Whether it was put back.
    pub success: bool,
    /// What was done, or why not.
    #[serde(default)]
    pub message: Option<String>,
}

/// Everything the turn has changed so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct TurnDiffEvent {
    /// The changes in the form of `git diff`.
    pub unified_diff: String,
}
