//! Messages and reasoning.

use serde::{Deserialize, Serialize};

use crate::input::TextElement;
use crate::text::Text;

/// A complete message of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct AgentMessageEvent {
    /// The text.
    pub message: Text,
}

/// A delta of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct AgentMessageDeltaEvent {
    pub delta: Text,
}

/// A message of the user. The `kind` of 0.42 is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct UserMessageEvent {
    /// The text.
    pub message: String,
    /// The images, usually as `data:` URLs.
    #[serde(default)]
    pub images: Option<Vec<String>>,
    /// Spans of the text that a client shows as one element; releases before 0.80 did not store them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few()"))]
    pub text_elements: Vec<TextElement>,
}

/// A complete part of the reasoning summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct AgentReasoningEvent {
    /// The text.
    pub text: String,
}

/// A delta of the reasoning summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct AgentReasoningDeltaEvent {
    pub delta: Text,
}

/// Raw reasoning, from models that show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct AgentReasoningRawContentEvent {
    /// The text.
    pub text: String,
}

/// A delta of raw reasoning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct AgentReasoningRawContentDeltaEvent {
    pub delta: Text,
}

/// A new part of the reasoning summary begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct AgentReasoningSectionBreakEvent {
    /// The item; empty in messages of old releases.
    pub item_id: String,
    /// The index of the part.
    pub summary_index: i64,
}

/// The provider searches the web.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct WebSearchBeginEvent {
    /// The call.
    pub call_id: String,
}

/// The provider has searched the web.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct WebSearchEndEvent {
    /// The call.
    pub call_id: String,
    /// The search text.
    pub query: String,
}
