//! `mcpServerStatus/list` (formerly `mcpServers/list`) and `mcpServer/*`: the tools, resources and status of MCP
//! servers.

use std::collections::BTreeMap;

use codex_wire::mcp::{Resource, ResourceTemplate, Tool};
use codex_wire::prompt::CustomPrompt;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The parameters of `mcpServerStatus/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListMcpServerStatusParams {
    /// The cursor of the previous page.
    #[serde(default)]
    pub cursor: Option<String>,
    /// The maximum number of entries.
    #[serde(default)]
    pub limit: Option<u32>,
    /// The amount of detail.
    #[serde(default)]
    pub detail: Option<McpServerStatusDetail>,
    /// The only server of interest.
    #[serde(default)]
    pub server_name: Option<String>,
    /// The thread whose servers are meant.
    #[serde(default)]
    pub thread_id: Option<String>,
}

spelled! {
    /// The amount of detail about a server.
    pub open enum McpServerStatusDetail {
        "full" => Full,
        "toolsAndAuthOnly" => ToolsAndAuthOnly,
    }
}

/// The answer of `mcpServerStatus/list`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListMcpServerStatusResponse {
    /// The servers, by name.
    pub data: Vec<McpServerStatus>,
    /// The cursor of the next page, if there is one.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// The state of an MCP server, with its tools and resources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpServerStatus {
    /// Its key in `[mcp_servers]`.
    pub name: String,
    /// Its own description.
    #[serde(default)]
    pub server_info: Option<Value>,
    /// Its tools by name.
    #[serde(default)]
    pub tools: BTreeMap<String, Tool>,
    #[serde(default)]
    pub resources: Vec<Resource>,
    /// Its resource templates.
    #[serde(default)]
    pub resource_templates: Vec<ResourceTemplate>,
    /// The login state.
    pub auth_status: McpAuthStatus,
    /// The state of the connection.
    #[serde(default)]
    pub runtime_status: Option<McpServerConnectionStatus>,
    /// The reason why its tools are unknown.
    #[serde(default)]
    pub tools_error: Option<String>,
}

spelled! {
    /// The login state of an MCP server.
    #[cfg_attr(feature = "schema", schemars(rename = "v2_McpAuthStatus"))]
    pub open enum McpAuthStatus {
        "unknown" => Unknown,
        "unsupported" => Unsupported,
        "notLoggedIn" => NotLoggedIn,
        "bearerToken" => BearerToken,
        "oAuth" => OAuth,
    }
}

spelled! {
    /// The state of the connection to an MCP server.
    pub open enum McpServerConnectionStatus {
        "notStarted" => NotStarted,
        "starting" => Starting,
        "connected" => Connected,
        "authenticationRequired" => AuthenticationRequired,
        "failed" => Failed,
        "cancelled" => Cancelled,
        "disabled" => Disabled,
    }
}

/// The parameters of `mcpServer/restart`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpServerRestartParams {
    pub name: String,
}

/// The parameters of `customPrompt/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CustomPromptListParams {
    /// The thread whose MCP servers are asked; without one, only the prompts of the user are listed.
    #[serde(default)]
    pub thread_id: Option<String>,
}

/// The answer of `customPrompt/list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CustomPromptListResponse {
    pub data: Vec<ListedPrompt>,
}

/// A prompt that a user can call by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListedPrompt {
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    /// The arguments that it takes, for people.
    #[serde(default)]
    pub argument_hint: Option<String>,
    /// The text, with `$NAME` where an argument belongs.
    pub content: String,
}

impl From<CustomPrompt> for ListedPrompt {
    fn from(prompt: CustomPrompt) -> Self {
        let CustomPrompt { name, description, argument_hint, content, .. } = prompt;
        Self { name, description, argument_hint, content }
    }
}

/// The parameters of `mcpServer/oauth/login`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpServerOauthLoginParams {
    pub name: String,
    /// The OAuth scopes to request.
    #[serde(default)]
    pub scopes: Option<Vec<String>>,
    /// The timeout for the user.
    #[serde(default)]
    pub timeout_secs: Option<i64>,
    /// The thread whose server is meant.
    #[serde(default)]
    pub thread_id: Option<String>,
}

/// The answer of `mcpServer/oauth/login`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpServerOauthLoginResponse {
    /// The address to open.
    pub authorization_url: String,
    #[serde(default)]
    pub login_id: Option<String>,
}

/// `mcpServer/oauthLogin/completed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpServerOauthLoginCompletedNotification {
    pub name: String,
    /// Whether it worked.
    pub success: bool,
    /// The reason for the failure.
    #[serde(default)]
    pub error: Option<String>,
    #[serde(default)]
    pub login_id: Option<String>,
    /// The thread that the login was begun for.
    #[serde(default)]
    pub thread_id: Option<String>,
}

spelled! {
    /// The startup status of an MCP server.
    pub open enum McpServerStartupState {
        "starting" => Starting,
        "ready" => Ready,
        "failed" => Failed,
        "cancelled" => Cancelled,
    }
}

/// `mcpServer/startupStatus/updated`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpServerStatusUpdatedNotification {
    /// The thread that uses the server.
    #[serde(default)]
    pub thread_id: Option<String>,
    /// The server.
    pub name: String,
    pub status: McpServerStartupState,
    /// The reason why it did not start.
    #[serde(default)]
    pub error: Option<String>,
    /// The kind of failure, if a client can react to it.
    #[serde(default)]
    pub failure_reason: Option<String>,
}

/// `item/mcpToolCall/progress`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpToolCallProgressNotification {
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
    /// The call.
    pub item_id: String,
    /// The progress in the tool's own words.
    pub message: String,
}

/// The parameters of `mcpServer/tool/call`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpServerToolCallParams {
    /// The thread whose server is meant.
    pub thread_id: String,
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The arguments.
    #[serde(default)]
    pub arguments: Option<Value>,
    /// Passed on to the server.
    #[serde(default, rename = "_meta")]
    pub meta: Option<Value>,
}

/// The answer of `mcpServer/tool/call`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpServerToolCallResponse {
    /// The parts of the result, in order.
    pub content: Vec<Value>,
    /// The same as data, from servers that give it.
    #[serde(default)]
    pub structured_content: Option<Value>,
    /// Whether the tool reports a failure.
    #[serde(default)]
    pub is_error: Option<bool>,
    /// Metadata of the result.
    #[serde(default, rename = "_meta")]
    pub meta: Option<Value>,
}

/// The parameters of `mcpServer/resource/read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpResourceReadParams {
    /// The thread whose server is used; the configured server if unset.
    #[serde(default)]
    pub thread_id: Option<String>,
    /// The server.
    pub server: String,
    /// The address of the resource.
    pub uri: String,
}

/// The answer of `mcpServer/resource/read`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpResourceReadResponse {
    /// The contents.
    pub contents: Vec<Value>,
}
