//! A call about other agents.

use std::collections::BTreeMap;

use codex_wire::agent::{AgentState, AgentTool};
use codex_wire::ids::ThreadId;
use codex_wire::reasoning::ReasoningEffort;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ItemId, Status};

/// A call about other agents.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentCall {
    /// Its name: the id of the model's call.
    pub id: ItemId,
    pub tool: AgentTool,
    pub status: Status,
    /// The thread that calls.
    pub sender: ThreadId,
    /// The threads of the other agents.
    pub receivers: Vec<ThreadId>,
    pub prompt: Option<String>,
    /// The model and the effort of a new agent.
    pub model: Option<String>,
    pub effort: Option<ReasoningEffort>,
    /// The agents as they were at the end of the call.
    pub agents: Vec<CalledAgent>,
}

/// An agent at the end of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalledAgent {
    #[serde(rename = "thread_id")]
    pub thread: ThreadId,
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "agent_nickname")]
    pub nickname: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "agent_role")]
    pub role: Option<String>,
    pub status: AgentState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl AgentCall {
    pub(super) fn begun(&self) -> Self {
        let is_new = self.tool == AgentTool::SpawnAgent;
        let receivers = if is_new { Vec::new() } else { self.receivers.clone() };
        Self { status: Status::Running, receivers, agents: Vec::new(), ..self.clone() }
    }

    pub(super) fn title(&self) -> String {
        let verb = match self.tool {
            AgentTool::SpawnAgent => "Started agent",
            AgentTool::Wait => "Waited for agents",
            AgentTool::SendInput | AgentTool::SendMessage | AgentTool::FollowupTask => "Sent message to agent",
            AgentTool::CloseAgent => "Closed agent",
            AgentTool::ResumeAgent => "Resumed agent",
            AgentTool::InterruptAgent => "Interrupted agent",
            AgentTool::ListAgents => "Listed agents",
        };
        let names: Vec<&str> = self.agents.iter().filter_map(|agent| agent.nickname.as_deref()).collect();
        if names.is_empty() { verb.to_owned() } else { format!("{verb} {}", names.join(", ")) }
    }

    pub(super) fn weight(&self) -> usize {
        let messages = self.agents.iter().filter_map(|agent| agent.message.as_ref()).map(String::len);
        self.prompt.as_ref().map_or(0, String::len) + messages.sum::<usize>()
    }

    pub(super) fn stored_form(&self) -> StoredForm<'_> {
        StoredForm {
            id: self.id.as_str(),
            tool: self.tool,
            status: self.status.word(),
            sender_thread_id: self.sender,
            receiver_thread_ids: &self.receivers,
            prompt: self.prompt.as_deref(),
            model: self.model.as_deref(),
            reasoning_effort: self.effort.as_ref(),
            receiver_agents: &self.agents,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct StoredForm<'a> {
    id: &'a str,
    tool: AgentTool,
    status: &'static str,
    sender_thread_id: ThreadId,
    receiver_thread_ids: &'a [ThreadId],
    prompt: Option<&'a str>,
    model: Option<&'a str>,
    reasoning_effort: Option<&'a ReasoningEffort>,
    receiver_agents: &'a [CalledAgent],
}

#[derive(Deserialize)]
pub struct Stored {
    id: String,
    tool: AgentTool,
    #[serde(default)]
    status: String,
    #[serde(default = "ThreadId::unknown")]
    sender_thread_id: ThreadId,
    #[serde(default)]
    receiver_thread_ids: Vec<ThreadId>,
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    reasoning_effort: Option<ReasoningEffort>,
    #[serde(default)]
    receiver_agents: Vec<StoredAgent>,
    /// The agents as other releases store them.
    #[serde(default)]
    agents_states: BTreeMap<ThreadId, Value>,
}

/// An agent in a file. Those of other releases tell less.
#[derive(Deserialize)]
struct StoredAgent {
    thread_id: ThreadId,
    #[serde(default)]
    agent_nickname: Option<String>,
    #[serde(default)]
    agent_role: Option<String>,
    #[serde(default)]
    status: Option<AgentState>,
    #[serde(default)]
    message: Option<String>,
}

/// A status as other releases store it: a word, or a word with a message.
fn state_of(stored: &Value) -> Option<(AgentState, Option<String>)> {
    match stored {
        Value::String(word) => Some((word.parse().ok()?, None)),
        Value::Object(members) => {
            let (word, message) = members.iter().next()?;
            Some((word.parse().ok()?, message.as_str().map(str::to_owned)))
        }
        _ => None,
    }
}

impl From<Stored> for AgentCall {
    fn from(stored: Stored) -> Self {
        let Stored { receiver_agents, mut agents_states, .. } = stored;
        let mut agents: Vec<CalledAgent> = Vec::new();
        for agent in receiver_agents {
            let known = agents_states.remove(&agent.thread_id).as_ref().and_then(state_of);
            let (status, message) = known.unwrap_or((AgentState::NotFound, None));
            agents.push(CalledAgent {
                thread: agent.thread_id,
                nickname: agent.agent_nickname,
                role: agent.agent_role,
                status: agent.status.unwrap_or(status),
                message: agent.message.or(message),
            });
        }
        for (thread, stored) in agents_states {
            let Some((status, message)) = state_of(&stored) else { continue };
            agents.push(CalledAgent { thread, nickname: None, role: None, status, message });
        }
        Self {
            id: ItemId::new(stored.id),
            tool: stored.tool,
            status: Status::of_ended(&stored.status),
            sender: stored.sender_thread_id,
            receivers: stored.receiver_thread_ids,
            prompt: stored.prompt,
            model: stored.model,
            effort: stored.reasoning_effort,
            agents,
        }
    }
}
