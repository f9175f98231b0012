//! The events of a turn.

use serde::{Deserialize, Serialize};

use crate::error_info::CodexErrorInfo;
use crate::text::Text;
use crate::tokens::{RateLimitSnapshot, TokenUsageInfo};

/// The turn failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ErrorEvent {
    /// The error for people.
    pub message: String,
    /// The error for programs.
    #[serde(default)]
    pub codex_error_info: Option<CodexErrorInfo>,
}

/// The stream from the provider broke off and is retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct StreamErrorEvent {
    /// The error for people.
    pub message: String,
    /// The error for programs.
    #[serde(default)]
    pub codex_error_info: Option<CodexErrorInfo>,
}

/// A warning after which the turn continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct WarningEvent {
    pub message: String,
}

/// A setting in use is deprecated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct DeprecationNoticeEvent {
    pub summary: String,
    /// The replacement to use.
    #[serde(default)]
    pub details: Option<String>,
}

/// Progress that belongs to no item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct BackgroundEventEvent {
    pub message: String,
}

/// A turn has started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct TaskStartedEvent {
    /// The size of the model's window, if known.
    #[serde(default)]
    pub model_context_window: Option<i64>,
}

/// A turn ended by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct TaskCompleteEvent {
    /// The last message of the model.
    #[serde(default)]
    pub last_agent_message: Option<Text>,
    /// The provider's id of the last answer, which the earliest clients used as a bookmark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
}

/// The token usage so far, and the rate limits of the account.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct TokenCountEvent {
    /// The tokens; absent before the first answer.
    #[serde(default)]
    pub info: Option<TokenUsageInfo>,
    /// The limits, from providers that send them.
    #[serde(default)]
    pub rate_limits: Option<RateLimitSnapshot>,
}

/// A turn was interrupted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct TurnAbortedEvent {
    /// The reason.
    pub reason: TurnAbortReason,
}

spelled! {
    /// The reason for interrupting a turn.
    pub open enum TurnAbortReason {
        /// The user requested it.
        "interrupted" => Interrupted,
        /// Another turn replaced it.
        "replaced" => Replaced,
        /// The review it belonged to ended.
        "review_ended" => ReviewEnded,
    }
}

/// The work tree is being restored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct UndoStartedEvent {
    #[serde(default)]
    pub message: Option<String>,
}

/// The work tree was restored, or the restore failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct UndoCompletedEvent {
    /// Whether it was restored.
    pub success: bool,
    /// The result, or the reason for the failure.
    #[serde(default)]
    pub message: Option<String>,
}

/// All changes of the turn so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct TurnDiffEvent {
    /// The changes in the form of `git diff`.
    pub unified_diff: String,
}
