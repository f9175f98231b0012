//! MCP servers: their startup, tools and resources, calls, and questions.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::RequestId;
use crate::mcp::{
    CallToolResult, McpAuthStatus, McpInvocation, McpStartupFailure, McpStartupStatus, Resource, ResourceTemplate,
    Tool, call_outcome,
};

/// The startup status of an MCP server has changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct McpStartupUpdateEvent {
    /// The server.
    pub server: String,
    /// Its status.
    pub status: McpStartupStatus,
}

/// All MCP servers have started or failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct McpStartupCompleteEvent {
    /// Servers that can be used.
    pub ready: Vec<String>,
    /// Servers that cannot.
    pub failed: Vec<McpStartupFailure>,
    /// Servers whose startup was cancelled.
    pub cancelled: Vec<String>,
}

/// A tool of an MCP server is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct McpToolCallBeginEvent {
    /// The call.
    pub call_id: String,
    pub invocation: McpInvocation,
}

/// A tool of an MCP server returned a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct McpToolCallEndEvent {
    /// The call.
    pub call_id: String,
    pub invocation: McpInvocation,
    /// Its duration.
    pub duration: Duration,
    /// The result, or an error. A bare result or message is read too.
    #[serde(deserialize_with = "call_outcome")]
    pub result: Result<CallToolResult, String>,
}

impl McpToolCallEndEvent {
    /// Whether the tool succeeded.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.result.as_ref().is_ok_and(|result| !result.is_error.unwrap_or(false))
    }
}

/// The tools and resources of the MCP servers. 0.42 wrote only the tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct McpListToolsResponseEvent {
    /// The tools, by the name under which a model calls them.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few_named()"))]
    pub tools: BTreeMap<String, Tool>,
    /// The resources, by server.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few_lists()"))]
    pub resources: BTreeMap<String, Vec<Resource>>,
    /// The resource templates, by server.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few_lists()"))]
    pub resource_templates: BTreeMap<String, Vec<ResourceTemplate>>,
    /// The login state for each server.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few_named()"))]
    pub auth_statuses: BTreeMap<String, McpAuthStatus>,
}

/// An MCP server asks the user something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ElicitationRequestEvent {
    /// The server.
    pub server_name: String,
    /// Its id of the question.
    pub id: RequestId,
    /// The question.
    pub message: String,
}
