//! Items of a conversation with a model, in the form of the Responses API.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

use crate::text::Text;

tagged! {
    /// One item of a conversation: a message, reasoning, a call, or an output.
    ///
    /// Ids of a provider are read but not written, because a request that stores nothing must not name them.
    pub enum ResponseItem by "type" {
        "message" => Message(Message),
        "reasoning" => Reasoning(Reasoning),
        "local_shell_call" => LocalShellCall(LocalShellCall),
        "function_call" => FunctionCall(FunctionCall),
        "function_call_output" => FunctionCallOutput(FunctionCallOutput),
        "custom_tool_call" => CustomToolCall(CustomToolCall),
        "custom_tool_call_output" => CustomToolCallOutput(CustomToolCallOutput),
        "web_search_call" => WebSearchCall(WebSearchCall),
        "ghost_snapshot" => GhostSnapshot(GhostSnapshot),
        "compaction" | "compaction_summary" => Compaction(Compaction),
    }
}

/// A message of one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct Message {
    /// The provider's id of the item.
    #[serde(default, skip_serializing)]
    #[cfg_attr(feature = "arbitrary", proptest(value = "None"))]
    pub id: Option<String>,
    /// `user`, `assistant`, `developer` or `system`.
    pub role: String,
    /// The parts, in order.
    #[serde(default)]
    pub content: Vec<ContentItem>,
}

impl Message {
    /// A message of the user with one text.
    #[must_use]
    pub fn user(text: impl Into<Text>) -> Self {
        Self::input("user", text)
    }

    /// A developer message, which takes precedence over the user's.
    #[must_use]
    pub fn developer(text: impl Into<Text>) -> Self {
        Self::input("developer", text)
    }

    fn input(role: &str, text: impl Into<Text>) -> Self {
        Self { id: None, role: role.to_owned(), content: vec![ContentItem::InputText { text: text.into() }] }
    }

    /// The text of all parts, joined.
    #[must_use]
    pub fn text(&self) -> Text {
        let mut texts = self.content.iter().filter_map(ContentItem::text);
        match (texts.next(), texts.next()) {
            (None, _) => Text::default(),
            (Some(text), None) => text.clone(),
            (Some(first), Some(second)) => {
                let mut text = first.clone();
                [second].into_iter().chain(texts).for_each(|more| text.push_str(more));
                text
            }
        }
    }
}

/// One part of a message. An unknown kind must not invalidate the rest of the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(extend("x-open" = true)))]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub enum ContentItem {
    /// Text for the model.
    InputText {
        /// The text.
        text: Text,
    },
    /// An image for the model.
    InputImage {
        /// Its URL, usually a `data:` URL.
        image_url: String,
    },
    /// Text of the model.
    OutputText {
        /// The text.
        text: Text,
    },
    /// The model's explanation when it declines to answer.
    Refusal {
        /// The text.
        refusal: Text,
    },
    /// A part that this release does not know, kept unchanged.
    #[serde(untagged)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Other(#[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_other(\"type\")"))] Value),
}

/// Not derived: a derived implementation would copy the text, which may be large.
impl<'de> Deserialize<'de> for ContentItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        let (member, make): (_, fn(String) -> Self) = match value.get("type").and_then(Value::as_str) {
            Some("input_text") => ("text", |text| Self::InputText { text: text.into() }),
            Some("input_image") => ("image_url", |image_url| Self::InputImage { image_url }),
            Some("output_text") => ("text", |text| Self::OutputText { text: text.into() }),
            Some("refusal") => ("refusal", |text| Self::Refusal { refusal: text.into() }),
            _ => return Ok(Self::Other(value)),
        };
        Ok(match value.get_mut(member).map(Value::take) {
            Some(Value::String(text)) => make(text),
            Some(other) => {
                value[member] = other;
                Self::Other(value)
            }
            None => Self::Other(value),
        })
    }
}

impl ContentItem {
    /// The text of this part, unless it is an image.
    #[must_use]
    pub fn text(&self) -> Option<&Text> {
        match self {
            Self::InputText { text } | Self::OutputText { text } | Self::Refusal { refusal: text } => Some(text),
            Self::InputImage { .. } | Self::Other(_) => None,
        }
    }
}

/// Reasoning of the model: a summary for people, and the data that the provider needs to continue from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct Reasoning {
    /// The provider's id of the item.
    #[serde(default, skip_serializing)]
    #[cfg_attr(feature = "arbitrary", proptest(value = "String::new()"))]
    pub id: String,
    /// The summary, one entry per part.
    #[serde(default)]
    pub summary: Vec<ReasoningSummaryText>,
    /// The raw reasoning, from models that show it.
    #[serde(default)]
    pub content: Option<Vec<ReasoningContent>>,
    /// The reasoning in a form that only the provider can read.
    #[serde(default)]
    pub encrypted_content: Option<String>,
}

/// One part of a reasoning summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub enum ReasoningSummaryText {
    /// The only kind there is.
    SummaryText {
        /// The text.
        text: String,
    },
}

