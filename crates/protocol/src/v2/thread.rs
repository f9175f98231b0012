//! Threads: the parameters and responses of `thread/*`.

use std::borrow::Cow;
use std::path::PathBuf;

use codex_wire::collaboration::CollaborationMode;
use codex_wire::dynamic_tool::DynamicToolSpec;
use codex_wire::policy::{ApprovalsReviewer, AskForApproval, SandboxMode, SandboxPolicy};
use codex_wire::reasoning::{ReasoningEffort, ReasoningSummary};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::item::Nothing;
use super::policy::Sandbox;
use super::section::ThreadSection;
use super::turn::Turn;
use super::turn_list::{InitialTurnsPageParams, ResumedParts};

/// A thread.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Thread {
    /// Its name.
    pub id: String,
    /// Its working directory.
    pub environments: Vec<Environment>,
    /// The same as its name.
    pub session_id: String,
    /// The first message of the user.
    pub preview: String,
    /// Whether it is kept in memory alone.
    pub ephemeral: bool,
    /// The format of its history.
    pub history_mode: Cow<'static, str>,
    /// Its model provider.
    pub model_provider: String,
    /// Its model.
    pub model: Option<String>,
    /// The reasoning effort of its model.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The start time in Unix seconds.
    pub created_at: i64,
    /// The time of the latest change.
    pub updated_at: i64,
    /// The same.
    pub recency_at: i64,
    /// Whether it is loaded, and what it does.
    pub status: ThreadStatus,
    /// Its file; absent if it is not saved.
    pub path: Option<PathBuf>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its source.
    #[serde(flatten)]
    pub origin: ThreadOrigin,
    /// Whether a client may speak to it.
    pub can_accept_direct_input: Option<bool>,
    /// The user's name and section for it.
    #[serde(flatten)]
    pub place: ThreadPlace,
    /// Members that only other releases fill.
    #[serde(flatten)]
    pub unknown_members: UnknownMembers,
    /// Its turns, if they were requested.
    pub turns: Vec<Turn>,
}

/// The source of a thread.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadOrigin {
    /// The thread it was copied from.
    pub forked_from_id: Option<String>,
    /// The thread that started it.
    pub parent_thread_id: Option<String>,
    /// The release that started it.
    pub cli_version: String,
    /// The program that started it.
    pub originator: Option<String>,
    /// The kind of program that started it.
    pub source: Value,
    /// The client's word for its origin.
    #[serde(default)]
    pub thread_source: Option<String>,
    /// The repository it began in.
    pub git_info: Option<GitInfo>,
    /// The name of its agent, if another agent has started it.
    pub agent_nickname: Option<String>,
    /// The role of its agent.
    pub agent_role: Option<String>,
}

/// The user's name and section for a thread.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadPlace {
    pub name: Option<String>,
    /// The section it is in.
    pub section: Option<ThreadSection>,
    /// The start time, in seconds of Unix time.
    pub section_entered_at: Option<i64>,
}

/// Members that clients may expect and that are never known here.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "each is always null")]
pub struct UnknownMembers {
    pub extra: Nothing,
    pub project_id: Nothing,
    pub daybreak_enabled: Nothing,
}

/// The working directory of a thread.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ThreadEnvironment"))]
#[serde(rename_all = "camelCase")]
pub struct Environment {
    /// Its name; always `local` here.
    pub environment_id: Cow<'static, str>,
    /// The folder.
    pub cwd: PathBuf,
    /// The folders it may change.
    pub runtime_workspace_roots: Vec<PathBuf>,
}

/// A repository at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GitInfo {
    /// The commit.
    pub sha: Option<String>,
    /// The branch.
    pub branch: Option<String>,
    /// Its source.
    pub origin_url: Option<String>,
}

/// The activity of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ThreadStatus {
    /// It is not loaded.
    NotLoaded,
    /// It is idle.
    Idle,
    /// Its last turn failed.
    SystemError,
    /// It is active.
    Active { active_flags: Vec<ActiveFlag> },
}

/// The reason why an active thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ThreadActiveFlag"))]
#[serde(rename_all = "camelCase")]
pub enum ActiveFlag {
    /// An approval.
    WaitingOnApproval,
    /// An answer to a question.
    WaitingOnUserInput,
}

/// The options for starting, resuming or forking a thread.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ThreadOptions {
    /// The model.
    pub model: Option<String>,
    /// The provider of the model.
    #[serde(alias = "model_provider")]
    pub model_provider: Option<String>,
    /// Its working directory.
    pub cwd: Option<PathBuf>,
    /// The approval policy.
    #[serde(alias = "approval_policy")]
    pub approval_policy: Option<AskForApproval>,
    /// The reviewer of approval requests.
    #[serde(alias = "approvals_reviewer")]
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    /// The sandbox policy of commands.
    pub sandbox: Option<SandboxMode>,
    /// Overrides of configuration values.
    pub config: Option<Map<String, Value>>,
    /// Replaces the built-in instructions.
    #[serde(alias = "base_instructions")]
    pub base_instructions: Option<String>,
    /// Additional instructions.
    #[serde(alias = "developer_instructions")]
    pub developer_instructions: Option<String>,
    /// Whether it is kept in memory alone.
    pub ephemeral: Option<bool>,
    /// The client's word for its origin, which is stored with a new thread.
    #[serde(alias = "thread_source")]
    pub thread_source: Option<String>,
}

