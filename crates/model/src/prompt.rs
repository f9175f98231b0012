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

/// One request to a model. Cloning it copies no text of the conversation.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// The thread that asks; providers use it as the key of their cache.
    pub thread: ThreadId,
    /// The model to ask.
    pub model: String,
    /// The instructions of the model.
    pub instructions: Arc<str>,
    /// The conversation, each item encoded once in the form of the Responses API.
    pub input: Vec<ConversationItem>,
    /// The tools the model may call.
    pub tools: Arc<ToolList>,
    /// Whether the model may make several calls in one answer.
    pub parallel_tool_calls: bool,
    /// How the model is to reason; `None` for models that do not.
    pub reasoning: Option<ReasoningRequest>,
    /// How long the answer is meant to be.
    pub verbosity: Option<Verbosity>,
    /// A JSON schema that the final answer has to follow.
    pub output_schema: Option<Value>,
    /// How long the answer may be, for wires that want to be told.
    pub max_output_tokens: Option<u32>,
}

/// How a model is asked to reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReasoningRequest {
    /// How much of it.
    pub effort: Option<ReasoningEffort>,
    /// How much of it to sum up for the reader.
    pub summary: Option<ReasoningSummary>,
    /// How the model is made to think, on wires where models differ in that.
    pub thinking: ThinkingForm,
}
