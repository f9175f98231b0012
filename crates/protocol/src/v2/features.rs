//! `experimentalFeature/*` and `collaborationMode/list`: optional features and modes.

use std::collections::BTreeMap;

use codex_wire::collaboration::ModeKind;
use codex_wire::reasoning::ReasoningEffort;
use serde::{Deserialize, Serialize};

/// The parameters of `experimentalFeature/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExperimentalFeatureListParams {
    /// The cursor of the previous page.
    #[serde(default)]
    pub cursor: Option<String>,
    /// The maximum number of entries.
    #[serde(default)]
    pub limit: Option<u32>,
    /// The thread whose switches are meant.
    #[serde(default)]
    pub thread_id: Option<String>,
}

/// The answer of `experimentalFeature/list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExperimentalFeatureListResponse {
    /// The features.
    pub data: Vec<ExperimentalFeature>,
    /// The cursor of the next page, if there is one.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// A feature that can be enabled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExperimentalFeature {
    /// Its key in `[features]`.
    pub name: String,
    /// Its status.
    pub stage: ExperimentalFeatureStage,
    /// Its name for people.
    #[serde(default)]
    pub display_name: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
    /// A text to show to users once.
    #[serde(default)]
    pub announcement: Option<String>,
    /// Whether it is on.
    pub enabled: bool,
    /// Whether it is enabled by default.
    pub default_enabled: bool,
}

spelled! {
    /// The stage of a feature.
    pub open enum ExperimentalFeatureStage {
        "beta" => Beta,
        "underDevelopment" => UnderDevelopment,
        "stable" => Stable,
        "deprecated" => Deprecated,
        "removed" => Removed,
    }
}

/// The parameters and the answer of `experimentalFeature/enablement/set`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExperimentalFeatureEnablement {
    /// Features by name.
    pub enablement: BTreeMap<String, bool>,
}

/// The answer of `collaborationMode/list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CollaborationModeListResponse {
    /// The modes.
    pub data: Vec<CollaborationModeMask>,
}

/// A collaboration mode, and its settings. Its members are spelled in snake case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CollaborationModeMask {
    /// Its name for people.
    pub name: String,
    /// Its name for requests.
    #[serde(default)]
    pub mode: Option<ModeKind>,
    /// Its model.
    #[serde(default)]
    pub model: Option<String>,
    /// Its reasoning effort.
    #[serde(default)]
    pub reasoning_effort: Option<ReasoningEffort>,
}