/// `thread/start`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadStartParams {
    #[serde(flatten)]
    pub options: ThreadOptions,
    /// Whether the client wants every item of the conversation with the model.
    #[serde(default)]
    pub experimental_raw_events: bool,
    /// Tools that the client supplies, and runs when it is asked to with `item/tool/call`.
    #[serde(default)]
    pub dynamic_tools: Option<Vec<DynamicToolSpec>>,
}

/// The response of `thread/start`, `thread/resume` and `thread/fork`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadOpened {
    /// The thread.
    pub thread: Thread,
    /// Its model.
    pub model: String,
    /// The provider of the model.
    pub model_provider: String,
    /// Never known here.
    pub service_tier: Nothing,
    /// Never known here.
    pub disabled_plugin_ids: Vec<String>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// The folders it may change.
    pub runtime_workspace_roots: Vec<PathBuf>,
    /// The files its instructions came from.
    pub instruction_sources: Vec<PathBuf>,
    /// The approval policy.
    pub approval_policy: AskForApproval,
    /// The reviewer of approval requests.
    pub approvals_reviewer: ApprovalsReviewer,
    /// The sandbox policy of commands.
    pub sandbox: Sandbox,
    /// Never known here.
    pub active_permission_profile: Nothing,
    /// The reasoning effort.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The policy for starting child agents.
    pub multi_agent_mode: Cow<'static, str>,
    /// Additional members for an existing thread.
    #[serde(flatten)]
    pub resumed: Option<Box<ResumedParts>>,
}

/// `thread/resume`. A history takes precedence over a path, and a path over the id.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadResumeParams {
    /// The thread.
    #[serde(default, alias = "thread_id", alias = "conversationId")]
    pub thread_id: String,
    /// Its file.
    #[serde(default)]
    pub path: Option<PathBuf>,
    /// A conversation to continue.
    #[serde(default)]
    pub history: Option<Vec<Value>>,
    /// Whether the client does not want the turns.
    #[serde(default)]
    pub exclude_turns: bool,
    /// The turns to return with the response.
    #[serde(default)]
    pub initial_turns_page: Option<InitialTurnsPageParams>,
    #[serde(flatten)]
    pub options: ThreadOptions,
}

/// `thread/fork`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadForkParams {
    /// The thread to copy.
    #[serde(default)]
    pub thread_id: String,
    /// Its file.
    #[serde(default)]
    pub path: Option<PathBuf>,
    /// The last turn to copy; all if absent.
    #[serde(default)]
    pub last_turn_id: Option<String>,
    /// Whether the client does not want the turns.
    #[serde(default)]
    pub exclude_turns: bool,
    #[serde(flatten)]
    pub options: ThreadOptions,
}

/// The parameters of methods that only name a thread.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadParams {
    /// The thread.
    #[serde(alias = "thread_id", alias = "conversationId")]
    pub thread_id: String,
}

/// `thread/read`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadParams {
    /// The thread.
    pub thread_id: String,
    /// Whether its turns are wanted.
    #[serde(default)]
    pub include_turns: bool,
}

/// A response that contains only a thread.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadResponse {
    /// The thread.
    pub thread: Thread,
}

/// A page: the cursor, and the maximum number of entries.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PageParams {
    /// The cursor of the page to list.
    pub cursor: Option<String>,
    /// The maximum number of entries.
    pub limit: Option<u32>,
}

/// The response of `thread/loaded/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoadedListResponse {
    /// The names of the threads.
    pub data: Vec<String>,
    /// The cursor of the page to list.
    pub next_cursor: Option<String>,
}

/// `thread/name/set`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadNameSetParams {
    /// The thread.
    pub thread_id: String,
    /// The new name.
    pub name: String,
}

/// `thread/rollback`: removes the last turns.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadRollbackParams {
    /// The thread.
    pub thread_id: String,
    pub num_turns: u32,
}

/// `thread/revert`: removes a turn and all later ones.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadRevertParams {
    /// The thread.
    pub thread_id: String,
    /// The first turn to forget.
    pub before_turn_id: String,
}

/// `thread/settings/update`: changes the settings of later turns.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadSettingsUpdateParams {
    /// The thread.
    pub thread_id: String,
    /// The approval policy.
    #[serde(default)]
    pub approval_policy: Option<AskForApproval>,
    /// The reviewer of approval requests.
    #[serde(default)]
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    /// Its working directory.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// The reasoning effort.
    #[serde(default)]
    pub effort: Option<ReasoningEffort>,
    /// The model.
    #[serde(default)]
    pub model: Option<String>,
    /// The sandbox policy of commands.
    #[serde(default, serialize_with = "super::command_exec::camel_policy")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::policy::Sandbox>"))]
    pub sandbox_policy: Option<SandboxPolicy>,
    /// The detail of reasoning summaries.
    #[serde(default)]
    pub summary: Option<ReasoningSummary>,
    /// The collaboration mode, which takes precedence over `model` and `effort`.
    #[serde(default)]
    pub collaboration_mode: Option<CollaborationMode>,
}

/// `thread/shellCommand`: runs a shell command of the user.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadShellCommandParams {
    /// The thread.
    pub thread_id: String,
    /// The command, for a shell.
    pub command: String,
    /// The timeout.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// The response of `thread/unsubscribe`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ThreadUnsubscribeStatus"))]
#[serde(rename_all = "camelCase")]
pub enum UnsubscribeStatus {
    /// The thread is not loaded.
    NotLoaded,
    /// The connection did not listen to it.
    NotSubscribed,
    /// The connection listens no more.
    Unsubscribed,
}

/// The response of `thread/unsubscribe`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadUnsubscribeResponse {
    /// The result.
    pub status: UnsubscribeStatus,
}
