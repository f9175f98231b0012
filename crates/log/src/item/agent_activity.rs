//! Something that has happened to another agent.

use codex_wire::agent::AgentActivityKind;
use codex_wire::ids::ThreadId;
use codex_wire::reasoning::ReasoningEffort;
use serde::{Deserialize, Serialize};

use super::ItemId;

/// Something that has happened to another agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentActivity {
    pub id: ItemId,
    pub kind: AgentActivityKind,
    /// The thread of the agent.
    pub thread: ThreadId,
    /// The path of the agent in its tree.
    pub path: String,
    /// The model and the effort of a new agent.
    pub model: Option<String>,
    pub effort: Option<ReasoningEffort>,
}

impl AgentActivity {
    pub(super) fn title(&self) -> String {
        format!("Agent {} {}", self.path, self.kind.as_str())
    }

    pub(super) fn weight(&self) -> usize {
        self.path.len() + self.model.as_ref().map_or(0, String::len)
    }

    pub(crate) fn stored_form(&self) -> StoredForm<'_> {
        StoredForm {
            id: self.id.as_str(),
            kind: self.kind,
            agent_thread_id: self.thread,
            agent_path: &self.path,
            model: self.model.as_deref(),
            reasoning_effort: self.effort.as_ref(),
        }
    }
}

#[derive(Serialize)]
pub(crate) struct StoredForm<'a> {
    pub(crate) id: &'a str,
    kind: AgentActivityKind,
    agent_thread_id: ThreadId,
    agent_path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a ReasoningEffort>,
}

/// The same in a file: an item, or a line of its own whose id has another name.
#[derive(Deserialize)]
pub struct Stored {
    #[serde(alias = "event_id")]
    id: String,
    kind: AgentActivityKind,
    agent_thread_id: ThreadId,
    #[serde(default)]
    agent_path: String,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    reasoning_effort: Option<ReasoningEffort>,
}

impl From<Stored> for AgentActivity {
    fn from(stored: Stored) -> Self {
        Self {
            id: ItemId::new(stored.id),
            kind: stored.kind,
            thread: stored.agent_thread_id,
            path: stored.agent_path,
            model: stored.model,
            effort: stored.reasoning_effort,
        }
    }
}
