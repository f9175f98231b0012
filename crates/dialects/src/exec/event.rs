//! The shapes of the events, as every release since 0.44 has written them.

use std::path::PathBuf;

use codex_wire::ids::ThreadId;
use codex_wire::text::Text;
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
        /// By this name it can be resumed.
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
    TurnFailed {
        /// Why not.
        error: ThreadError,
    },
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
    ItemCompleted {
        /// The item.
        item: ThreadItem,
    },
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
    /// In words.
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
    /// The part of them that the provider has put into its cache, where it tells; 0.166 always has it, and 0.77 never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_input_tokens: Option<i64>,
    /// Tokens received, reasoning included.
    pub output_tokens: i64,
    /// The part of them that was reasoning; 0.77 does not tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_output_tokens: Option<i64>,
    /// The cost of the run, if the user has set prices for everything that it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// An item. Its name is unique within the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadItem {
    /// The name.
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
        /// All of it.
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
        /// How far it is.
        status: CommandStatus,
    },
    /// Files that were changed together.
    FileChange {
        /// Which.
        changes: Vec<UpdatedFile>,
        /// Whether they were.
        status: FileChangeStatus,
    },
    /// A call of a tool of an MCP server.
    McpToolCall {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        arguments: Value,
        /// Its result, once it has one.
        result: Option<McpResult>,
        /// Why nothing came.
        error: Option<ThreadError>,
        /// How far it is.
        status: CommandStatus,
    },
    /// A search of the web.
    WebSearch {
        /// The search text.
        query: String,
    },
    /// The plan.
    TodoList {
        /// Its steps.
        items: Vec<Todo>,
    },
    /// Something the user should know; work goes on.
    Error { message: String },
}

/// The result of a tool call on an MCP server.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpResult {
    /// The parts, in order.
    pub content: Vec<Value>,
    /// The same as data, from servers that give it.
    pub structured_content: Option<Value>,
}

/// How far a command or a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CommandStatus {
    /// It runs.
    InProgress,
    /// It ended with status 0.
    Completed,
    /// It ended in another way, or was not allowed to run.
    Failed,
}

/// Whether a patch was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileChangeStatus {
    /// All of it.
    Completed,
    /// Nothing of it.
    Failed,
}

/// A file that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpdatedFile {
    /// The file.
    pub path: PathBuf,
    pub kind: FileChangeKind,
}

/// The kind of a file change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    /// It is new.
    Add,
    /// It is gone.
    Delete,
    /// It is another.
    Update,
}

/// A step of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Todo {
    pub text: String,
    /// Whether it is.
    pub completed: bool,
}

/// A question: may this be done?
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovalRequest {
    /// By this name it is answered.
    pub id: String,
    /// Why it is asked, where that is not plain from the policy.
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
        /// The command as a shell would read it.
        command: String,
        /// Exactly what would run.
        argv: Vec<String>,
        /// Where it would run.
        cwd: PathBuf,
    },
    /// A patch.
    FileChange {
        /// Which files it changes.
        changes: Vec<UpdatedFile>,
    },
    /// A call of a tool of an MCP server.
    McpTool { server: String, tool: String, arguments: Option<Value> },
    /// Something that an MCP server wants to know. Only a no can be given here.
    Elicitation { server: String, message: String },
}
