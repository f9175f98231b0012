//! Items of a turn, complete and as deltas.

use serde::{Deserialize, Serialize};

use crate::forms::tag_inside;
use crate::ids::ThreadId;
use crate::input::UserInput;
use crate::response::ResponseItem;
use crate::text::Text;

tagged! {
    /// One item of a turn. The form of 0.58, with the kind around the rest, is read too.
    pub enum TurnItem by "type" through tag_inside {
        /// A message of the user.
        "UserMessage" => UserMessage(UserMessageItem),
        /// A message of the model.
        "AgentMessage" => AgentMessage(AgentMessageItem),
        /// Reasoning of the model.
        "Reasoning" => Reasoning(ReasoningItem),
        /// A web search that the provider ran.
        "WebSearch" => WebSearch(WebSearchItem),
    }
}

/// A message of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct UserMessageItem {
    /// The item.
    pub id: String,
    /// The parts, in order.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few()"))]
    pub content: Vec<UserInput>,
}

/// A message of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct AgentMessageItem {
    /// The item.
    pub id: String,
    /// The parts, in order.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few()"))]
    pub content: Vec<AgentMessageContent>,
}

tagged! {
    /// One part of a message of the model.
    pub enum AgentMessageContent by "type" through tag_inside {
        /// Plain text.
        "Text" => Text(AgentMessageText),
    }
}

/// Text of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct AgentMessageText {
    /// The text.
    pub text: Text,
}

/// Reasoning of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ReasoningItem {
    /// The item.
    pub id: String,
    /// The summary, one entry per part.
    pub summary_text: Vec<String>,
    /// The raw reasoning.
    #[serde(default)]
    pub raw_content: Vec<String>,
}

/// A web search that the provider ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct WebSearchItem {
    /// The item.
    pub id: String,
    /// The search text.
    pub query: String,
}

/// An item as the provider sent it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct RawResponseItemEvent {
    /// The item.
    pub item: ResponseItem,
}

/// An item of the turn has started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ItemStartedEvent {
    /// The thread.
    pub thread_id: ThreadId,
    /// The turn.
    pub turn_id: String,
    /// The item as far as it is known.
    pub item: TurnItem,
}

/// An item of the turn is complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ItemCompletedEvent {
    /// The thread.
    pub thread_id: ThreadId,
    /// The turn.
    pub turn_id: String,
    /// The item.
    pub item: TurnItem,
}

/// A delta of a message, with its item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct AgentMessageContentDeltaEvent {
    /// The thread.
    pub thread_id: ThreadId,
    /// The turn.
    pub turn_id: String,
    /// The item.
    pub item_id: String,
    pub delta: Text,
}

/// A delta of a reasoning summary, with its item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ReasoningContentDeltaEvent {
    /// The thread.
    pub thread_id: ThreadId,
    /// The turn.
    pub turn_id: String,
    /// The item.
    pub item_id: String,
    pub delta: Text,
    /// The part it belongs to; absent in 0.58.
    #[serde(default)]
    pub summary_index: i64,
}

/// A delta of raw reasoning, with its item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ReasoningRawContentDeltaEvent {
    /// The thread.
    pub thread_id: ThreadId,
    /// The turn.
    pub turn_id: String,
    /// The item.
    pub item_id: String,
    pub delta: Text,
    /// The part it belongs to; absent in 0.58.
    #[serde(default)]
    pub content_index: i64,
}
