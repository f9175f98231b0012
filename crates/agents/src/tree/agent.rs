//! One agent of a tree.

use codex_log::agents::{AgentEvent, Mail};
use codex_wire::agent::{AgentId, SubagentCompletion, SubagentOrigin, SubagentStatus, SubagentSummary};
use codex_wire::ids::ThreadId;

use super::CallNumber;

/// The number of messages that may wait for an agent.
pub(super) const MOST_MESSAGES: usize = 256;
/// The number of bytes of messages that may wait for an agent.
pub(super) const MOST_BYTES: usize = 1024 * 1024;
/// The path of the root.
pub(super) const ROOT_PATH: &str = "/root";
/// The length of a summary.
const SUMMARY_CHARS: usize = 80;

/// The state of an agent's thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It does not run.
    Unloaded,
    /// It is being started.
    Launching,
    /// It runs, without a turn.
    Resting,
    /// It may begin a turn.
    Waking,
    /// A turn runs.
    Turn,
    /// Its turn is being stopped, to make way for other mail.
    Interrupting,
    /// Its turn is being stopped, and its task is over already.
    Canceling,
}

/// A turn that ran when the program ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum CutOff {
    /// There is none.
    #[default]
    None,
    /// It is lost, and the parent was not told yet.
    Lost,
    /// The thread is started to continue it.
    Continued,
}

/// One agent.
#[derive(Debug, Clone)]
pub struct Agent {
    pub summary: SubagentSummary,
    /// Its path in the tree: the names of tasks, or numbers where there are none.
    pub path: String,
    /// The number of levels below the root.
    pub depth: u32,
    pub phase: Phase,
    /// The number of items of its parent's conversation that it began with.
    pub inherited: usize,
    /// Mail that it has not read, in the order of arrival.
    pub inbox: Vec<Mail>,
    /// The result of its last task, unless it has a new one.
    pub completion: Option<SubagentCompletion>,
    /// The reason for a cancellation.
    pub reason: Option<String>,
    /// The call that waits for its thread to start.
    pub(super) launch_call: Option<CallNumber>,
    /// Whether its thread has never started.
    pub(super) is_new: bool,
    /// Whether its thread has ended before it was told that it has started.
    pub(super) is_over_early: bool,
    /// Its turn that ran when the program ended.
    pub(super) cut_off: CutOff,
    /// The events for its log that have happened while it was not loaded.
    pub(super) deferred: Vec<AgentEvent>,
}

impl Agent {
    /// The agent that the user talks to.
    pub(super) fn root(thread: ThreadId) -> Self {
        let summary = SubagentSummary {
            agent_id: AgentId::ROOT,
            parent_agent_id: None,
            session_id: thread,
            parent_session_id: None,
            origin: SubagentOrigin::Spawn,
            status: SubagentStatus::Ready,
            label: None,
            summary: None,
            reasoning_header: None,
            started_at_ms: 0,
            pending_messages: 0,
            pending_interrupts: 0,
            agent_path: None,
            agent_role: None,
        };
        Self::of(summary, ROOT_PATH.to_owned(), 0, Phase::Resting)
    }

    pub(super) fn of(summary: SubagentSummary, path: String, depth: u32, phase: Phase) -> Self {
        Self {
            summary,
            path,
            depth,
            phase,
            inherited: 0,
            inbox: Vec::new(),
            completion: None,
            reason: None,
            launch_call: None,
            is_new: phase == Phase::Launching,
            is_over_early: false,
            cut_off: CutOff::None,
            deferred: Vec::new(),
        }
    }

    #[must_use]
    pub fn id(&self) -> AgentId {
        self.summary.agent_id
    }

    #[must_use]
    pub fn thread(&self) -> ThreadId {
        self.summary.session_id
    }

    #[must_use]
    pub fn status(&self) -> &SubagentStatus {
        &self.summary.status
    }

    /// Whether its task is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.summary.status.is_terminal()
    }

    /// Whether its thread runs.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        !matches!(self.phase, Phase::Unloaded | Phase::Launching)
    }

    /// Whether a turn runs or is about to.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self.phase, Phase::Waking | Phase::Turn | Phase::Interrupting | Phase::Canceling)
    }

    /// Counts the mail that waits, without results of children.
    pub(super) fn count(&mut self) {
        let messages = self.inbox.iter().filter(|mail| mail.completion.is_none());
        let (interrupts, others): (Vec<_>, Vec<_>) = messages.partition(|mail| mail.message.interrupt);
        let (interrupts, others) = (interrupts.len(), others.len());
        (self.summary.pending_interrupts, self.summary.pending_messages) = (interrupts, others);
    }

    /// Whether a message of this size fits into the inbox. Results of children always do: there are few of them.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let messages = self.inbox.iter().filter(|mail| mail.completion.is_none());
        let (count, total) = messages.fold((0, 0), |(count, total), mail| (count + 1, total + mail.bytes()));
        count < MOST_MESSAGES && total + bytes <= MOST_BYTES
    }
}

/// The beginning of a prompt on one line.
#[must_use]
pub fn summarized(prompt: &str) -> Option<String> {
    // A prompt may be large, and only its beginning matters.
    let mut line = String::new();
    for word in prompt.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.chars().nth(SUMMARY_CHARS).is_some() {
            let cut = line.char_indices().nth(SUMMARY_CHARS).map_or(line.len(), |(at, _)| at);
            line.truncate(cut);
            line.push('…');
            break;
        }
    }
    (!line.is_empty()).then_some(line)
}

/// A label on one line; none if nothing is left.
pub(super) fn trimmed_label(label: &str) -> Option<String> {
    let label = label.split_whitespace().collect::<Vec<_>>().join(" ");
    (!label.is_empty()).then_some(label)
}
