//! The submission queue: requests of a client to the engine.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::decision::{ElicitationDecision, ReviewDecision};
use crate::forms::nullable;
use crate::ids::RequestId;
use crate::input::UserInput;
use crate::policy::{AskForApproval, SandboxPolicy};
use crate::reasoning::{ReasoningEffort, ReasoningSummary};
use crate::review::ReviewRequest;

/// One line of the submission queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct Submission {
    /// Chosen by the client; events that follow from it carry it too.
    pub id: String,
    pub op: Op,
}

tagged! {
    /// A request to the engine.
    pub enum Op by "type" {
        /// Stop the running turn.
        "interrupt" => Interrupt,
        /// Send input with the current settings.
        "user_input" => UserInput(UserInputOp),
        /// Send input, with all settings of the turn.
        "user_turn" => UserTurn(UserTurn),
        /// Change the settings of later turns.
        "override_turn_context" => OverrideTurnContext(TurnContextOverride),
        /// Change settings and announce the session, as the earliest clients did first.
        "configure_session" => ConfigureSession(TurnContextOverride),
        /// Answer a request to run a command.
        "exec_approval" => ExecApproval(ApprovalAnswer),
        /// Answer a request to change files.
        "patch_approval" => PatchApproval(ApprovalAnswer),
        /// Answer a question of an MCP server.
        "resolve_elicitation" => ResolveElicitation(ResolveElicitation),
        /// Append an entry to the prompt history.
        "add_to_history" => AddToHistory(AddToHistory),
        /// Read an entry of the prompt history.
        "get_history_entry_request" => GetHistoryEntryRequest(GetHistoryEntryRequest),
        /// Return the path of the rollout file.
        "get_path" => GetPath,
        /// List the tools of the MCP servers.
        "list_mcp_tools" => ListMcpTools,
        /// List the prompts of the user.
        "list_custom_prompts" => ListCustomPrompts,
        /// List the skills of some folders.
        "list_skills" => ListSkills(ListSkills),
        /// Compact the conversation to make room.
        "compact" => Compact,
        /// Restore the work tree to its state before the last turn.
        "undo" => Undo,
        /// Review changes in a separate conversation.
        "review" => Review(ReviewOp),
        /// Run a command that the user typed.
        "run_user_shell_command" => RunUserShellCommand(RunUserShellCommand),
        /// List the models to choose from.
        "list_models" => ListModels,
        /// End the session.
        "shutdown" => Shutdown,
    }
}

/// The payload of [`Op::UserInput`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct UserInputOp {
    /// The user's input, in order.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few()"))]
    pub items: Vec<UserInput>,
    /// The answer to return to first, in sessions of the earliest clients.
    #[serde(default, alias = "response_id", skip_serializing_if = "Option::is_none")]
    pub last_response_id: Option<String>,
}

/// The payload of [`Op::UserTurn`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct UserTurn {
    /// The user's input, in order.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few()"))]
    pub items: Vec<UserInput>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The approval policy.
    pub approval_policy: AskForApproval,
    /// The sandbox policy.
    pub sandbox_policy: SandboxPolicy,
    /// The model to use.
    pub model: String,
    /// The reasoning effort; missing for models that do not reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<ReasoningEffort>,
    /// The detail of reasoning summaries.
    pub summary: ReasoningSummary,
    /// The JSON Schema that the last message must follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_object()"))]
    pub final_output_json_schema: Option<Value>,
}

/// Settings to change; absent members are unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct TurnContextOverride {
    /// The working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The approval policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_policy: Option<AskForApproval>,
    /// The sandbox policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_policy: Option<SandboxPolicy>,
    /// The model to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The reasoning effort: unchanged if missing, cleared by `null`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Option::is_none")]
    pub effort: Option<Option<ReasoningEffort>>,
    /// The detail of reasoning summaries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<ReasoningSummary>,
}

/// The payload of [`Op::ExecApproval`] and [`Op::PatchApproval`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ApprovalAnswer {
    /// The call of the question, or the submission of its turn.
    pub id: String,
    /// The turn of the question, from clients that know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// The answer.
    pub decision: ReviewDecision,
}

/// The payload of [`Op::ResolveElicitation`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ResolveElicitation {
    /// The server of the question.
    pub server_name: String,
    /// Its id of the question.
    pub request_id: RequestId,
    /// The answer.
    pub decision: ElicitationDecision,
}

/// The payload of [`Op::AddToHistory`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct AddToHistory {
    /// The entry.
    pub text: String,
}

/// The payload of [`Op::GetHistoryEntryRequest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct GetHistoryEntryRequest {
    /// The index of the entry, oldest first.
    pub offset: usize,
    /// The requested file; the response is empty if it was replaced since.
    pub log_id: u64,
}

/// The payload of [`Op::ListSkills`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ListSkills {
    /// The folders; if empty, the working directory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few()"))]
    pub cwds: Vec<PathBuf>,
    /// Whether to read them again from disk.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force_reload: bool,
}

/// The payload of [`Op::Review`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ReviewOp {
    pub review_request: ReviewRequest,
}

/// The payload of [`Op::RunUserShellCommand`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct RunUserShellCommand {
    /// The line, as typed.
    pub command: String,
}
