//! The tree of agents: their identity, their status, and their pending input.

use serde::{Deserialize, Serialize};

use crate::event::TurnAbortReason;
use crate::ids::ThreadId;

/// The number of an agent in its tree, which grows and is never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct AgentId(pub u64);

impl AgentId {
    /// The agent the user talks to.
    pub const ROOT: Self = Self(0);
}

impl std::fmt::Display for AgentId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

spelled! {
    /// The origin of an agent.
    pub open enum SubagentOrigin {
        /// With an empty history.
        "spawn" => Spawn,
        /// With a copy of its parent's history.
        "fork" => Fork,
        /// By a message to an agent that had ended.
        "send_message" => SendMessage,
    }
}

spelled! {
    /// The status of an agent.
    pub open enum SubagentStatus {
        /// Registered, not started yet.
        "queued" => Queued,
        /// Working.
        "running" => Running,
        /// Started, without work.
        "ready" => Ready,
        /// Completed.
        "idle" => Idle,
        "failed" => Failed,
        "canceled" | "cancelled" => Canceled,
    }
}

impl SubagentStatus {
    /// Whether the agent stays as it is unless it is given new work.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Idle | Self::Failed | Self::Canceled)
    }
}

/// One agent as others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct SubagentSummary {
    /// The agent.
    pub agent_id: AgentId,
    /// The agent that started it.
    #[serde(default)]
    pub parent_agent_id: Option<AgentId>,
    /// Its thread.
    pub session_id: ThreadId,
    /// The thread of the agent that started it.
    #[serde(default)]
    pub parent_session_id: Option<ThreadId>,
    /// Its origin.
    pub origin: SubagentOrigin,
    /// Its status.
    pub status: SubagentStatus,
    /// The name that its parent gave it.
    #[serde(default)]
    pub label: Option<String>,
    /// The beginning of its instructions.
    #[serde(default)]
    pub summary: Option<String>,
    /// A heading for its current reasoning.
    #[serde(default)]
    pub reasoning_header: Option<String>,
    /// The start time in Unix milliseconds.
    #[serde(default)]
    pub started_at_ms: i64,
    /// The number of pending messages.
    #[serde(default)]
    pub pending_messages: usize,
    /// The number of pending interrupts.
    #[serde(default)]
    pub pending_interrupts: usize,
    /// Its path in the tree, such as `/root/tests`, with tools that address agents by paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_path: Option<String>,
    /// Its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_role: Option<String>,
}

tagged! {
    /// A change of an agent, reported on its parent's event queue.
    pub enum SubagentLifecycleEvent by "event" {
        /// It was registered.
        "created" => Created(SubagentCreated),
        /// Its status has changed.
        "status" => Status(SubagentStatusChange),
        /// The heading of its reasoning has changed.
        "reasoning_header" => ReasoningHeader(SubagentReasoningHeader),
        /// It was removed.
        "deleted" => Deleted(SubagentDeleted),
    }
}

/// The payload of [`SubagentLifecycleEvent::Created`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct SubagentCreated {
    /// The agent.
    pub subagent: SubagentSummary,
}

/// The payload of [`SubagentLifecycleEvent::Status`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct SubagentStatusChange {
    /// The agent.
    pub agent_id: AgentId,
    /// Its thread.
    pub session_id: ThreadId,
    /// Its new status.
    pub status: SubagentStatus,
}

/// The payload of [`SubagentLifecycleEvent::ReasoningHeader`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct SubagentReasoningHeader {
    /// The agent.
    pub agent_id: AgentId,
    /// Its thread.
    pub session_id: ThreadId,
    /// A heading for its current reasoning.
    pub reasoning_header: String,
}

/// The payload of [`SubagentLifecycleEvent::Deleted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct SubagentDeleted {
    /// The agent.
    pub agent_id: AgentId,
    /// Its thread.
    pub session_id: ThreadId,
}

/// The pending input of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct AgentInboxEvent {
    /// The agent.
    pub agent_id: AgentId,
    /// Its thread.
    pub session_id: ThreadId,
    /// The number of pending messages.
    pub pending_messages: usize,
    /// The number of pending interrupts.
    pub pending_interrupts: usize,
}

/// A message from one agent to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct InboxMessage {
    /// Its author.
    pub sender_agent_id: AgentId,
    /// Its recipient.
    pub recipient_agent_id: AgentId,
    /// Whether it interrupted the recipient.
    #[serde(default)]
    pub interrupt: bool,
    /// The text; an interrupt may have none.
    #[serde(default)]
    pub prompt: Option<String>,
    /// The time in Unix milliseconds.
    pub timestamp_ms: i64,
}

/// The result of an agent. The kind is the outer key and is capitalised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub enum SubagentCompletion {
    /// It completed.
    Completed {
        /// Its last message.
        #[serde(default)]
        last_message: Option<String>,
    },
    /// It was interrupted.
    Canceled {
        /// The reason.
        reason: TurnAbortReason,
    },
    /// It failed.
    Failed {
        /// The reason.
        message: String,
    },
}

spelled! {
    /// A call about other agents, as items name it.
    pub enum AgentTool {
        "spawn_agent" => SpawnAgent,
        "wait" | "wait_agent" => Wait,
        "send_input" => SendInput,
        "close_agent" => CloseAgent,
        "resume_agent" => ResumeAgent,
        "send_message" => SendMessage,
        "followup_task" => FollowupTask,
        "interrupt_agent" => InterruptAgent,
        "list_agents" => ListAgents,
    }
}

spelled! {
    /// The status of an agent, as items name it.
    pub enum AgentState {
        "pending_init" => PendingInit,
        "running" => Running,
        "interrupted" => Interrupted,
        "completed" => Completed,
        "errored" => Errored,
        "shutdown" => Shutdown,
        "not_found" => NotFound,
    }
}

spelled! {
    /// Something that happens to an agent, as items name it.
    pub enum AgentActivityKind {
        "started" => Started,
        /// A message was sent to it.
        "interacted" => Interacted,
        "interrupted" => Interrupted,
        "completed" => Completed,
    }
}

spelled! {
    /// The generation of the tools that agents have for each other.
    pub enum MultiAgentVersion {
        "disabled" => Disabled,
        /// The namespace `multi_agent_v1`.
        "v1" => V1,
        /// Tools that address agents by paths.
        "v2" => V2,
    }
}
