//! Turns: the parameters and responses of `turn/*`.

use std::path::PathBuf;

use codex_wire::additional_context::AdditionalContext;
use codex_wire::collaboration::CollaborationMode;
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::input::UserInput;
use codex_wire::policy::{ApprovalsReviewer, AskForApproval, SandboxPolicy};
use codex_wire::reasoning::{ReasoningEffort, ReasoningSummary};
use codex_wire::review::ReviewTarget;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::item::{Nothing, ThreadItem, TimedItem};

/// A turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// Its name.
    pub id: String,
    /// The turn that it belongs to: itself.
    pub root_turn_id: String,
    /// Its items, as far as `items_view` includes them.
    pub items: Vec<TimedItem>,
    /// The completeness of the items.
    #[serde(default)]
    pub items_view: ItemsView,
    /// Its status.
    pub status: TurnStatus,
    #[serde(default)]
    pub error: Option<TurnError>,
    /// The start time in Unix seconds.
    #[serde(default)]
    pub started_at: Option<i64>,
    #[serde(default)]
    pub completed_at: Option<i64>,
    /// Its duration.
    #[serde(default)]
    pub duration_ms: Option<i64>,
}

impl Turn {
    /// A turn that has begun, without its items.
    #[must_use]
    pub fn begun(id: String) -> Self {
        Self {
            root_turn_id: id.clone(),
            id,
            items: Vec::new(),
            items_view: ItemsView::NotLoaded,
            status: TurnStatus::InProgress,
            error: None,
            started_at: None,
            completed_at: None,
            duration_ms: None,
        }
    }

    /// A turn that is over, with all its items but without their times.
    #[must_use]
    pub fn whole(id: String, items: Vec<ThreadItem>, status: TurnStatus) -> Self {
        let timeless = |item| TimedItem { item, started_at_ms: None, completed_at_ms: None };
        let items = items.into_iter().map(timeless).collect();
        Self { items, items_view: ItemsView::Full, status, ..Self::begun(id) }
    }
}

/// The completeness of a turn's items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TurnItemsView"))]
#[serde(rename_all = "camelCase")]
pub enum ItemsView {
    /// None.
    NotLoaded,
    /// The last message of the model.
    Summary,
    /// All.
    #[default]
    Full,
}

/// The status of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum TurnStatus {
    /// The model had nothing more to do.
    Completed,
    /// It was interrupted.
    Interrupted,
    /// It failed.
    Failed,
    /// It is running.
    InProgress,
}

/// The error of a failed turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnError {
    /// A sentence for people.
    pub message: String,
    /// The kind of failure.
    #[serde(default)]
    pub codex_error_info: Option<ErrorInfo>,
    /// Details for people.
    #[serde(default)]
    pub additional_details: Option<String>,
    /// Never known here.
    #[serde(default)]
    pub misalignment: Nothing,
}

/// The kind of a failure in camel case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "v2_CodexErrorInfo"))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
#[expect(missing_docs, reason = "the same as in CodexErrorInfo")]
pub enum ErrorInfo {
    ContextWindowExceeded,
    SessionBudgetExceeded,
    UsageLimitExceeded,
    HttpConnectionFailed { http_status_code: Option<u16> },
    ResponseStreamConnectionFailed { http_status_code: Option<u16> },
    InternalServerError,
    Unauthorized,
    BadRequest,
    SandboxError,
    ResponseStreamDisconnected { http_status_code: Option<u16> },
    ResponseTooManyFailedAttempts { http_status_code: Option<u16> },
    Other,
}

impl From<&CodexErrorInfo> for ErrorInfo {
    fn from(info: &CodexErrorInfo) -> Self {
        match *info {
            CodexErrorInfo::ContextWindowExceeded => Self::ContextWindowExceeded,
            CodexErrorInfo::SessionBudgetExceeded => Self::SessionBudgetExceeded,
            CodexErrorInfo::UsageLimitExceeded => Self::UsageLimitExceeded,
            CodexErrorInfo::HttpConnectionFailed { http_status_code } => {
                Self::HttpConnectionFailed { http_status_code }
            }
            CodexErrorInfo::ResponseStreamConnectionFailed { http_status_code } => {
                Self::ResponseStreamConnectionFailed { http_status_code }
            }
            CodexErrorInfo::InternalServerError => Self::InternalServerError,
            CodexErrorInfo::Unauthorized => Self::Unauthorized,
            CodexErrorInfo::BadRequest => Self::BadRequest,
            CodexErrorInfo::SandboxError => Self::SandboxError,
            CodexErrorInfo::ResponseStreamDisconnected { http_status_code } => {
                Self::ResponseStreamDisconnected { http_status_code }
            }
            CodexErrorInfo::ResponseTooManyFailedAttempts { http_status_code } => {
                Self::ResponseTooManyFailedAttempts { http_status_code }
            }
            CodexErrorInfo::Other | CodexErrorInfo::Unknown(_) => Self::Other,
        }
    }
}

