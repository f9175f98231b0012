//! Items of a thread as clients see them, in `item/started`, `item/completed` and `turns`.
//!
//! Members that only the newest releases have are always written, as `null` if unknown; older clients ignore unknown
//! members.

use std::collections::BTreeMap;
use std::path::PathBuf;

use codex_wire::agent::AgentActivityKind;
use codex_wire::command::ParsedCommand;
use codex_wire::ids::ThreadId;
use codex_wire::input::{ByteRange, TextElement as StoredTextElement, UserInput};
use codex_wire::reasoning::ReasoningEffort;
use codex_wire::text::Text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::dynamic_tool::DynamicToolCall;

/// A member that other releases have and that is always `null` here.
pub type Nothing = ();

/// An item, with when it began and ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "v2_ThreadItem"))]
pub struct TimedItem {
    /// The item.
    #[serde(flatten)]
    pub item: ThreadItem,
    /// The start time in Unix milliseconds.
    #[serde(default, rename = "startedAtMs")]
    pub started_at_ms: Option<i64>,
    /// The completion time.
    #[serde(default, rename = "completedAtMs")]
    pub completed_at_ms: Option<i64>,
}

/// An item that a client displays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ThreadItem {
    /// A message of the user.
    UserMessage {
        /// Its name.
        id: String,
        /// The name the client gave it.
        #[serde(default)]
        client_id: Option<String>,
        /// The pieces.
        content: Vec<InputItem>,
    },
    /// A message of the model.
    AgentMessage {
        /// Its name.
        id: String,
        /// The text so far.
        text: Text,
        /// The phase of the answer, if the model reports it.
        #[serde(default)]
        phase: Option<String>,
        /// Never known here.
        #[serde(default)]
        memory_citation: Nothing,
        /// Never known here.
        #[serde(default)]
        delivery: Nothing,
        /// Never known here.
        #[serde(default)]
        questions: Nothing,
    },
    /// Reasoning of the model.
    Reasoning {
        /// Its name.
        id: String,
        /// The summary, one text a part.
        #[serde(default)]
        summary: Vec<String>,
        /// The raw reasoning, if the model shows it.
        #[serde(default)]
        content: Vec<String>,
    },
    /// A command.
    CommandExecution(Box<CommandExecution>),
    /// A patch.
    FileChange {
        /// Its name.
        id: String,
        changes: Vec<FileUpdateChange>,
        /// Its status.
        status: CallStatus,
    },
    /// A call of a tool of an MCP server.
    McpToolCall(Box<McpToolCall>),
    /// A call of a tool that the client supplies.
    DynamicToolCall(Box<DynamicToolCall>),
    /// A call about other agents.
    CollabAgentToolCall(Box<CollabAgentToolCall>),
    /// Something that has happened to another agent.
    SubAgentActivity(Box<SubAgentActivity>),
    /// A search of the web.
    WebSearch {
        /// Its name.
        id: String,
        /// The search text.
        query: String,
        /// The action that was taken.
        #[serde(default)]
        action: Option<Value>,
    },
    /// A picture the model looked at.
    ImageView {
        /// Its name.
        id: String,
        /// The file.
        path: PathBuf,
    },
    /// A review has begun.
    EnteredReviewMode {
        /// Its name.
        id: String,
        /// A description of the reviewed changes.
        review: String,
    },
    /// A review is over.
    ExitedReviewMode {
        /// Its name.
        id: String,
        /// The findings as text.
        review: String,
    },
    /// The conversation was compacted.
    ContextCompaction {
        /// Its name.
        id: String,
    },
}

impl ThreadItem {
    /// Its name.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::CommandExecution(command) => &command.id,
            Self::McpToolCall(call) => &call.id,
            Self::DynamicToolCall(call) => &call.id,
            Self::CollabAgentToolCall(call) => &call.id,
            Self::SubAgentActivity(activity) => &activity.id,
            Self::UserMessage { id, .. }
            | Self::AgentMessage { id, .. }
            | Self::Reasoning { id, .. }
            | Self::FileChange { id, .. }
            | Self::WebSearch { id, .. }
            | Self::ImageView { id, .. }
            | Self::EnteredReviewMode { id, .. }
            | Self::ExitedReviewMode { id, .. }
            | Self::ContextCompaction { id } => id,
        }
    }

    /// A message of the model.
    #[must_use]
    pub fn agent_message(id: String, text: impl Into<Text>) -> Self {
        Self::AgentMessage { id, text: text.into(), phase: None, memory_citation: (), delivery: (), questions: () }
    }
}

