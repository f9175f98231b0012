//! Calls of tools that a client supplies, as items.

use codex_wire::dynamic_tool::DynamicToolCallOutputContentItem;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A call of a tool that a client supplies, as an item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DynamicToolCall {
    /// The id of the model's call.
    pub id: String,
    /// The namespace of the tool, if it has one.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The tool.
    pub tool: String,
    /// The arguments of the call.
    pub arguments: Value,
    /// Its status.
    pub status: super::item::CallStatus,
    /// The result.
    #[serde(default)]
    pub content_items: Option<Vec<DynamicToolCallOutputContentItem>>,
    /// Whether the tool did what it was asked to do.
    #[serde(default)]
    pub success: Option<bool>,
    /// Its duration.
    #[serde(default)]
    pub duration_ms: Option<i64>,
}
