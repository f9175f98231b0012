//! `thread/agents/read`: the agents below a thread.

use codex_wire::agent::{InboxMessage, SubagentStatus};
use serde::{Deserialize, Serialize};

/// The response of `thread/agents/read`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadAgentsReadResponse {
    /// The agents, each before those that it has started.
    pub data: Vec<ThreadAgent>,
    /// The mail that waits for the agent of the thread itself, oldest first.
    pub inbox: Vec<InboxMessage>,
}

/// An agent below a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAgent {
    /// Its number in the tree.
    pub agent_id: u64,
    /// Its thread.
    pub thread_id: String,
    /// The thread that has started it.
    pub parent_thread_id: String,
    /// The number of agents between the thread and it, and 1.
    pub depth: u32,
    pub status: SubagentStatus,
    /// The name that its parent gave it.
    #[serde(default)]
    pub label: Option<String>,
    /// The beginning of its instructions.
    #[serde(default)]
    pub summary: Option<String>,
    /// A heading for its current reasoning.
    #[serde(default)]
    pub reasoning_header: Option<String>,
    /// The start time in Unix milliseconds.
    pub started_at_ms: i64,
    /// The mail of its parent that it has not read, oldest first.
    pub inbox: Vec<InboxMessage>,
}
