//! `mcpServerStatus/list` (once `mcpServers/list`) and `mcpServer/*`: what MCP servers offer and how they are.

use std::collections::BTreeMap;

use codex_wire::mcp::{Resource, ResourceTemplate, Tool};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The parameters of `mcpServerStatus/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListMcpServerStatusParams {
    /// Where the page before ended.
    #[serde(default)]
    pub cursor: Option<String>,
    /// How many to list at most.
    #[serde(default)]
    pub limit: Option<u32>,
    /// How much to say about each.
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
    /// How much to say about a server.
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
    /// Where the next page begins, if there is one.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// What an MCP server offers and how it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpServerStatus {
    /// Its key in `[mcp_servers]`.
    pub name: String,
    /// What it says about itself.
    #[serde(default)]
    pub server_info: Option<Value>,
    /// Its tools by name.
    #[serde(default)]
    pub tools: BTreeMap<String, Tool>,
    /// What it lets others read.
    #[serde(default)]
    pub resources: Vec<Resource>,
    /// Families of what it lets others read.
    #[serde(default)]
    pub resource_templates: Vec<ResourceTemplate>,
    /// Whether somebody is logged in to it.
    pub auth_status: McpAuthStatus,
    /// How the connection is.
    #[serde(default)]
    pub runtime_status: Option<McpServerConnectionStatus>,
    /// Why its tools are not known.
    #[serde(default)]
    pub tools_error: Option<String>,
}

spelled! {
    /// Whether somebody is logged in to an MCP server.
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
    /// How the connection to an MCP server is.
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

/// The parameters of `mcpServer/oauth/login`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpServerOauthLoginParams {
    /// Which server.
    pub name: String,
    /// What to ask for.
    #[serde(default)]
    pub scopes: Option<Vec<String>>,
    /// How long the user may take.
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
    /// Where the user has to go.
    pub authorization_url: String,
    /// Which login it is.
    #[serde(default)]
    pub login_id: Option<String>,
}

/// `mcpServer/oauthLogin/completed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpServerOauthLoginCompletedNotification {
    /// Which server.
    pub name: String,
    /// Whether it worked.
    pub success: bool,
    /// Why not.
    #[serde(default)]
    pub error: Option<String>,
}