/// A command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CommandExecution {
    /// The id of the model's call.
    pub id: String,
    /// Never known here.
    #[serde(default)]
    pub plugin_id: Nothing,
    /// Never known here.
    #[serde(default)]
    pub script_path: Nothing,
    /// The command line.
    pub command: String,
    /// Its working directory.
    pub cwd: PathBuf,
    /// The number of its terminal, if it runs in one.
    #[serde(default)]
    pub process_id: Option<String>,
    /// The origin of the command.
    #[serde(default)]
    pub source: CommandSource,
    /// Its status.
    pub status: CallStatus,
    /// Its parsed form, for display.
    pub command_actions: Vec<CommandAction>,
    /// Its output, if any.
    #[serde(default)]
    pub aggregated_output: Option<String>,
    /// Its exit status, once it has ended.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// Its duration.
    #[serde(default)]
    pub duration_ms: Option<i64>,
}

/// The origin of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CommandExecutionSource"))]
#[serde(rename_all = "camelCase")]
pub enum CommandSource {
    /// The model.
    #[default]
    Agent,
    /// The user.
    UserShell,
    /// The model, in a separate terminal.
    UnifiedExecStartup,
    /// The model, typing into a terminal.
    UnifiedExecInteraction,
}

/// The status of a command, a patch or another call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum CallStatus {
    /// It is running, or waits for an answer.
    InProgress,
    /// It succeeded.
    Completed,
    /// It failed.
    Failed,
    /// It was declined.
    Declined,
}

/// One step of a command, for display.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum CommandAction {
    /// Shows a file.
    Read {
        /// The command.
        command: String,
        /// The name of the file.
        name: String,
        /// Its path.
        path: PathBuf,
    },
    /// Lists a folder.
    ListFiles {
        /// The command.
        command: String,
        /// The folder, unless it is the working directory.
        #[serde(default)]
        path: Option<String>,
    },
    /// Searches for a text.
    Search {
        /// The command.
        command: String,
        /// The search text.
        #[serde(default)]
        query: Option<String>,
        /// The searched path.
        #[serde(default)]
        path: Option<String>,
    },
    /// Anything else.
    Unknown {
        /// The command.
        command: String,
    },
}

impl From<&ParsedCommand> for CommandAction {
    fn from(parsed: &ParsedCommand) -> Self {
        match parsed {
            ParsedCommand::Read(read) => Self::Read {
                command: read.cmd.clone(),
                name: read.name.clone(),
                path: read.path.clone().unwrap_or_else(|| PathBuf::from(&read.name)),
            },
            ParsedCommand::ListFiles(list) => Self::ListFiles { command: list.cmd.clone(), path: list.path.clone() },
            ParsedCommand::Search(search) => {
                Self::Search { command: search.cmd.clone(), query: search.query.clone(), path: search.path.clone() }
            }
            ParsedCommand::Unknown(other) => Self::Unknown { command: other.cmd.clone() },
            ParsedCommand::Other(_) => Self::Unknown { command: String::new() },
        }
    }
}

/// The change of one file by a patch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileUpdateChange {
    /// The file.
    pub path: PathBuf,
    /// The kind of change.
    pub kind: PatchChangeKind,
    /// The new text, the old text, or the diff, by kind.
    pub diff: String,
}

/// The kind of a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum PatchChangeKind {
    /// A new file.
    Add,
    /// A deleted file.
    Delete,
    /// A file that is edited.
    Update {
        /// Its new path, if it was renamed. The only member that every release writes in snake case.
        #[serde(default)]
        move_path: Option<PathBuf>,
    },
}

