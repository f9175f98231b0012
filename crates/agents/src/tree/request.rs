//! The calls of agents, and the replies to them.

use codex_log::agents::Mail;
use codex_wire::agent::{AgentId, SubagentCompletion, SubagentOrigin};
use codex_wire::ids::ThreadId;

use super::agent::Agent;

/// The longest label.
pub(super) const LABEL_CHARS: usize = 200;
/// The shortest wait that `subagent_await` accepts, in seconds.
pub(super) const LEAST_TIMEOUT: u64 = 300;
/// The longest wait, which is also the default.
pub(super) const MOST_TIMEOUT: u64 = 1800;
/// The shortest interval of a watchdog, in seconds.
pub(super) const LEAST_INTERVAL: u64 = 30;

/// A call.
#[derive(Debug, Clone)]
pub enum Request {
    /// Start a child.
    Spawn(SpawnRequest),
    /// Look for an agent by its path or its thread.
    Find(String),
    Send(SendRequest),
    /// List the children of the caller, or everything below it.
    List {
        all: bool,
    },
    /// List everything below the caller, or below a path.
    ListBelow(Option<String>),
    Await(AwaitRequest),
    /// Look at an agent.
    Look(AgentId),
    Cancel {
        agent: AgentId,
        reason: Option<String>,
    },
    Prune(PruneRequest),
    /// Cancel an agent and everything below it, and end their threads.
    Close(AgentId),
    /// Cancel and delete an agent and everything below it.
    Delete(AgentId),
    /// Start the thread of an agent again.
    Reopen(AgentId),
    Watch {
        agent: AgentId,
        interval_s: u64,
        message: Option<String>,
        is_canceled: bool,
    },
}

/// A new agent.
#[derive(Debug, Clone)]
pub struct SpawnRequest {
    /// A fresh name for its thread.
    pub thread: ThreadId,
    pub origin: SubagentOrigin,
    pub prompt: Option<String>,
    pub label: Option<String>,
    /// The last part of its path, with tools that address agents by paths.
    pub task: Option<String>,
    pub role: Option<String>,
}

/// A message to another agent.
#[derive(Debug, Clone)]
pub struct SendRequest {
    pub agent: AgentId,
    pub prompt: Option<String>,
    pub label: Option<String>,
    pub interrupt: bool,
    /// Whether an agent without work is left so until something else wakes it.
    pub is_quiet: bool,
}

/// A wait for other agents.
#[derive(Debug, Clone)]
pub struct AwaitRequest {
    /// The agents; all children of the caller if none is named.
    pub agents: Vec<AgentId>,
    /// Until when, in milliseconds from now.
    pub timeout_ms: u64,
    /// The event that ends the wait.
    pub target: Target,
}

/// The event that ends a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A message or the end of a task.
    MailOrEnd,
    /// The end of a task.
    End,
    /// Any mail for the caller.
    AnyMail,
}

impl AwaitRequest {
    /// The wait that `subagent_await` asks for.
    ///
    /// # Errors
    /// When it is too short or too long.
    pub fn seconds(agents: Vec<AgentId>, timeout_s: Option<u64>) -> Result<Self, super::AgentError> {
        let seconds = match timeout_s {
            None | Some(0) => MOST_TIMEOUT,
            Some(short) if short < LEAST_TIMEOUT => return Err(super::AgentError::ShortTimeout),
            Some(long) if long > MOST_TIMEOUT => return Err(super::AgentError::LongTimeout),
            Some(seconds) => seconds,
        };
        Ok(Self { agents, timeout_ms: seconds * 1000, target: Target::MailOrEnd })
    }
}

/// The agents to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PruneRequest {
    /// These; all children of the caller if there are none.
    pub agents: Option<Vec<AgentId>>,
    /// Only agents whose task is over.
    pub completed_only: bool,
}

/// The reply to a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// An agent as it is now.
    Agent(Box<AgentView>),
    /// A message is on its way to the root.
    ToRoot {
        thread: ThreadId,
        label: Option<String>,
        summary: Option<String>,
    },
    Agents(Vec<AgentView>),
    Awaited(Box<Awaited>),
    /// The agents that were deleted, and the call.
    Pruned {
        request: PruneRequest,
        pruned: Pruned,
    },
    Watch {
        agent: AgentId,
        interval_s: u64,
        message: Option<String>,
        action: WatchAction,
    },
}

/// An agent as others see it.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentView {
    pub summary: codex_wire::agent::SubagentSummary,
    /// Its path in the tree.
    pub path: String,
    pub depth: u32,
    pub inherited: usize,
    pub completion: Option<SubagentCompletion>,
    pub reason: Option<String>,
}

impl From<&Agent> for AgentView {
    fn from(agent: &Agent) -> Self {
        Self {
            summary: agent.summary.clone(),
            path: agent.path.clone(),
            depth: agent.depth,
            inherited: agent.inherited,
            completion: agent.completion.clone(),
            reason: agent.reason.clone(),
        }
    }
}

/// The end of a wait.
#[derive(Debug, Clone, PartialEq)]
pub struct Awaited {
    /// The agent that the wait is about; none if it was for several and timed out.
    pub agent: Option<AgentView>,
    /// All agents that the wait was for.
    pub agents: Vec<AgentView>,
    pub is_timed_out: bool,
    /// Its messages, which count as read.
    pub messages: Vec<Mail>,
    /// Whether the result of its task is told.
    pub is_over: bool,
    /// Whether the user has said something, which ends a wait for any mail.
    pub is_interrupted: bool,
}

/// The deleted agents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    pub pruned: Vec<ThreadId>,
    pub skipped_active: Vec<ThreadId>,
    pub unknown: Vec<AgentId>,
}

/// The effect of a call of `subagent_watchdog`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchAction {
    Started,
    Replaced,
    Canceled,
    NotFound,
}

impl WatchAction {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Replaced => "replaced",
            Self::Canceled => "canceled",
            Self::NotFound => "not_found",
        }
    }
}
