//! The session itself, and responses to requests about it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::EventMsg;
use crate::history::HistoryEntry;
use crate::ids::ThreadId;
use crate::policy::{AskForApproval, SandboxPolicy};
use crate::prompt::CustomPrompt;
use crate::reasoning::ReasoningEffort;
use crate::skill::SkillsListEntry;

/// The session is ready. 0.42 did not write the optional members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct SessionConfiguredEvent {
    /// The thread.
    pub session_id: ThreadId,
    /// The model.
    pub model: String,
    /// The provider of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_provider_id: Option<String>,
    /// The approval policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_policy: Option<AskForApproval>,
    /// The sandbox policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_policy: Option<SandboxPolicy>,
    /// The working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The reasoning effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The id of the prompt history file; 0 if there is none yet.
    pub history_log_id: u64,
    /// The number of entries in that file.
    pub history_entry_count: usize,
    /// The earlier events of a resumed session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "any_initial_messages()"))]
    pub initial_messages: Option<Vec<EventMsg>>,
    /// The rollout file.
    pub rollout_path: PathBuf,
}

/// Some messages without nested ones, so that the strategy ends.
#[cfg(feature = "arbitrary")]
fn any_initial_messages() -> impl proptest::strategy::Strategy<Value = Option<Vec<EventMsg>>> {
    use proptest::prelude::*;
    let message = prop_oneof![
        any::<super::UserMessageEvent>().prop_map(EventMsg::UserMessage),
        any::<super::AgentMessageEvent>().prop_map(EventMsg::AgentMessage),
        any::<super::TokenCountEvent>().prop_map(EventMsg::TokenCount),
        Just(EventMsg::ContextCompacted),
    ];
    prop::option::of(prop::collection::vec(message, 0..4))
}

/// The path of the rollout file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ConversationPathEvent {
    /// The thread.
    pub conversation_id: ThreadId,
    /// The file.
    pub path: PathBuf,
}

/// An entry of the prompt history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct GetHistoryEntryResponseEvent {
    /// The index of the requested entry.
    pub offset: usize,
    /// The requested file.
    pub log_id: u64,
    /// The entry; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<HistoryEntry>,
}

/// The prompts of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ListCustomPromptsResponseEvent {
    /// The prompts, by name.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few()"))]
    pub custom_prompts: Vec<CustomPrompt>,
}

/// The skills of some folders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ListSkillsResponseEvent {
    /// The skills, folder by folder.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few()"))]
    pub skills: Vec<SkillsListEntry>,
}
