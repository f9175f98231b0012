//! Tools that a client supplies: their specifications, and the requests to run them.

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value};

/// A tool, or several tools under one name. One without a `type` is a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

/// The members of a tool, and its `type`, which is `function` if there is none.
fn members<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(Option<String>, Value), D::Error> {
    let mut members = Map::deserialize(deserializer)?;
    let kind = match members.shift_remove("type") {
        None | Some(Value::Null) => None,
        Some(Value::String(kind)) => Some(kind),
        Some(_) => return Err(D::Error::custom("the `type` of a tool is a string")),
    };
    Ok((kind.filter(|kind| kind != "function"), Value::Object(members)))
}

impl<'de> Deserialize<'de> for DynamicToolSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match members(deserializer)? {
            (None, tool) => serde_json::from_value(tool).map(Self::Function).map_err(D::Error::custom),
            (Some(kind), group) if kind == "namespace" => {
                serde_json::from_value(group).map(Self::Namespace).map_err(D::Error::custom)
            }
            (Some(kind), _) => Err(D::Error::unknown_variant(&kind, &["function", "namespace"])),
        }
    }
}

impl<'de> Deserialize<'de> for DynamicToolNamespaceTool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match members(deserializer)? {
            (None, tool) => serde_json::from_value(tool).map(Self::Function).map_err(D::Error::custom),
            (Some(kind), _) => Err(D::Error::unknown_variant(&kind, &["function"])),
        }
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_without_a_type_is_a_function() {
        let bare = json!({"name": "look", "description": "Looks.", "inputSchema": {}});
        let spec: DynamicToolSpec = serde_json::from_value(bare.clone()).unwrap();
        assert_eq!(serde_json::to_value(&spec).unwrap()["type"], "function");
        let group = json!({"type": "namespace", "name": "eyes", "description": "", "tools": [bare]});
        let group = serde_json::to_value(serde_json::from_value::<DynamicToolSpec>(group).unwrap()).unwrap();
        assert_eq!(group["tools"][0]["type"], "function");
    }

    #[test]
    fn a_tool_of_another_type_is_refused_with_the_types_that_there_are() {
        let wrong = |value| serde_json::from_value::<DynamicToolSpec>(value).unwrap_err().to_string();
        assert_eq!(wrong(json!({"type": "macro"})), "unknown variant `macro`, expected `function` or `namespace`");
        assert_eq!(wrong(json!({"type": 1})), "the `type` of a tool is a string");
        assert_eq!(wrong(json!({"description": "", "inputSchema": {}})), "missing field `name`");
    }
}
