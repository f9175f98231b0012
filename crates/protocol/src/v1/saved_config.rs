//! `getUserSavedConfig` and `setDefaultModel`: the contents of the user's file, without any higher layer.

use std::{collections::BTreeMap, path::PathBuf};

use codex_wire::{
    policy::{AskForApproval, SandboxMode},
    reasoning::{ReasoningEffort, ReasoningSummary, Verbosity},
};
use serde::{Deserialize, Serialize};

use crate::v2::config::ForcedLoginMethod;

/// The answer of `getUserSavedConfig`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GetUserSavedConfigResponse {
    pub config: UserSavedConfig,
}

/// The content of the user's configuration file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct UserSavedConfig {
    /// The approval policy.
    pub approval_policy: Option<AskForApproval>,
    /// The sandbox policy.
    pub sandbox_mode: Option<SandboxMode>,
    /// The limits of `workspace-write`.
    pub sandbox_settings: Option<SandboxSettings>,
    /// The only workspace that may be used.
    pub forced_chatgpt_workspace_id: Option<String>,
    /// The only way to log in.
    pub forced_login_method: Option<ForcedLoginMethod>,
    /// The model.
    pub model: Option<String>,
    /// The reasoning effort.
    pub model_reasoning_effort: Option<ReasoningEffort>,
    /// The detail of reasoning summaries.
    pub model_reasoning_summary: Option<ReasoningSummary>,
    /// The verbosity of answers.
    pub model_verbosity: Option<Verbosity>,
    /// `[tools]`.
    pub tools: Option<Tools>,
    /// The selected profile.
    pub profile: Option<String>,
    /// All profiles.
    pub profiles: BTreeMap<String, Profile>,
}

/// The limits of `workspace-write`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct SandboxSettings {
    /// Writable folders in addition to the working directory and the temporary folders.
    pub writable_roots: Vec<PathBuf>,
    /// Whether commands may use the network.
    pub network_access: Option<bool>,
    /// Excludes `$TMPDIR` from the writable folders.
    pub exclude_tmpdir_env_var: Option<bool>,
    /// Excludes `/tmp` from the writable folders.
    pub exclude_slash_tmp: Option<bool>,
}

/// `[tools]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct Tools {
    /// Whether the web may be searched.
    pub web_search: Option<bool>,
    /// Whether the model may look at images.
    pub view_image: Option<bool>,
}

/// One of `[profiles]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct Profile {
    /// The model.
    pub model: Option<String>,
    /// The provider.
    pub model_provider: Option<String>,
    /// The approval policy.
    pub approval_policy: Option<AskForApproval>,
    /// The reasoning effort.
    pub model_reasoning_effort: Option<ReasoningEffort>,
    /// The detail of reasoning summaries.
    pub model_reasoning_summary: Option<ReasoningSummary>,
    /// The verbosity of answers.
    pub model_verbosity: Option<Verbosity>,
    /// The address of `ChatGPT`.
    pub chatgpt_base_url: Option<String>,
}

/// The parameters of `setDefaultModel`; absent values are removed from the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SetDefaultModelParams {
    /// The model.
    #[serde(default)]
    pub model: Option<String>,
    /// The reasoning effort.
    #[serde(default, alias = "reasoning_effort")]
    pub reasoning_effort: Option<ReasoningEffort>,
}
