//! A call of a tool of an MCP server.

use std::time::Duration;

use codex_wire::mcp::{CallToolResult, McpInvocation};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BROKEN_OFF, ItemId, Status};

/// A call of a tool of an MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct McpCall {
    /// The id of the model's call.
    pub id: ItemId,
    /// The server, the tool, and its arguments.
    pub invocation: McpInvocation,
    pub status: Status,
    /// Its result, once it has ended.
    pub end: Option<McpCallEnd>,
}

/// The result of a call of an MCP tool.
#[derive(Debug, Clone, PartialEq)]
pub struct McpCallEnd {
    pub duration: Duration,
    /// The result of the tool, or its error.
    pub result: Result<CallToolResult, String>,
}

impl McpCall {
    pub(super) fn begun(&self) -> Self {
        Self { id: self.id.clone(), invocation: self.invocation.clone(), status: Status::Running, end: None }
    }

    pub(super) fn ended(&self) -> Self {
        let end = McpCallEnd { duration: Duration::ZERO, result: Err(BROKEN_OFF.to_owned()) };
        Self { status: Status::Failed, end: self.end.clone().or(Some(end)), ..self.clone() }
    }

    pub(super) fn title(&self) -> String {
        format!("{}.{}", self.invocation.server, self.invocation.tool)
    }

    /// Values are not traversed: only their texts are large.
    pub(super) fn weight(&self) -> usize {
        let texts = |result: &CallToolResult| result.content.iter().map(text_length).sum();
        self.end.as_ref().map_or(0, |end| end.result.as_ref().map_or_else(String::len, texts))
    }

    pub(super) fn stored_form(&self) -> StoredForm<'_> {
        let end = self.end.as_ref();
        let result = end.map(|end| &end.result);
        StoredForm {
            id: self.id.as_str(),
            server: &self.invocation.server,
            tool: &self.invocation.tool,
            arguments: self.invocation.arguments.as_ref(),
            status: self.status.word(),
            result: result.and_then(|result| result.as_ref().ok()),
            error: result.and_then(|result| result.as_ref().err()).map(|message| Failure { message: message.into() }),
            duration: end.map(|end| end.duration),
        }
    }
}

fn text_length(part: &Value) -> usize {
    ["text", "data"].iter().filter_map(|name| part.get(name)?.as_str()).map(str::len).sum()
}

#[derive(Serialize)]
pub(crate) struct StoredForm<'a> {
    id: &'a str,
    server: &'a str,
    tool: &'a str,
    arguments: Option<&'a Value>,
    status: &'static str,
    result: Option<&'a CallToolResult>,
    error: Option<Failure>,
    duration: Option<Duration>,
}

#[derive(Serialize, Deserialize)]
struct Failure {
    message: String,
}

#[derive(Deserialize)]
pub struct Stored {
    id: String,
    server: String,
    tool: String,
    #[serde(default)]
    arguments: Option<Value>,
    #[serde(default)]
    status: String,
    #[serde(default)]
    result: Option<CallToolResult>,
    #[serde(default)]
    error: Option<Failure>,
    #[serde(default)]
    duration: Option<Duration>,
}

impl From<Stored> for McpCall {
    fn from(stored: Stored) -> Self {
        let result = match (stored.result, stored.error) {
            (Some(result), _) => Ok(result),
            (None, Some(error)) => Err(error.message),
            (None, None) => Err("it was cut off".to_owned()),
        };
        Self {
            id: ItemId::new(stored.id),
            invocation: McpInvocation { server: stored.server, tool: stored.tool, arguments: stored.arguments },
            status: Status::of_ended(&stored.status),
            end: Some(McpCallEnd { duration: stored.duration.unwrap_or_default(), result }),
        }
    }
}
