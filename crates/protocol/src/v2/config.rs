//! `config/read`, `config/value/write`, `config/batchWrite`, `configRequirements/read` and `configWarning`.
//!
//! Values of the configuration may be keys, so debug output shows none without a type of its own.

use std::{collections::BTreeMap, path::PathBuf};

use codex_wire::{
    policy::{AskForApproval, SandboxMode, WorkspaceWrite},
    reasoning::{ReasoningEffort, ReasoningSummary, Verbosity},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{hidden::Hidden, lenient::or_default};

/// The parameters of `config/read`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigReadParams {
    /// Whether the layers are wanted one by one as well.
    #[serde(default, deserialize_with = "or_default")]
    pub include_layers: bool,
    /// The folder whose project configuration is included; added in 0.166.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
}

/// The answer of `config/read`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigReadResponse {
    /// The effective configuration.
    pub config: Config,
    /// The origin of each value, by dotted key.
    #[serde(default)]
    pub origins: BTreeMap<String, ConfigLayerMetadata>,
    /// The layers, the winning one first, if they were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<Vec<ConfigLayer>>,
}

/// The effective configuration. Its members are spelled as in `config.toml`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Config {
    /// The model.
    pub model: Option<String>,
    /// The model for reviews.
    pub review_model: Option<String>,
    /// The size of the model's context window in tokens.
    pub model_context_window: Option<i64>,
    /// The number of tokens at which the conversation is compacted.
    pub model_auto_compact_token_limit: Option<i64>,
    /// The provider.
    pub model_provider: Option<String>,
    /// The approval policy.
    pub approval_policy: Option<AskForApproval>,
    /// The sandbox policy.
    pub sandbox_mode: Option<SandboxMode>,
    /// The limits of `workspace-write`.
    pub sandbox_workspace_write: Option<SandboxWorkspaceWrite>,
    /// The only workspace, or workspaces, that may be used: a string or a list.
    pub forced_chatgpt_workspace_id: Option<Value>,
    /// The only way to log in.
    pub forced_login_method: Option<ForcedLoginMethod>,
    /// Tools of the provider.
    pub tools: Option<ToolsV2>,
    /// The selected profile.
    pub profile: Option<String>,
    /// All profiles.
    #[serde(deserialize_with = "or_default")]
    pub profiles: BTreeMap<String, ProfileV2>,
    /// Instructions of the user.
    pub instructions: Option<String>,
    /// Instructions of the developer.
    pub developer_instructions: Option<String>,
    /// The instructions for compaction.
    pub compact_prompt: Option<String>,
    /// The reasoning effort.
    pub model_reasoning_effort: Option<ReasoningEffort>,
    /// The detail of reasoning summaries.
    pub model_reasoning_summary: Option<ReasoningSummary>,
    /// The verbosity of answers.
    pub model_verbosity: Option<Verbosity>,
    /// Every other key.
    #[serde(flatten)]
    pub additional: Hidden<Map<String, Value>>,
}

/// The limits of `workspace-write`, all of them written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SandboxWorkspaceWrite {
    /// Writable folders in addition to the working directory and the temporary folders.
    pub writable_roots: Vec<PathBuf>,
    /// Whether commands may use the network.
    pub network_access: bool,
    /// Excludes `$TMPDIR` from the writable folders.
    pub exclude_tmpdir_env_var: bool,
    /// Excludes `/tmp` from the writable folders.
    pub exclude_slash_tmp: bool,
}

impl From<WorkspaceWrite> for SandboxWorkspaceWrite {
    fn from(limits: WorkspaceWrite) -> Self {
        let WorkspaceWrite { writable_roots, network_access, exclude_tmpdir_env_var, exclude_slash_tmp } = limits;
        Self { writable_roots, network_access, exclude_tmpdir_env_var, exclude_slash_tmp }
    }
}

spelled! {
    /// The only allowed way to log in.
    pub open enum ForcedLoginMethod {
        "chatgpt" => Chatgpt,
        "api" => Api,
    }
}

/// `[tools]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ToolsV2 {
    /// Whether the web may be searched: a boolean, or a table with details.
    pub web_search: Option<Value>,
    /// Whether the model may look at images.
    pub view_image: Option<bool>,
}

/// One of `[profiles]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProfileV2 {
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
    /// Every other key.
    #[serde(flatten)]
    pub additional: Hidden<Map<String, Value>>,
}

tagged! {
    /// The source of a configuration layer.
    pub enum ConfigLayerSource by "type" {
        /// Shipped with the program.
        "packagedDefaults" => PackagedDefaults(LayerFile),
        /// Set by the administration of the device.
        "mdm" => Mdm(LayerPreference),
        /// Set for every user of the machine.
        "system" => System(LayerFile),
        /// Set by an organisation.
        "enterpriseManaged" => EnterpriseManaged(LayerOfEnterprise),
        /// The user's own `config.toml`.
        "user" => User(LayerOfUser),
        /// The folder of a project.
        "project" => Project(LayerOfProject),
        /// The command line or the request.
        "sessionFlags" => SessionFlags,
        /// `managed_config.toml`.
        "legacyManagedConfigTomlFromFile" => LegacyManagedConfigTomlFromFile(LayerFile),
        /// The same from a device's administration.
        "legacyManagedConfigTomlFromMdm" => LegacyManagedConfigTomlFromMdm,
    }
}

