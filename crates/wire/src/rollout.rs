//! Rollout files: the record of a thread, one JSON object per line.
//!
//! Invariant: a line that has a `timestamp` and a `type` always decodes. Content that this release does not know, or
//! knows in another form, is kept unchanged.

use std::path::PathBuf;

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::collaboration::CollaborationMode;
use crate::dynamic_tool::DynamicToolSpec;
use crate::event::EventMsg;
use crate::ids::ThreadId;
use crate::policy::{AskForApproval, SandboxPolicy};
use crate::reasoning::{ReasoningEffort, ReasoningSummary};
use crate::response::ResponseItem;

/// One line of a rollout file: `{"timestamp", "ordinal"?, "type", "payload"}`.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct RolloutLine {
    /// The time in UTC with milliseconds.
    pub timestamp: String,
    /// Its ordinal in the file, in files of 0.166 and later.
    pub ordinal: Option<u64>,
    pub item: RolloutItem,
}

/// The content of a rollout line.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub enum RolloutItem {
    /// The metadata of the thread; the first line of a file.
    SessionMeta(Box<SessionMeta>),
    /// An item of the conversation with the model.
    ResponseItem(ResponseItem),
    /// The conversation so far was replaced by a summary.
    Compacted(CompactedItem),
    /// The settings of the following requests.
    TurnContext(TurnContextItem),
    /// A message that a client received.
    EventMsg(EventMsg),
    /// A line that this release does not know, or knows in another form.
    Other(OtherItem),
}

/// A line of a rollout file that is kept unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct OtherItem {
    /// The `type` of the line.
    #[cfg_attr(feature = "arbitrary", proptest(regex = "future[a-z]{1,8}"))]
    pub kind: String,
    /// The `payload` of the line; `null` if it has none.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_json()"))]
    pub payload: Value,
}

impl RolloutItem {
    /// The `type` of the line.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::SessionMeta(_) => "session_meta",
            Self::ResponseItem(_) => "response_item",
            Self::Compacted(_) => "compacted",
            Self::TurnContext(_) => "turn_context",
            Self::EventMsg(_) => "event_msg",
            Self::Other(other) => &other.kind,
        }
    }

    fn decode(kind: String, payload: Value) -> Self {
        let known = match kind.as_str() {
            "session_meta" => read(&payload).map(Self::SessionMeta),
            "response_item" => read(&payload).map(Self::ResponseItem),
            "compacted" => read(&payload).map(Self::Compacted),
            "turn_context" => read(&payload).map(Self::TurnContext),
            "event_msg" => read(&payload).map(Self::EventMsg),
            _ => None,
        };
        known.unwrap_or(Self::Other(OtherItem { kind, payload }))
    }

    fn encode<S: serde::ser::SerializeStruct>(&self, line: &mut S) -> Result<(), S::Error> {
        line.serialize_field("type", self.kind())?;
        match self {
            Self::SessionMeta(meta) => line.serialize_field("payload", meta),
            Self::ResponseItem(item) => line.serialize_field("payload", item),
            Self::Compacted(item) => line.serialize_field("payload", item),
            Self::TurnContext(item) => line.serialize_field("payload", item),
            Self::EventMsg(msg) => line.serialize_field("payload", msg),
            Self::Other(other) => line.serialize_field("payload", &other.payload),
        }
    }
}

fn read<T: DeserializeOwned>(payload: &Value) -> Option<T> {
    T::deserialize(payload).ok()
}

impl Serialize for RolloutItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut line = serializer.serialize_struct("RolloutItem", 2)?;
        self.encode(&mut line)?;
        line.end()
    }
}

impl Serialize for RolloutLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let members = 3 + usize::from(self.ordinal.is_some());
        let mut line = serializer.serialize_struct("RolloutLine", members)?;
        line.serialize_field("timestamp", &self.timestamp)?;
        if let Some(ordinal) = self.ordinal {
            line.serialize_field("ordinal", &ordinal)?;
        }
        self.item.encode(&mut line)?;
        line.end()
    }
}

/// The members of a line before its payload is decoded.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    timestamp: Option<String>,
    #[serde(default)]
    ordinal: Option<u64>,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    payload: Value,
}

impl<'de> Deserialize<'de> for RolloutItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Envelope { kind, payload, .. } = Envelope::deserialize(deserializer)?;
        Ok(Self::decode(kind, payload))
    }
}

impl<'de> Deserialize<'de> for RolloutLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Envelope { timestamp, ordinal, kind, payload } = Envelope::deserialize(deserializer)?;
        let timestamp = timestamp.ok_or_else(|| D::Error::missing_field("timestamp"))?;
        Ok(Self { timestamp, ordinal, item: RolloutItem::decode(kind, payload) })
    }
}