/// `turn/start`: sends input to a thread.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnStartParams {
    /// The thread.
    #[serde(alias = "thread_id", alias = "conversationId")]
    pub thread_id: String,
    /// The user's input.
    #[serde(serialize_with = "super::item::camel_input")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<super::item::InputItem>"))]
    pub input: Vec<UserInput>,
    /// The approval policy from this turn on.
    #[serde(default, alias = "approval_policy")]
    pub approval_policy: Option<AskForApproval>,
    /// The reviewer of approval requests, from this turn on.
    #[serde(default, alias = "approvals_reviewer")]
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    /// The working directory from this turn on.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// The reasoning effort from this turn on.
    #[serde(default)]
    pub effort: Option<ReasoningEffort>,
    /// The model, from this turn on.
    #[serde(default)]
    pub model: Option<String>,
    /// The sandbox policy from this turn on.
    #[serde(default, alias = "sandbox_policy", serialize_with = "super::command_exec::camel_policy")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::policy::Sandbox>"))]
    pub sandbox_policy: Option<SandboxPolicy>,
    /// The detail of reasoning summaries from this turn on.
    #[serde(default)]
    pub summary: Option<ReasoningSummary>,
    /// The schema that the last message of this turn follows.
    #[serde(default, alias = "output_schema")]
    pub output_schema: Option<Value>,
    /// The client's id for this message; a repeated id does not start another turn.
    #[serde(default)]
    pub client_user_message_id: Option<String>,
    /// The collaboration mode from this turn on, which takes precedence over `model` and `effort`.
    #[serde(default)]
    pub collaboration_mode: Option<CollaborationMode>,
    /// Texts that the model gets before this message: of the application, or untrusted.
    #[serde(default, alias = "additional_context")]
    pub additional_context: Option<AdditionalContext>,
}

/// The response of `turn/start`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnStartResponse {
    /// The turn.
    pub turn: Turn,
}

/// `turn/steer`: sends input to a running turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnSteerParams {
    /// The thread.
    pub thread_id: String,
    /// The turn that must be running.
    pub expected_turn_id: String,
    /// The user's input.
    #[serde(serialize_with = "super::item::camel_input")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<super::item::InputItem>"))]
    pub input: Vec<UserInput>,
    /// The client's id for this message.
    #[serde(default)]
    pub client_user_message_id: Option<String>,
    /// Texts that the model gets before this message: of the application, or untrusted.
    #[serde(default, alias = "additional_context")]
    pub additional_context: Option<AdditionalContext>,
}

/// The response of `turn/steer`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnSteerResponse {
    /// The turn that runs.
    pub turn_id: String,
}

/// `turn/interrupt`: interrupts a running turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnInterruptParams {
    /// The thread.
    #[serde(alias = "thread_id", alias = "conversationId")]
    pub thread_id: String,
    /// The turn; the running one if omitted.
    #[serde(default, alias = "turn_id")]
    pub turn_id: Option<String>,
    /// Whether the agents of the thread continue. They are stopped with its turn otherwise.
    #[serde(default, alias = "keep_agents")]
    pub keep_agents: bool,
}

/// The thread of a review.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ReviewDelivery {
    /// In the thread itself.
    #[default]
    Inline,
    /// In its own thread.
    Detached,
}

/// `review/start`: starts a review of changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReviewStartParams {
    /// The thread.
    pub thread_id: String,
    pub target: ReviewTarget,
    /// The thread of the review.
    #[serde(default)]
    pub delivery: Option<ReviewDelivery>,
}

/// The response of `review/start`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReviewStartResponse {
    /// The turn of the review.
    pub turn: Turn,
    /// The thread it runs in.
    pub review_thread_id: String,
}
