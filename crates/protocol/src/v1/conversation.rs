//! Conversations: how clients of 2025 open, list and resume threads.

use std::path::PathBuf;

use codex_wire::event::EventMsg;
use codex_wire::ids::ThreadId;
use codex_wire::policy::{AskForApproval, SandboxMode};
use codex_wire::reasoning::ReasoningEffort;
use codex_wire::rollout::{GitInfo, SessionSource};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::v2::thread::ThreadOptions;

/// The parameters of `newConversation`, and the settings that can be changed when a conversation is resumed or forked.
///
/// `includePlanTool` and `includeApplyPatchTool` of the first releases are ignored: both tools are always offered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct NewConversationParams {
    /// The model.
    pub model: Option<String>,
    /// The provider of the model.
    #[serde(alias = "model_provider")]
    pub model_provider: Option<String>,
    /// The profile of `config.toml`.
    pub profile: Option<String>,
    /// Its working directory.
    pub cwd: Option<PathBuf>,
    /// The approval policy.
    #[serde(alias = "approval_policy")]
    pub approval_policy: Option<AskForApproval>,
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
    /// The instructions for compaction.
    #[serde(alias = "compact_prompt")]
    pub compact_prompt: Option<String>,
}

impl From<NewConversationParams> for ThreadOptions {
    /// Options without a member become configuration overrides, unless the overrides set them already.
    fn from(params: NewConversationParams) -> Self {
        let mut config = params.config.unwrap_or_default();
        let mut wish = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                config.entry(key).or_insert(value);
            }
        };
        wish("profile", params.profile.map(Value::String));
        wish("compact_prompt", params.compact_prompt.map(Value::String));
        Self {
            model: params.model,
            model_provider: params.model_provider,
            cwd: params.cwd,
            approval_policy: params.approval_policy,
            approvals_reviewer: None,
            sandbox: params.sandbox,
            config: (!config.is_empty()).then_some(config),
            base_instructions: params.base_instructions,
            developer_instructions: params.developer_instructions,
            ephemeral: None,
            thread_source: None,
        }
    }
}

/// The answer of `newConversation`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewConversationResponse {
    /// The conversation.
    pub conversation_id: ThreadId,
    /// Its model.
    pub model: String,
    /// The reasoning effort.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Its file.
    pub rollout_path: PathBuf,
}

/// The parameters of `resumeConversation`. A history takes precedence over a path, and a path over an id.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ResumeConversationParams {
    /// The file of the conversation.
    pub path: Option<PathBuf>,
    /// The conversation.
    #[serde(alias = "conversation_id")]
    pub conversation_id: Option<ThreadId>,
    /// The items of a conversation that the client supplies.
    pub history: Option<Vec<Value>>,
    /// Settings to change from here on.
    pub overrides: Option<NewConversationParams>,
}

/// The parameters of `forkConversation`. A path takes precedence over an id.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ForkConversationParams {
    /// The file of the conversation.
    pub path: Option<PathBuf>,
    /// The conversation.
    #[serde(alias = "conversation_id")]
    pub conversation_id: Option<ThreadId>,
    /// Settings to change in the copy.
    pub overrides: Option<NewConversationParams>,
}

/// The answer of `resumeConversation` and `forkConversation`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConversationResumed {
    /// The conversation.
    pub conversation_id: ThreadId,
    /// Its model.
    pub model: String,
    /// The earlier messages.
    pub initial_messages: Option<Vec<EventMsg>>,
    /// Its file.
    pub rollout_path: PathBuf,
}

/// `sessionConfigured`: an existing conversation is ready.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionConfiguredNotification {
    /// The conversation.
    pub session_id: ThreadId,
    /// Its model.
    pub model: String,
    /// The reasoning effort.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The id of the prompt history file; 0 if there is none yet.
    pub history_log_id: u64,
    /// The number of lines in that file.
    pub history_entry_count: usize,
    /// The earlier messages.
    pub initial_messages: Option<Vec<EventMsg>>,
    /// Its file.
    pub rollout_path: PathBuf,
}

/// The parameters of `listConversations`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ListConversationsParams {
    /// The maximum number of entries of a page.
    #[serde(alias = "page_size")]
    pub page_size: Option<u64>,
    /// The cursor of the previous page.
    pub cursor: Option<String>,
    /// Only those of these providers; all if the list is empty, those of the configured provider if it is absent.
    #[serde(alias = "model_providers")]
    pub model_providers: Option<Vec<String>>,
}

/// The answer of `listConversations`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListConversationsResponse {
    /// The conversations, the newest first.
    pub items: Vec<ConversationSummary>,
    /// The cursor of the next page; absent on the last.
    pub next_cursor: Option<String>,
}

/// The parameters of `getConversationSummary`: an id or a path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct GetConversationSummaryParams {
    /// The conversation.
    #[serde(alias = "conversation_id")]
    pub conversation_id: Option<ThreadId>,
    /// Its file.
    #[serde(alias = "rollout_path")]
    pub rollout_path: Option<PathBuf>,
}

/// The answer of `getConversationSummary`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GetConversationSummaryResponse {
    pub summary: ConversationSummary,
}

/// A summary of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConversationSummary {
    /// The conversation.
    pub conversation_id: ThreadId,
    /// Its file.
    pub path: PathBuf,
    /// The first message of the user.
    pub preview: String,
    /// The start time as RFC 3339.
    pub timestamp: Option<String>,
    /// The provider of its model.
    pub model_provider: String,
    /// Its working directory.
    pub cwd: PathBuf,
    /// The release that began it.
    pub cli_version: String,
    /// The kind of program that began it.
    pub source: SessionSource,
    /// The repository it began in.
    pub git_info: Option<ConversationGitInfo>,
}

/// The state of a repository. Its members are in snake case in every release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConversationGitInfo {
    /// The commit.
    pub sha: Option<String>,
    /// The branch.
    pub branch: Option<String>,
    /// Its source.
    pub origin_url: Option<String>,
}

impl From<GitInfo> for ConversationGitInfo {
    fn from(git: GitInfo) -> Self {
        Self { sha: git.commit_hash, branch: git.branch, origin_url: git.repository_url }
    }
}

/// The parameters of `archiveConversation`, whose id and path must belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ArchiveConversationParams {
    /// The conversation.
    #[serde(alias = "conversation_id")]
    pub conversation_id: ThreadId,
    /// Its file.
    #[serde(alias = "rollout_path")]
    pub rollout_path: PathBuf,
}
