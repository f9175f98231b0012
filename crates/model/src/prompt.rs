//! A request to a model.

use std::sync::Arc;

use codex_wire::{
    conversation_item::ConversationItem,
    ids::ThreadId,
    provider_traits::ThinkingForm,
    reasoning::{ReasoningEffort, ReasoningSummary, Verbosity},
    tool_spec::ToolList,
};
use serde_json::Value;

use crate::Pace;

/// One request to a model. Cloning it copies no text of the conversation.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// The thread of the request.
    pub thread: ThreadId,
    /// The key of the provider's cache: the thread, or another one whose requests begin like this one.
    pub cache_key: ThreadId,
    pub model: String,
    /// The instructions of the model.
    pub instructions: Arc<str>,
    /// The conversation, each item encoded once in the form of the Responses API.
    pub input: Vec<ConversationItem>,
    /// The tools the model may call.
    pub tools: Arc<ToolList>,
    /// Whether the model may make several calls in one answer.
    pub parallel_tool_calls: bool,
    /// The settings of reasoning; `None` for models that do not reason.
    pub reasoning: Option<ReasoningRequest>,
    /// The wanted length of the answer.
    pub verbosity: Option<Verbosity>,
    /// A JSON schema that the final answer has to follow.
    pub output_schema: Option<Value>,
    /// The maximum length of the answer, for APIs that require one.
    pub max_output_tokens: Option<u32>,
    /// The pace of the request, if it is one of several that wait for each other.
    pub pace: Option<Arc<dyn Pace>>,
}

/// The settings of reasoning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReasoningRequest {
    /// The amount of reasoning.
    pub effort: Option<ReasoningEffort>,
    /// The length of its summary.
    pub summary: Option<ReasoningSummary>,
    /// The request parameter that turns reasoning on, for APIs whose models differ in that.
    pub thinking: ThinkingForm,
}