/// The metadata of a thread. Members that only some releases write are optional.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct SessionMeta {
    /// The thread.
    pub id: ThreadId,
    /// The start time in UTC with milliseconds.
    pub timestamp: String,
    /// Its working directory.
    pub cwd: PathBuf,
    /// The client that started it.
    pub originator: String,
    /// The release that started it.
    pub cli_version: String,
    /// The instructions of the user and the project.
    #[serde(default)]
    pub instructions: Option<String>,
    /// The kind of client that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SessionSource>,
    /// The provider of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
    /// Members of 0.166.
    #[serde(flatten)]
    pub lineage: SessionLineage,
    /// The state of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitInfo>,
}

/// The position of a thread in a tree of threads, as 0.166 records it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct SessionLineage {
    /// The thread at the root of the tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<ThreadId>,
    /// The thread this one is a copy of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from_id: Option<ThreadId>,
    /// The time of the import; `None` for threads that started here. An addition of this program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported_at: Option<String>,
    /// The thread that started this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_thread_id: Option<ThreadId>,
    /// The origin of the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_nickname: Option<String>,
    /// The generation of its agent tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multi_agent_version: Option<String>,
    /// The layout of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_mode: Option<String>,
    /// The instructions of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_object()"))]
    pub base_instructions: Option<Value>,
    /// The tools that its client supplies. Those that cannot be read are left out.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "readable")]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few()"))]
    pub dynamic_tools: Vec<DynamicToolSpec>,
    /// The writable folders.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "proptest::option::of(crate::forms::few())"))]
    pub runtime_workspace_roots: Option<Vec<PathBuf>>,
    /// The part of the conversation that the file begins with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_object()"))]
    pub context_window: Option<Value>,
}

/// Reads the values of a list that have the right form.
fn readable<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let values = Option::<Vec<Value>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(values.iter().filter_map(read).collect())
}

/// The kind of client, or other source, that started a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub enum SessionSource {
    /// The terminal interface.
    Cli,
    /// An editor, or any client of the app-server.
    VsCode,
    /// A non-interactive run.
    Exec,
    /// An MCP client.
    #[serde(alias = "appServer", alias = "app_server")]
    Mcp,
    /// Unknown.
    Unknown,
    /// Another thread.
    #[serde(alias = "subAgent", alias = "sub_agent")]
    SubAgent(SubAgentSource),
    /// A source that this release does not know, kept unchanged.
    #[serde(untagged)]
    Other(#[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_other(\"future\")"))] Value),
}

/// The reason why a thread started another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub enum SubAgentSource {
    /// To review changes.
    Review,
    /// To compact the conversation.
    Compact,
    /// By a call of a model.
    ThreadSpawn(ThreadSpawn),
    /// For another reason.
    Other(String),
}

/// The call that started a thread, as 0.166 records it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ThreadSpawn {
    /// The thread that called.
    pub parent_thread_id: ThreadId,
    /// Its depth below the root.
    pub depth: i64,
    /// Its path in the tree.
    #[serde(default)]
    pub agent_path: Option<String>,
    #[serde(default)]
    pub agent_nickname: Option<String>,
    #[serde(default)]
    pub agent_role: Option<String>,
}

/// The state of a git repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct GitInfo {
    /// The commit that is checked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_hash: Option<String>,
    /// The branch that is checked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The URL of its origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository_url: Option<String>,
    /// The commits without a parent that it descends from, in stores that several machines share. They tell whether
    /// another checkout is of the same repository, even if it is behind or has another origin.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub root_commits: Vec<String>,
}

/// The settings of requests to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct TurnContextItem {
    /// The working directory.
    pub cwd: PathBuf,
    /// The approval policy.
    pub approval_policy: AskForApproval,
    /// The sandbox policy.
    pub sandbox_policy: SandboxPolicy,
    /// The model.
    pub model: String,
    /// The reasoning effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<ReasoningEffort>,
    /// The detail of the reasoning summary.
    pub summary: ReasoningSummary,
    /// The collaboration mode, if it was not the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collaboration_mode: Option<CollaborationMode>,
    /// The generation of its agent tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multi_agent_version: Option<String>,
}

/// A summary that replaces the conversation before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct CompactedItem {
    /// The summary.
    pub message: String,
    /// The conversation from here on, if the release recorded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "proptest::option::of(crate::forms::few())"))]
    pub replacement_history: Option<Vec<ResponseItem>>,
}
