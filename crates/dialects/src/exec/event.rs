//! The shapes of the events, as every release since 0.44 has written them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use codex_wire::agent::{AgentState, AgentTool};
use codex_wire::ids::ThreadId;
use codex_wire::text::Text;
use codex_wire::tokens::add_costs;
use serde::Serialize;
use serde_json::Value;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type")]
pub enum ThreadEvent {
    /// The thread is ready; always the first line.
    #[serde(rename = "thread.started")]
    ThreadStarted {
        /// The id with which it can be resumed.
        thread_id: ThreadId,
    },
    /// A turn has started.
    #[serde(rename = "turn.started")]
    TurnStarted,
    /// A turn is completed.
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        /// Its token usage.
        usage: Usage,
    },
    /// A turn has failed.
    #[serde(rename = "turn.failed")]
    TurnFailed { error: ThreadError },
    /// An item has started.
    #[serde(rename = "item.started")]
    ItemStarted {
        /// The item so far.
        item: ThreadItem,
    },
    /// An item has changed.
    #[serde(rename = "item.updated")]
    ItemUpdated {
        /// The item now.
        item: ThreadItem,
    },
    /// An item is complete.
    #[serde(rename = "item.completed")]
    ItemCompleted { item: ThreadItem },
    /// An approval request. Only sent if the caller chose who answers.
    #[serde(rename = "approval.requested")]
    ApprovalRequested {
        #[serde(flatten)]
        request: ApprovalRequest,
    },
    /// An error after which the turn may continue.
    #[serde(rename = "error")]
    Error(ThreadError),
}

/// An error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadError {
    pub message: String,
}

/// The tokens of a run. Those that a resumed thread had used before do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Tokens sent, cached ones included.
    pub input_tokens: i64,
    /// The part of them that the provider had cached.
    pub cached_input_tokens: i64,
    /// The part of them that the provider added to its cache, if it reports that; 0.166 always has this member, and
    /// 0.77 never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_input_tokens: Option<i64>,
    /// Tokens received, reasoning included.
    pub output_tokens: i64,
    /// The part of them that was reasoning; 0.77 does not have this member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_output_tokens: Option<i64>,
    /// The cost of the run, if the user has set prices for everything that it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl Usage {
    /// The tokens of both. The cost is known if that of both is.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let sum = |one: Option<i64>, two: Option<i64>| one.map_or(two, |one| Some(one + two.unwrap_or_default()));
        Self {
            input_tokens: self.input_tokens + other.input_tokens,
            cached_input_tokens: self.cached_input_tokens + other.cached_input_tokens,
            cache_write_input_tokens: sum(self.cache_write_input_tokens, other.cache_write_input_tokens),
            output_tokens: self.output_tokens + other.output_tokens,
            reasoning_output_tokens: sum(self.reasoning_output_tokens, other.reasoning_output_tokens),
            cost: self.cost.zip(other.cost).map(|(one, two)| add_costs(one, two)),
        }
    }
}

/// An item. Its id is unique within the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadItem {
    pub id: String,
    #[serde(flatten)]
    pub details: ThreadItemDetails,
}

/// The kind of an item, with its data.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ThreadItemDetails {
    /// A message of the model.
    AgentMessage {
        /// The complete text.
        text: Text,
    },
    /// Reasoning of the model.
    Reasoning {
        /// Its summary.
        text: String,
    },
    /// A command.
    CommandExecution {
        /// The command as a shell would read it.
        command: String,
        /// Its output, bounded.
        aggregated_output: String,
        /// Its exit status, once it has one.
        exit_code: Option<i32>,
        status: CommandStatus,
    },
    /// Files that one patch changed.
    FileChange {
        changes: Vec<UpdatedFile>,
        /// Whether the patch was applied.
        status: FileChangeStatus,
    },
    /// A call of an MCP tool.
    McpToolCall {
        server: String,
        tool: String,
        arguments: Value,
        /// Its result, once it has ended.
        result: Option<McpResult>,
        error: Option<ThreadError>,
        status: CommandStatus,
    },
    /// A call about other agents.
    CollabToolCall {
        tool: AgentTool,
        /// The thread that calls.
        sender_thread_id: ThreadId,
        /// The threads of the other agents.
        receiver_thread_ids: Vec<ThreadId>,
        prompt: Option<String>,
        /// The agents by thread.
        agents_states: BTreeMap<ThreadId, CollabAgentState>,
        /// Its status.
        status: CommandStatus,
    },
    /// A web search.
    WebSearch {
        /// The search text.
        query: String,
    },
    /// The plan.
    TodoList { items: Vec<Todo> },
    /// A warning for the user; the turn continues.
    Error { message: String },
}

/// The result of a tool call on an MCP server.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpResult {
    /// The parts, in order.
    pub content: Vec<Value>,
    /// The structured form, from servers that send it.
    pub structured_content: Option<Value>,
}

/// The status of a command or a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CommandStatus {
    /// It is running.
    InProgress,
    /// It succeeded.
    Completed,
    /// It failed, or was not allowed to run.
    Failed,
}

/// Whether a patch was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileChangeStatus {
    Completed,
    Failed,
}

/// A file that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpdatedFile {
    pub path: PathBuf,
    pub kind: FileChangeKind,
}

/// The kind of a file change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    /// The file was created.
    Add,
    /// The file was deleted.
    Delete,
    /// The file was modified.
    Update,
}

/// A step of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Todo {
    pub text: String,
    /// Whether it is completed.
    pub completed: bool,
}

/// An approval request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovalRequest {
    /// The id that the answer repeats.
    pub id: String,
    /// The thread that asks, if it is a child agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<ThreadId>,
    /// The reason for the question, unless it follows from the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(flatten)]
    pub subject: Subject,
}

/// The subject of an approval request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Subject {
    /// A command.
    Command {
        /// The command line as a shell would read it.
        command: String,
        /// The exact command.
        argv: Vec<String>,
        /// The working directory.
        cwd: PathBuf,
    },
    /// A patch.
    FileChange {
        /// The changed files.
        changes: Vec<UpdatedFile>,
    },
    /// A call of an MCP tool.
    McpTool { server: String, tool: String, arguments: Option<Value> },
    /// A question of an MCP server. It can only be declined here.
    Elicitation { server: String, message: String },
}

/// An agent at the end of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CollabAgentState {
    pub status: AgentState,
    pub message: Option<String>,
}