/// One part of raw reasoning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub enum ReasoningContent {
    /// The spelling of `gpt-oss` models.
    ReasoningText {
        /// The text.
        text: String,
    },
    /// The spelling of other models.
    Text {
        /// The text.
        text: String,
    },
}

impl ReasoningContent {
    /// The text, in either spelling.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::ReasoningText { text } | Self::Text { text } => text,
        }
    }
}

/// A command that the model runs through its built-in shell tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct LocalShellCall {
    /// The provider's id of the item, which older models use instead of a call id.
    #[serde(default, skip_serializing)]
    #[cfg_attr(feature = "arbitrary", proptest(value = "None"))]
    pub id: Option<String>,
    /// The id that the output repeats.
    #[serde(default)]
    pub call_id: Option<String>,
    /// The status of the call.
    pub status: LocalShellStatus,
    pub action: LocalShellAction,
}

spelled! {
    /// The status of a call of the built-in shell tool.
    pub enum LocalShellStatus {
        "completed" => Completed,
        "in_progress" => InProgress,
        "incomplete" => Incomplete,
    }
}

/// An action of the built-in shell tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub enum LocalShellAction {
    /// Run a program.
    Exec(LocalShellExec),
}

/// A program with its arguments and environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct LocalShellExec {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The timeout.
    #[serde(default, alias = "timeout")]
    pub timeout_ms: Option<u64>,
    /// Its working directory.
    #[serde(default)]
    pub working_directory: Option<String>,
    /// Variables set for it.
    #[serde(default)]
    pub env: Option<BTreeMap<String, String>>,
    /// The identity that it runs under.
    #[serde(default)]
    pub user: Option<String>,
    /// Whether the model requests to run outside the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_escalated_permissions: Option<bool>,
    /// The reason for the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
}

/// A call of a tool that takes JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct FunctionCall {
    /// The provider's id of the item.
    #[serde(default, skip_serializing)]
    #[cfg_attr(feature = "arbitrary", proptest(value = "None"))]
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// The group of tools that it belongs to, for providers with such groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// JSON in a string, exactly as the model wrote it.
    pub arguments: String,
    /// The id that the output repeats.
    pub call_id: String,
}

/// The output of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct FunctionCallOutput {
    /// The call of this output.
    pub call_id: String,
    pub output: FunctionCallOutputPayload,
}

/// The output of a tool: text, or parts if there are images.
///
/// It is read as a string, a list of parts, or the object `{content, success}`; it is never written as an object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(untagged))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub enum FunctionCallOutputPayload {
    /// Plain text.
    Text(String),
    /// Text and images.
    Parts(Vec<ContentItem>),
}

impl Serialize for FunctionCallOutputPayload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Parts(parts) => parts.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for FunctionCallOutputPayload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self::Text(text)),
            parts @ Value::Array(_) => serde_json::from_value(parts).map(Self::Parts).map_err(D::Error::custom),
            Value::Object(mut object) => match object.shift_remove("content") {
                Some(Value::String(text)) => Ok(Self::Text(text)),
                _ => Err(D::Error::missing_field("content")),
            },
            _ => Err(D::Error::custom("the output of a call is a string, a list of parts, or an object")),
        }
    }
}

/// A call of a tool that takes free text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct CustomToolCall {
    /// The provider's id of the item.
    #[serde(default, skip_serializing)]
    #[cfg_attr(feature = "arbitrary", proptest(value = "None"))]
    pub id: Option<String>,
    /// The status of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The id that the output repeats.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// The text.
    pub input: String,
}

/// The output of a tool that takes free text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct CustomToolCallOutput {
    /// The call of this output.
    pub call_id: String,
    pub output: FunctionCallOutputPayload,
}

/// A web search that the provider ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct WebSearchCall {
    /// The provider's id of the item.
    #[serde(default, skip_serializing)]
    #[cfg_attr(feature = "arbitrary", proptest(value = "None"))]
    pub id: Option<String>,
    /// Its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The action; missing until the search has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<WebSearchAction>,
}

tagged! {
    /// An action of a web search.
    pub enum WebSearchAction by "type" {
        "search" => Search(WebQuery),
        "open_page" => OpenPage(WebPage),
        "find_in_page" => FindInPage(WebFind),
    }
}

/// A search for a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct WebQuery {
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
}

/// A page that was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct WebPage {
    /// Its URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A search in one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct WebFind {
    /// The page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The search text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// A snapshot of the work tree to which `undo` returns; never sent to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct GhostSnapshot {
    /// The commit of the snapshot.
    pub ghost_commit: GhostCommit,
}

/// A commit without a branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct GhostCommit {
    /// Its hash.
    pub id: String,
    /// Its parent commit.
    pub parent: Option<String>,
    /// Files that were untracked before.
    #[serde(default)]
    pub preexisting_untracked_files: Vec<String>,
    /// Folders that were untracked before.
    #[serde(default)]
    pub preexisting_untracked_dirs: Vec<String>,
}

/// A conversation compacted by the provider itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct Compaction {
    /// The summary in a form that only the provider can read.
    pub encrypted_content: String,
}
