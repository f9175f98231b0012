//! `model/list`: the models for a picker; `modelProvider/capabilities/read`: the capabilities of a provider.

use codex_wire::reasoning::ReasoningEffort;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The parameters of `model/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelListParams {
    /// The cursor of the previous page.
    #[serde(default)]
    pub cursor: Option<String>,
    /// The maximum number of entries.
    #[serde(default)]
    pub limit: Option<u32>,
    /// Whether models that pickers leave out are listed too.
    #[serde(default)]
    pub include_hidden: Option<bool>,
}

/// The answer of `model/list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelListResponse {
    /// The models, the recommended ones first.
    pub data: Vec<Model>,
    /// The cursor of the next page, if there is one.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// A model that can be chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// The unique id of the entry.
    pub id: String,
    /// The provider's id for it.
    pub model: String,
    /// The model that takes its place, if there is one.
    #[serde(default)]
    pub upgrade: Option<String>,
    /// Details about that.
    #[serde(default)]
    pub upgrade_info: Option<Value>,
    /// An introduction for users who see it for the first time.
    #[serde(default)]
    pub availability_nux: Option<Value>,
    /// Its name for people.
    pub display_name: String,
    pub description: String,
    /// Whether pickers leave it out.
    #[serde(default)]
    pub hidden: bool,
    /// The efforts it takes, the lowest first.
    pub supported_reasoning_efforts: Vec<ReasoningEffortOption>,
    /// The effort when none is chosen.
    pub default_reasoning_effort: ReasoningEffort,
    #[serde(default = "text_and_images")]
    pub input_modalities: Vec<InputModality>,
    /// Whether its manner can be chosen.
    #[serde(default)]
    pub supports_personality: bool,
    /// Names of faster service tiers.
    #[serde(default)]
    pub additional_speed_tiers: Vec<String>,
    /// Service tiers that can be chosen.
    #[serde(default)]
    pub service_tiers: Vec<ModelServiceTier>,
    /// The way when none is chosen.
    #[serde(default)]
    pub default_service_tier: Option<String>,
    /// Whether it is the one in use when none is chosen.
    pub is_default: bool,
}

fn text_and_images() -> Vec<InputModality> {
    vec![InputModality::Text, InputModality::Image]
}

spelled! {
    /// A kind of input.
    pub open enum InputModality {
        "text" => Text,
        "image" => Image,
        "audio" => Audio,
    }
}

/// An effort that a model takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReasoningEffortOption {
    /// The effort.
    pub reasoning_effort: ReasoningEffort,
    pub description: String,
}

/// A service tier of a model, such as a faster one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelServiceTier {
    /// The name used in requests.
    pub id: String,
    /// Its name for people.
    pub name: String,
    pub description: String,
}

/// The answer of `modelProvider/capabilities/read`: the capabilities of the provider besides answering.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProviderCapabilities {
    /// Whether it makes images.
    pub image_generation: bool,
    /// Whether it searches the web.
    pub web_search: bool,
    /// Whether it accepts tools that are grouped under one name.
    pub namespace_tools: bool,
}
