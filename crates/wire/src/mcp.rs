//! Tools, resources and results of MCP servers.
//!
//! Schemas, annotations and content blocks are passed through unchanged: the engine does not look inside.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::forms::take;

/// A call of a tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct McpInvocation {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    #[serde(default)]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_object()"))]
    pub arguments: Option<Value>,
}

/// The result of a tool call on an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct CallToolResult {
    /// The parts, in order.
    #[serde(default)]
    #[cfg_attr(
        feature = "arbitrary",
        proptest(strategy = "proptest::collection::vec(crate::forms::any_json(), 0..3)")
    )]
    pub content: Vec<Value>,
    /// The structured form, from servers that send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_object()"))]
    pub structured_content: Option<Value>,
    /// Whether the tool reports a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
}

/// Decodes the result of a call: `{"Ok": ..}`, `{"Err": ".."}`, or a bare result or message.
pub(crate) fn call_outcome<'de, D>(deserializer: D) -> Result<Result<CallToolResult, String>, D::Error>
where
    D: Deserializer<'de>,
{
    let result = match Value::deserialize(deserializer)? {
        Value::String(message) => return Ok(Err(message)),
        Value::Object(mut object) => match (take(&mut object, &["Ok"]), take(&mut object, &["Err"])) {
            (Some(result), _) => result,
            (None, Some(Value::String(message))) => return Ok(Err(message)),
            (None, Some(other)) => return Ok(Err(other.to_string())),
            (None, None) => Value::Object(object),
        },
        other => other,
    };
    serde_json::from_value(result).map(Ok).map_err(serde::de::Error::custom)
}

/// A tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct Tool {
    /// Its name on the server.
    pub name: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    #[serde(default)]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_json()"))]
    pub input_schema: Value,
    /// The JSON Schema of its structured results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_object()"))]
    pub output_schema: Option<Value>,
    /// Hints about its effects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_object()"))]
    pub annotations: Option<Value>,
}

/// A resource of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct Resource {
    /// Its name.
    pub name: String,
    /// Its URI.
    pub uri: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The type of its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its length in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Hints about whom it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_object()"))]
    pub annotations: Option<Value>,
}

/// A resource template: a URI with placeholders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ResourceTemplate {
    /// Its name.
    pub name: String,
    /// The URI with its placeholders.
    pub uri_template: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The type of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Hints about whom it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_object()"))]
    pub annotations: Option<Value>,
}

spelled! {
    /// The login state for an MCP server.
    pub open enum McpAuthStatus {
        /// The server supports no login.
        "unsupported" => Unsupported,
        "not_logged_in" => NotLoggedIn,
        "bearer_token" => BearerToken,
        "o_auth" => OAuth,
    }
}

tagged! {
    /// The startup status of an MCP server.
    pub enum McpStartupStatus by "state" {
        "starting" => Starting,
        "ready" => Ready,
        "failed" => Failed(McpStartupError),
        "cancelled" => Cancelled,
    }
}

/// The reason why an MCP server did not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct McpStartupError {
    /// The reason.
    pub error: String,
}

/// An MCP server that did not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct McpStartupFailure {
    /// The server.
    pub server: String,
    /// The reason.
    pub error: String,
}
