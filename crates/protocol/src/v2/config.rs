//! `config/read`, `config/value/write`, `config/batchWrite`, `configRequirements/read` and `configWarning`.
//!
//! Values of the configuration may be keys, so debug text shows none that have no type of their own.

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
    /// The folder whose configuration counts too; 0.166 takes it.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
}

/// The answer of `config/read`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigReadResponse {
    /// What is in force.
    pub config: Config,
    /// Where each value came from, by dotted key.
    #[serde(default)]
    pub origins: BTreeMap<String, ConfigLayerMetadata>,
    /// The layers, the one that wins first, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<Vec<ConfigLayer>>,
}

/// The configuration in force. Its members are spelled as in `config.toml`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Config {
    /// The model.
    pub model: Option<String>,
    /// The model for reviews.
    pub review_model: Option<String>,
    /// Tokens the model can take in.
    pub model_context_window: Option<i64>,
    /// Tokens at which history is compacted.
    pub model_auto_compact_token_limit: Option<i64>,
    /// The provider.
    pub model_provider: Option<String>,
    /// When to ask.
    pub approval_policy: Option<AskForApproval>,
    /// Where commands may write.
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
    /// What the model is told when it sums up.
    pub compact_prompt: Option<String>,
    /// How hard the model thinks.
    pub model_reasoning_effort: Option<ReasoningEffort>,
    /// How much of its reasoning the model sums up.
    pub model_reasoning_summary: Option<ReasoningSummary>,
    /// How long answers are.
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
    /// Writable folders besides the working directory and the temporary folders.
    pub writable_roots: Vec<PathBuf>,
    /// Whether commands may use the network.
    pub network_access: bool,
    /// Takes `$TMPDIR` out of the writable folders.
    pub exclude_tmpdir_env_var: bool,
    /// Takes `/tmp` out of the writable folders.
    pub exclude_slash_tmp: bool,
}

impl From<WorkspaceWrite> for SandboxWorkspaceWrite {
    fn from(limits: WorkspaceWrite) -> Self {
        let WorkspaceWrite { writable_roots, network_access, exclude_tmpdir_env_var, exclude_slash_tmp } = limits;
        Self { writable_roots, network_access, exclude_tmpdir_env_var, exclude_slash_tmp }
    }
}

spelled! {
    /// The only way to log in that the configuration allows.
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
    /// When to ask.
    pub approval_policy: Option<AskForApproval>,
    /// How hard the model thinks.
    pub model_reasoning_effort: Option<ReasoningEffort>,
    /// How much of its reasoning the model sums up.
    pub model_reasoning_summary: Option<ReasoningSummary>,
    /// How long answers are.
    pub model_verbosity: Option<Verbosity>,
    /// The address of `ChatGPT`.
    pub chatgpt_base_url: Option<String>,
    /// Every other key.
    #[serde(flatten)]
    pub additional: Hidden<Map<String, Value>>,
}

tagged! {
    /// Where a layer of configuration came from.
    pub enum ConfigLayerSource by "type" {
        /// Shipped with the program.
        "packagedDefaults" => PackagedDefaults(LayerFile),
        /// Set by a device's administration.
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
    /// Which one.
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

/// Which layer a value came from, and which version of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigLayerMetadata {
    /// The layer.
    pub name: ConfigLayerSource,
    /// A hash of what the layer says.
    pub version: String,
}

/// One layer as it was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigLayer {
    /// Where it came from.
    pub name: ConfigLayerSource,
    /// A hash of what it says.
    pub version: String,
    /// What it says.
    pub config: Hidden<Value>,
    /// Why it does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<String>,
}

spelled! {
    /// What a write does with a value that is there already.
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
    /// The new value; `null` takes the key out.
    #[serde(default)]
    pub value: Hidden<Value>,
    /// What to do with a value that is there already.
    #[serde(default, deserialize_with = "or_default")]
    pub merge_strategy: MergeStrategy,
    /// The file; the user's own unless it is named.
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
    /// The new value; `null` takes the key out.
    #[serde(default)]
    pub value: Hidden<Value>,
    /// What to do with a value that is there already.
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
    /// The file; the user's own unless it is named.
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
    /// How a write ended.
    pub enum WriteStatus {
        /// The value is in force.
        "ok" => Ok,
        /// The value is written, and a higher layer says otherwise.
        "okOverridden" => OkOverridden,
    }
}

/// The answer of `config/value/write` and `config/batchWrite`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigWriteResponse {
    /// How it ended.
    pub status: WriteStatus,
    /// The version of the file now.
    pub version: String,
    /// The file.
    pub file_path: PathBuf,
    /// What is in force in place of the value written.
    #[serde(default)]
    pub overridden_metadata: Option<OverriddenMetadata>,
}

/// What is in force in place of a value that was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OverriddenMetadata {
    /// The same in words.
    pub message: String,
    /// The layer that wins.
    pub overriding_layer: ConfigLayerMetadata,
    /// What it says.
    #[serde(default)]
    pub effective_value: Hidden<Value>,
}

spelled! {
    /// Why nothing was written.
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
        /// There is no user's own file.
        "userLayerNotFound" => UserLayerNotFound,
    }
}

/// The `data` of an error that a write ended with. Its member is spelled as 0.77 spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigWriteErrorData {
    /// Why nothing was written.
    pub config_write_error_code: ConfigWriteErrorCode,
}

/// The answer of `configRequirements/read`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigRequirementsReadResponse {
    /// What an administrator demands; nothing where nobody does.
    #[serde(default)]
    pub requirements: Option<Value>,
    /// Whether speed can be chosen apart from the model.
    #[serde(default)]
    pub supports_independent_speed_modes: Option<bool>,
}