/// A layer in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct LayerFile {
    /// The file.
    pub file: PathBuf,
}

/// A layer in a device's preferences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct LayerPreference {
    /// The domain of the preference.
    pub domain: String,
    /// Its key.
    pub key: String,
}

/// A layer of an organisation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct LayerOfEnterprise {
    pub id: String,
    /// Its name for people.
    pub name: String,
}

/// A layer in the user's own file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct LayerOfUser {
    /// The file.
    pub file: PathBuf,
    /// The profile in it that this layer is.
    #[serde(default)]
    pub profile: Option<String>,
}

/// A layer in a project's folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct LayerOfProject {
    /// The project's `.codex`.
    pub dot_codex_folder: PathBuf,
}

/// The layer of a value, and its version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigLayerMetadata {
    /// The layer.
    pub name: ConfigLayerSource,
    /// A hash of the layer's contents.
    pub version: String,
}

/// One layer as written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigLayer {
    /// Its source.
    pub name: ConfigLayerSource,
    /// A hash of its contents.
    pub version: String,
    pub config: Hidden<Value>,
    /// The reason why it is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<String>,
}

spelled! {
    /// The way to combine a new value with an existing one.
    #[derive(Default)]
    pub enum MergeStrategy {
        /// The new value takes its place.
        #[default]
        "replace" => Replace,
        /// Tables are merged key by key, other values replaced.
        "upsert" => Upsert,
    }
}

/// The parameters of `config/value/write`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigValueWriteParams {
    /// The dotted key.
    pub key_path: String,
    /// The new value; `null` removes the key.
    #[serde(default)]
    pub value: Hidden<Value>,
    /// The way to combine it with an existing value.
    #[serde(default, deserialize_with = "or_default")]
    pub merge_strategy: MergeStrategy,
    /// The file; the user's own by default.
    #[serde(default)]
    pub file_path: Option<PathBuf>,
    /// The version that the client has seen.
    #[serde(default)]
    pub expected_version: Option<String>,
}

/// One of several edits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigEdit {
    /// The dotted key.
    pub key_path: String,
    /// The new value; `null` removes the key.
    #[serde(default)]
    pub value: Hidden<Value>,
    /// The way to combine it with an existing value.
    #[serde(default, deserialize_with = "or_default")]
    pub merge_strategy: MergeStrategy,
}

/// The parameters of `config/batchWrite`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigBatchWriteParams {
    /// The edits, in order; all of them are made or none.
    pub edits: Vec<ConfigEdit>,
    /// The file; the user's own by default.
    #[serde(default)]
    pub file_path: Option<PathBuf>,
    /// The version that the client has seen.
    #[serde(default)]
    pub expected_version: Option<String>,
    /// Whether loaded threads take the change up at once.
    #[serde(default, deserialize_with = "or_default")]
    pub reload_user_config: bool,
}

spelled! {
    /// The result of a write.
    pub enum WriteStatus {
        /// The value is in force.
        "ok" => Ok,
        /// The value is written, but a higher layer overrides it.
        "okOverridden" => OkOverridden,
    }
}

/// The answer of `config/value/write` and `config/batchWrite`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigWriteResponse {
    /// Its result.
    pub status: WriteStatus,
    /// The version of the file now.
    pub version: String,
    /// The file.
    pub file_path: PathBuf,
    /// The value that takes precedence over the written one, if any.
    #[serde(default)]
    pub overridden_metadata: Option<OverriddenMetadata>,
}

/// A value that takes precedence over a written one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OverriddenMetadata {
    /// A description of it.
    pub message: String,
    /// The layer that wins.
    pub overriding_layer: ConfigLayerMetadata,
    #[serde(default)]
    pub effective_value: Hidden<Value>,
}

spelled! {
    /// The reason why nothing was written.
    pub enum ConfigWriteErrorCode {
        /// The file is not the user's own.
        "configLayerReadonly" => ConfigLayerReadonly,
        /// The file has changed since the client read it.
        "configVersionConflict" => ConfigVersionConflict,
        /// The result would not be a configuration.
        "configValidationError" => ConfigValidationError,
        /// The key leads nowhere.
        "configPathNotFound" => ConfigPathNotFound,
        /// No release knows the key.
        "configSchemaUnknownKey" => ConfigSchemaUnknownKey,
        /// The user has no configuration file.
        "userLayerNotFound" => UserLayerNotFound,
    }
}

/// The `data` of a write error. Its member is spelled as in 0.77.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigWriteErrorData {
    /// The reason why nothing was written.
    pub config_write_error_code: ConfigWriteErrorCode,
}

/// The answer of `configRequirements/read`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigRequirementsReadResponse {
    /// The administrator's requirements, if any.
    #[serde(default)]
    pub requirements: Option<Value>,
    /// Whether speed can be chosen apart from the model.
    #[serde(default)]
    pub supports_independent_speed_modes: Option<bool>,
}
