//! The tree of agents: who they are, how they are doing, what waits for them.

use serde::{Deserialize, Serialize};

use crate::event::TurnAbortReason;
use crate::ids::ThreadId;

/// The number of an agent in its tree, counted up and never used twice.
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
    /// How an agent came to be.
    pub open enum SubagentOrigin {
        /// With an empty history.
        "spawn" => Spawn,
        /// With a copy of its parent's history.
        "fork" => Fork,
        /// By a message to an agent that was no longer there.
        "send_message" => SendMessage,
    }
}

spelled! {
    /// How an agent is doing.
    pub open enum SubagentStatus {
        /// Known, not launched yet.
        "queued" => Queued,
        /// At work.
        "running" => Running,
        /// Launched, with nothing to do.
        "ready" => Ready,
        /// Done.
        "idle" => Idle,
        "failed" => Failed,
        "canceled" | "cancelled" => Canceled,
    }
}

impl SubagentStatus {
    /// Tells whether the agent is done unless it is given new work.
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
    /// How it came to be.
    pub origin: SubagentOrigin,
    /// How it is doing.
    pub status: SubagentStatus,
    /// What its parent calls it.
    #[serde(default)]
    pub label: Option<String>,
    /// The beginning of what it was told.
    #[serde(default)]
    pub summary: Option<String>,
    /// What it says it is thinking about.
    #[serde(default)]
    pub reasoning_header: Option<String>,
    /// When it was started, in Unix milliseconds.
    #[serde(default)]
    pub started_at_ms: i64,
    /// How many messages wait for it.
    #[serde(default)]
    pub pending_messages: usize,
    /// How many interrupts wait for it.
    #[serde(default)]
    pub pending_interrupts: usize,
}

tagged! {
    /// What happened to an agent, told on its parent's event queue.
    pub enum SubagentLifecycleEvent by "event" {
        /// It was registered.
        "created" => Created(SubagentCreated),
        /// It is doing something else.
        "status" => Status(SubagentStatusChange),
        /// It named what it is thinking about.
        "reasoning_header" => ReasoningHeader(SubagentReasoningHeader),
        /// It is gone.
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
    /// How it is doing now.
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
    /// What it is thinking about.
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

/// How much waits for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct AgentInboxEvent {
    /// The agent.
    pub agent_id: AgentId,
    /// Its thread.
    pub session_id: ThreadId,
    /// How many messages wait.
    pub pending_messages: usize,
    /// How many interrupts wait.
    pub pending_interrupts: usize,
}

/// A message from one agent to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct InboxMessage {
    /// Who wrote it.
    pub sender_agent_id: AgentId,
    /// Whom it is for.
    pub recipient_agent_id: AgentId,
    /// Whether it broke into what the other was doing.
    #[serde(default)]
    pub interrupt: bool,
    /// What it says; an interrupt may say nothing.
    #[serde(default)]
    pub prompt: Option<String>,
    /// When it was written, in Unix milliseconds.
    pub timestamp_ms: i64,
}

/// How an agent's work ended. The kind stands around the rest and is capitalised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub enum SubagentCompletion {
    /// It came to an end.
    Completed {
        /// What it said last.
        #[serde(default)]
        last_message: Option<String>,
    },
    /// It was stopped.
    Canceled {
        /// Why.
        reason: TurnAbortReason,
    },
    /// It broke.
    Failed {
        /// Why.
        message: String,
    },
}