/// A call of a tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpToolCall {
    /// The id of the model's call.
    pub id: String,
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// Its status.
    pub status: CallStatus,
    /// The arguments of the call.
    #[serde(default)]
    pub arguments: Value,
    #[serde(default)]
    pub result: Option<Value>,
    #[serde(default)]
    pub error: Option<Value>,
    /// Its duration.
    #[serde(default)]
    pub duration_ms: Option<i64>,
    /// Members that newer clients require.
    #[serde(flatten, default)]
    pub newer: Option<McpToolCallContext>,
}

/// Members of [`McpToolCall`] since 0.166. They are always `null` here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpToolCallContext {
    #[serde(default)]
    pub app_context: Option<Value>,
    #[serde(default)]
    pub mcp_app_ui: Option<Value>,
    #[serde(default)]
    pub plugin_id: Option<String>,
    #[serde(default)]
    pub read_only_hint: Option<bool>,
}

/// A call about other agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CollabAgentToolCall {
    /// Its name: the id of the model's call.
    pub id: String,
    /// `spawnAgent`, `wait`, `sendInput`, `closeAgent`, `resumeAgent` and others.
    pub tool: String,
    /// Its status.
    pub status: CallStatus,
    /// The thread that calls.
    pub sender_thread_id: ThreadId,
    /// The threads of the other agents.
    pub receiver_thread_ids: Vec<ThreadId>,
    #[serde(default)]
    pub prompt: Option<String>,
    /// The model of a new agent.
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The agents by thread.
    #[serde(default)]
    pub agents_states: BTreeMap<String, CollabAgentState>,
}

/// An agent at the end of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CollabAgentState {
    /// `pendingInit`, `running`, `interrupted`, `completed`, `errored`, `shutdown` or `notFound`.
    pub status: String,
    #[serde(default)]
    pub message: Option<String>,
}

/// Something that has happened to another agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubAgentActivity {
    /// Its name.
    pub id: String,
    pub kind: AgentActivityKind,
    /// The thread of the agent.
    pub agent_thread_id: ThreadId,
    /// The path of the agent in its tree.
    pub agent_path: String,
    /// The model of a new agent.
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub reasoning_effort: Option<ReasoningEffort>,
}

/// One part of user input, in the form for clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "v2_UserInput"))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum InputItem {
    /// Plain text.
    Text {
        text: String,
        /// Spans of it that clients show as one element.
        #[serde(default)]
        text_elements: Vec<TextElement>,
    },
    /// A picture by URL.
    Image {
        /// Its path.
        url: String,
    },
    /// A picture on disk.
    LocalImage {
        /// The file.
        path: PathBuf,
    },
    /// A skill the user named.
    Skill {
        /// Its name.
        name: String,
        /// Its file.
        path: PathBuf,
    },
    /// A file or an app the user mentioned.
    Mention {
        name: String,
        /// Its path.
        path: String,
    },
}

/// Writes the input of a user in the spelling of this dialect.
pub(crate) fn camel_input<S: serde::Serializer>(input: &[UserInput], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(input.iter().map(InputItem::from))
}

/// A span of a text that clients show as one piece.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "v2_TextElement"))]
#[serde(rename_all = "camelCase")]
pub struct TextElement {
    /// Its range in the text.
    pub byte_range: ByteRange,
    /// The text shown in its place.
    #[serde(default)]
    pub placeholder: Option<String>,
}

impl From<&StoredTextElement> for TextElement {
    fn from(element: &StoredTextElement) -> Self {
        Self { byte_range: element.byte_range, placeholder: element.placeholder.clone() }
    }
}

impl From<&UserInput> for InputItem {
    fn from(input: &UserInput) -> Self {
        match input {
            UserInput::Text { text, text_elements } => {
                Self::Text { text: text.clone(), text_elements: text_elements.iter().map(Into::into).collect() }
            }
            UserInput::Image { image_url } => Self::Image { url: image_url.clone() },
            UserInput::LocalImage { path } => Self::LocalImage { path: path.clone() },
            UserInput::Skill { name, path } => Self::Skill { name: name.clone(), path: path.clone() },
            UserInput::Mention { name, path } => Self::Mention { name: name.clone(), path: path.clone() },
        }
    }
}
