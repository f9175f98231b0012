//! Tools that a client supplies: their specifications, and the requests to run them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool, or several tools under one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum DynamicToolSpec {
    /// A tool.
    Function(DynamicTool),
    /// Several tools under one name.
    Namespace(DynamicToolNamespace),
}

/// Several tools under one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct DynamicToolNamespace {
    /// Its name.
    pub name: String,
    /// Its purpose, for the model.
    pub description: String,
    /// Its tools.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few()"))]
    pub tools: Vec<DynamicToolNamespaceTool>,
}

/// A tool of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum DynamicToolNamespaceTool {
    /// A tool.
    Function(DynamicTool),
}

/// A tool that takes JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct DynamicTool {
    /// Its name.
    pub name: String,
    /// Its purpose, for the model.
    pub description: String,
    /// The JSON schema of its arguments.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_json()"))]
    pub input_schema: Value,
    /// Whether the model may learn of it later. This program offers every tool at once.
    #[serde(default)]
    pub defer_loading: bool,
}

/// A part of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum DynamicToolCallOutputContentItem {
    /// Text.
    InputText {
        /// The text.
        text: String,
    },
    /// An image.
    InputImage {
        /// A `data:` URL.
        image_url: String,
    },
    /// Sound.
    InputAudio {
        /// A `data:` URL.
        audio_url: String,
    },
}

/// `item/tool/call`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DynamicToolCallParams {
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
    /// The id of the model's call, which is that of its item.
    pub call_id: String,
    /// The namespace of the tool, if it has one.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The tool.
    pub tool: String,
    /// The arguments of the call.
    pub arguments: Value,
}

/// The response to `item/tool/call`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DynamicToolCallResponse {
    /// The result.
    pub content_items: Vec<DynamicToolCallOutputContentItem>,
    /// Whether the tool did what it was asked to do.
    pub success: bool,
}
