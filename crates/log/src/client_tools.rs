//! Tools that a client supplies, as a thread calls them.

use std::fmt;
use std::pin::Pin;

use codex_wire::dynamic_tool::DynamicToolCallOutputContentItem;
use codex_wire::ids::ThreadId;
use serde_json::Value;

use crate::{ItemId, TurnId};

/// A call of a tool that a client supplies.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientToolCall {
    pub thread: ThreadId,
    pub turn: TurnId,
    /// The id of the model's call.
    pub id: ItemId,
    pub namespace: Option<String>,
    pub tool: String,
    pub arguments: Value,
}

/// The result of such a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientToolResult {
    pub content: Vec<DynamicToolCallOutputContentItem>,
    /// Whether the tool did what it was asked to do.
    pub success: bool,
}

/// The client that runs the tools.
pub trait ToolClient: Send + Sync + fmt::Debug {
    /// Whether calls can reach it.
    fn is_present(&self) -> bool;
    /// Runs a tool. The error says why there is no result.
    fn call(&self, call: ClientToolCall) -> Calling;
}

/// A call in progress. Dropping it abandons the call.
pub type Calling = Pin<Box<dyn Future<Output = Result<ClientToolResult, String>> + Send>>;
