//! Input to a conversation, and its listeners.

use std::path::PathBuf;

use codex_wire::event::TurnAbortReason;
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use codex_wire::policy::{AskForApproval, SandboxPolicy};
use codex_wire::reasoning::{ReasoningEffort, ReasoningSummary};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The parameters of `sendUserMessage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SendUserMessageParams {
    /// The conversation.
    #[serde(alias = "conversation_id")]
    pub conversation_id: ThreadId,
    /// The user's input.
    pub items: Vec<UserInput>,
}

/// The parameters of `sendUserTurn`: the input, and the settings of this turn and later ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SendUserTurnParams {
    /// The conversation.
    #[serde(alias = "conversation_id")]
    pub conversation_id: ThreadId,
    /// The user's input.
    pub items: Vec<UserInput>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The approval policy.
    #[serde(alias = "approval_policy")]
    pub approval_policy: AskForApproval,
    /// The sandbox policy of commands.
    #[serde(alias = "sandbox_policy")]
    pub sandbox_policy: SandboxPolicy,
    /// The model.
    pub model: String,
    /// The reasoning effort; the provider's default if missing.
    #[serde(default)]
    pub effort: Option<ReasoningEffort>,
    /// The detail of reasoning summaries; unchanged if missing.
    #[serde(default)]
    pub summary: Option<ReasoningSummary>,
    /// The schema that the last message must follow.
    #[serde(default, alias = "output_schema")]
    pub output_schema: Option<Value>,
}

/// The parameters of `interruptConversation`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InterruptConversationParams {
    /// The conversation.
    #[serde(alias = "conversation_id")]
    pub conversation_id: ThreadId,
}

/// The answer of `interruptConversation`, when the turn has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InterruptConversationResponse {
    /// The reason for the interruption.
    pub abort_reason: TurnAbortReason,
}

/// The parameters of `addConversationListener`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AddConversationListenerParams {
    /// The conversation.
    #[serde(alias = "conversation_id")]
    pub conversation_id: ThreadId,
    /// Whether the listener also receives every item of the conversation with the model.
    #[serde(default, alias = "experimental_raw_events")]
    pub experimental_raw_events: bool,
}

/// The answer of `addConversationListener`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AddConversationListenerResponse {
    /// The name by which it can be removed.
    pub subscription_id: String,
}

/// The parameters of `removeConversationListener`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RemoveConversationListenerParams {
    /// The name that adding it has given.
    #[serde(alias = "subscription_id")]
    pub subscription_id: String,
}
