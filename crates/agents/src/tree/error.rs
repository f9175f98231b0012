//! The errors of calls, in the words that the model is told.

use codex_wire::agent::AgentId;

use super::agent::{MOST_BYTES, MOST_MESSAGES};
use super::paths::NAME_CHARS;
use super::request::{LABEL_CHARS, LEAST_INTERVAL, LEAST_TIMEOUT, MOST_TIMEOUT};

/// The reason why a call did nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    #[error("agent_id {0} not found; refresh subagent_list")]
    NotFound(AgentId),
    #[error("agent_id {0} is no longer active; refresh subagent_list")]
    Gone(AgentId),
    #[error("agent_id {0} is not below you; only your own subagents and the agents above you can be addressed")]
    Foreign(AgentId),
    #[error("there is no agent {0}; list_agents shows those that there are")]
    NoSuchPath(String),
    #[error("agent {0} is neither below nor above you; only those can be addressed")]
    ForeignPath(String),
    #[error("{0} is not a path of an agent; paths look like /root/tests or, below you, tests")]
    BadPath(String),
    #[error(
        "`task_name` has to consist of 1 to {NAME_CHARS} lower-case letters, digits and underscores, and not be `root`"
    )]
    BadName,
    #[error("there is already an agent {0}; choose another `task_name`, or send it a task with followup_task")]
    NameTaken(String),
    #[error("an agent cannot send a message to itself")]
    ToItself,
    #[error("the root agent cannot be interrupted; send the message without `interrupt`")]
    InterruptsRoot,
    #[error("an agent cannot interrupt the agents above it; send the message without `interrupt`")]
    InterruptsAbove,
    #[error("the prompt must not be empty")]
    EmptyPrompt,
    #[error("a message needs a `prompt`, unless `interrupt` is true")]
    NothingToSay,
    #[error("the prompt has {0} bytes; at most {MOST_BYTES} are allowed")]
    LongPrompt(usize),
    #[error("the label has {0} characters; at most {LABEL_CHARS} are allowed")]
    LongLabel(usize),
    #[error("subagent limit reached: at most {0} active subagents per session; wait for one, or cancel one")]
    NoSlot(usize),
    #[error("subagents may be nested {0} deep at most; do this work yourself")]
    TooDeep(u32),
    #[error(
        "the inbox of agent_id {0} is full ({MOST_MESSAGES} messages or {MOST_BYTES} bytes); wait until it has read some"
    )]
    Full(AgentId),
    #[error("no active subagents to await; start one with subagent_spawn first")]
    NobodyToAwait,
    #[error("timeout_s must be at least {LEAST_TIMEOUT} seconds; 0 or nothing waits {MOST_TIMEOUT} seconds")]
    ShortTimeout,
    #[error("timeout_s must be at most {MOST_TIMEOUT} seconds")]
    LongTimeout,
    #[error("interval_s must be at least {LEAST_INTERVAL} seconds")]
    ShortInterval,
    #[error("pass either `agent_ids` with at least one id, or `all: true`")]
    NothingToPrune,
    #[error("the session is ending; no subagent can be started any more")]
    Closing,
    #[error("subagent failed to start: {0}")]
    Launch(String),
    /// A request that was refused before it reached the tree.
    #[error("{0}")]
    Refused(String),
}
