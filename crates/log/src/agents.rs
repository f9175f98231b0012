//! The agents of a thread: the events about them, and the state that these events lead to.
//!
//! The log of a thread tells about its direct children, the mail that it has received from them or sent to them, and the
//! watchdogs that it has set. The tree of a root is rebuilt from the logs of its threads.

use std::collections::BTreeSet;

use codex_wire::agent::{
    AgentActivityKind, AgentId, AgentInboxEvent, AgentState, AgentTool, InboxMessage, SubagentCompletion,
    SubagentLifecycleEvent, SubagentSummary,
};
use codex_wire::event::TurnAbortReason;
use codex_wire::ids::ThreadId;
use serde::{Deserialize, Serialize};

use crate::item::CalledAgent;
use crate::{Item, Status};

/// The number of read messages that a thread remembers. The thread that sent the mail knows soon that it was read.
const READ_KEPT: usize = 1024;
/// The number of children of other releases that a thread knows.
const MOST_UNNUMBERED: usize = 1024;

/// Something that has happened to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum AgentEvent {
    /// A child was created, has another status, has a header, or is gone.
    #[serde(rename = "subagent_lifecycle")]
    Lifecycle(SubagentLifecycleEvent),
    /// The amount of mail that waits for an agent has changed.
    #[serde(rename = "agent_inbox")]
    Inbox(InboxChange),
    /// Mail was accepted.
    #[serde(rename = "agent_mail")]
    Mail(Mail),
    /// The agent of this thread has read mail.
    #[serde(rename = "agent_mail_read")]
    Read(MailRead),
    /// The task of a child is over.
    #[serde(rename = "agent_result")]
    Result(TaskResult),
    /// A watchdog was set, replaced or removed.
    #[serde(rename = "agent_watchdog")]
    Watchdog(WatchdogChange),
    /// A child has begun with a part of another conversation.
    #[serde(rename = "agent_history")]
    Inherited(Inherited),
    /// The numbers that were given out so far, so that none is given out twice.
    #[serde(rename = "agent_numbers")]
    Numbers(Numbers),
    /// All of it at once, for readers that begin here.
    #[serde(rename = "agent_tree")]
    All(Box<AgentsState>),
}

/// The amount of mail that waits for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxChange {
    #[serde(flatten)]
    pub inbox: AgentInboxEvent,
    /// The mail that it has read since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<u64>,
}

/// A message to an agent, or the result of a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    /// Its number within the tree.
    pub id: u64,
    #[serde(flatten)]
    pub message: InboxMessage,
    /// The result of the sender, if its task is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<SubagentCompletion>,
    /// Whether it waits until its recipient has something else to do.
    #[serde(default, rename = "quiet", skip_serializing_if = "std::ops::Not::not")]
    pub is_quiet: bool,
}

impl Mail {
    /// The number of bytes of its text.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.message.prompt.as_ref().map_or(0, String::len)
    }
}

/// The payload of [`AgentEvent::Read`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailRead {
    pub mail: Vec<u64>,
}

/// The payload of [`AgentEvent::Result`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskResult {
    pub agent_id: AgentId,
    pub session_id: ThreadId,
    pub completion: SubagentCompletion,
    /// The reason for a cancellation that the caller gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The payload of [`AgentEvent::Inherited`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inherited {
    pub agent_id: AgentId,
    pub session_id: ThreadId,
    /// The number of items of the conversation of its parent that it began with.
    #[serde(rename = "initial_message_count")]
    pub messages: usize,
}

/// A watchdog: a message that is sent again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchdogChange {
    /// The agent that gets the message.
    pub agent_id: AgentId,
    pub interval_s: u64,
    /// The message; none if the watchdog was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The numbers that are given out next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Numbers {
    pub next_agent_id: u64,
    pub next_mail: u64,
}

impl Numbers {
    /// The higher ones of both.
    #[must_use]
    pub fn or_higher(self, other: Self) -> Self {
        Self {
            next_agent_id: self.next_agent_id.max(other.next_agent_id),
            next_mail: self.next_mail.max(other.next_mail),
        }
    }
}

/// A child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildState {
    #[serde(flatten)]
    pub summary: SubagentSummary,
    /// The result of its last task, unless it has a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<SubagentCompletion>,
    /// The number of items of the conversation of its parent that it began with.
    #[serde(default, rename = "initial_message_count", skip_serializing_if = "is_zero")]
    pub inherited: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A child that another release has started. It has no number yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnnumberedChild {
    #[serde(rename = "thread_id")]
    pub thread: ThreadId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nickname: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Its path in the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The result of its task, as far as its parent was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<SubagentCompletion>,
}

/// The agents of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentsState {
    /// The direct children, oldest first.
    pub children: Vec<ChildState>,
    /// Children of other releases, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unnumbered: Vec<UnnumberedChild>,
    /// Mail that was accepted and of which this log does not tell that it was read, oldest first.
    pub mail: Vec<Mail>,
    /// The numbers of the mail that the agent of this thread has read.
    pub read: BTreeSet<u64>,
    /// Agents further below that were deleted while their parent was not loaded.
    pub gone: BTreeSet<AgentId>,
    /// The watchdogs that the agent of this thread has set.
    pub watchdogs: Vec<WatchdogChange>,
    pub numbers: Numbers,
}

impl AgentsState {
    /// Whether nothing has ever happened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Goes on by one event.
    pub fn apply(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Lifecycle(event) => self.lifecycle(event),
            AgentEvent::Inbox(InboxChange { inbox, read }) => {
                self.mail.retain(|mail| !read.contains(&mail.id));
                if let Some(child) = self.child_mut(inbox.agent_id) {
                    child.summary.pending_messages = inbox.pending_messages;
                    child.summary.pending_interrupts = inbox.pending_interrupts;
                }
            }
            AgentEvent::Mail(mail) => {
                self.numbers.next_mail = self.numbers.next_mail.max(mail.id + 1);
                // Mail of an agent that was deleted is told again.
                let is_known = self.read.contains(&mail.id) || self.mail.iter().any(|known| known.id == mail.id);
                self.mail.extend((!is_known).then(|| mail.clone()));
            }
            AgentEvent::Read(MailRead { mail: read }) => {
                // The log of the sender may not tell of mail that was read just before the program ended.
                let after = read.iter().max().map_or(0, |last| last + 1);
                self.numbers.next_mail = self.numbers.next_mail.max(after);
                self.mail.retain(|mail| !read.contains(&mail.id));
                self.read.extend(read);
                while self.read.len() > READ_KEPT {
                    self.read.pop_first();
                }
            }
            AgentEvent::Result(TaskResult { agent_id, completion, .. }) => {
                if let Some(child) = self.child_mut(*agent_id) {
                    child.completion = Some(completion.clone());
                }
            }
            AgentEvent::Watchdog(change) => {
                self.watchdogs.retain(|known| known.agent_id != change.agent_id);
                self.watchdogs.extend(change.message.is_some().then(|| change.clone()));
            }
            AgentEvent::Inherited(Inherited { agent_id, messages, .. }) => {
                if let Some(child) = self.child_mut(*agent_id) {
                    child.inherited = *messages;
                }
            }
            AgentEvent::Numbers(numbers) => self.numbers = self.numbers.or_higher(*numbers),
            AgentEvent::All(all) => self.clone_from(all),
        }
    }

    /// Takes note of an item about agents. Items of other releases are all that is known of their children; those of
    /// this one are told by events before.
    pub(crate) fn item_completed(&mut self, item: &Item) {
        if let Some(call) = item.agent_call().filter(|call| call.status == Status::Completed) {
            for agent in &call.agents {
                if call.tool == AgentTool::SpawnAgent
                    && let Some(child) = self.new_child(agent.thread)
                {
                    child.nickname.clone_from(&agent.nickname);
                    child.role.clone_from(&agent.role);
                    child.prompt.clone_from(&call.prompt);
                } else if let Some(child) = self.unnumbered.iter_mut().find(|child| child.thread == agent.thread) {
                    child.completion = completion_of(agent);
                }
            }
        }
        if let Some(activity) = item.agent_activity() {
            if activity.kind == AgentActivityKind::Started {
                self.new_child(activity.thread);
            }
            if let Some(child) = self.unnumbered.iter_mut().find(|child| child.thread == activity.thread) {
                child.path = Some(activity.path.clone()).filter(|path| !path.is_empty());
                child.completion = match activity.kind {
                    AgentActivityKind::Started | AgentActivityKind::Interacted => None,
                    AgentActivityKind::Completed => Some(SubagentCompletion::Completed { last_message: None }),
                    AgentActivityKind::Interrupted => {
                        Some(SubagentCompletion::Canceled { reason: TurnAbortReason::Interrupted })
                    }
                };
            }
        }
    }

    /// Adds a child of another release, unless it is known.
    fn new_child(&mut self, thread: ThreadId) -> Option<&mut UnnumberedChild> {
        let is_known = self.children.iter().any(|child| child.summary.session_id == thread)
            || self.unnumbered.iter().any(|child| child.thread == thread);
        if is_known || self.unnumbered.len() == MOST_UNNUMBERED {
            return None;
        }
        let (nickname, role, prompt, path, completion) = (None, None, None, None, None);
        self.unnumbered.push(UnnumberedChild { thread, nickname, role, prompt, path, completion });
        self.unnumbered.last_mut()
    }

    fn lifecycle(&mut self, event: &SubagentLifecycleEvent) {
        match event {
            SubagentLifecycleEvent::Created(created) => {
                let summary = created.subagent.clone();
                self.numbers.next_agent_id = self.numbers.next_agent_id.max(summary.agent_id.0 + 1);
                self.children.retain(|child| child.summary.agent_id != summary.agent_id);
                self.unnumbered.retain(|child| child.thread != summary.session_id);
                self.children.push(ChildState { summary, completion: None, inherited: 0 });
            }
            SubagentLifecycleEvent::Status(change) => {
                if let Some(child) = self.child_mut(change.agent_id) {
                    child.summary.status = change.status.clone();
                    if !change.status.is_terminal() {
                        child.completion = None;
                    }
                }
            }
            SubagentLifecycleEvent::ReasoningHeader(change) => {
                if let Some(child) = self.child_mut(change.agent_id) {
                    child.summary.reasoning_header = Some(change.reasoning_header.clone());
                }
            }
            SubagentLifecycleEvent::Deleted(deleted) => {
                let gone = deleted.agent_id;
                if self.children.iter().all(|child| child.summary.agent_id != gone) {
                    self.gone.insert(gone);
                }
                self.children.retain(|child| child.summary.agent_id != gone);
                self.watchdogs.retain(|watchdog| watchdog.agent_id != gone);
                self.mail.retain(|mail| mail.message.recipient_agent_id != gone);
            }
            SubagentLifecycleEvent::Other(_) => {}
        }
    }

    fn child_mut(&mut self, agent: AgentId) -> Option<&mut ChildState> {
        self.children.iter_mut().find(|child| child.summary.agent_id == agent)
    }
}

/// The result of a task as a call tells it.
fn completion_of(agent: &CalledAgent) -> Option<SubagentCompletion> {
    let message = agent.message.clone();
    match agent.status {
        AgentState::Completed => Some(SubagentCompletion::Completed { last_message: message }),
        AgentState::Errored => Some(SubagentCompletion::Failed { message: message.unwrap_or_default() }),
        AgentState::Interrupted | AgentState::Shutdown => {
            Some(SubagentCompletion::Canceled { reason: TurnAbortReason::Interrupted })
        }
        AgentState::PendingInit | AgentState::Running | AgentState::NotFound => None,
    }
}

#[cfg(test)]
mod tests {
    use codex_wire::agent::{
        InboxMessage, SubagentCreated, SubagentDeleted, SubagentOrigin, SubagentStatus, SubagentStatusChange,
    };
    use serde::Serialize;

    use super::*;
    use crate::decode::{Decoder, Wanted};
    use crate::encode::{LineSink, encode};
    use crate::line::Line;
    use crate::{Body, Event, Seq, TurnId};

    #[derive(Default)]
    struct Lines(Vec<String>);

    impl LineSink for Lines {
        type Error = serde_json::Error;

        fn line<P: Serialize + ?Sized>(&mut self, _: i64, kind: &str, payload: &P) -> Result<(), Self::Error> {
            let payload = serde_json::to_string(payload)?;
            let line = format!(r#"{{"timestamp":"2026-01-02T03:04:05.006Z","type":"{kind}","payload":{payload}}}"#);
            self.0.push(line);
            Ok(())
        }
    }

    fn created(id: u64) -> AgentEvent {
        let subagent = SubagentSummary {
            agent_id: AgentId(id),
            parent_agent_id: Some(AgentId::ROOT),
            session_id: ThreadId::unknown(),
            parent_session_id: None,
            origin: SubagentOrigin::Spawn,
            status: SubagentStatus::Queued,
            label: Some("reviewer".to_owned()),
            summary: None,
            reasoning_header: None,
            started_at_ms: 5,
            pending_messages: 0,
            pending_interrupts: 0,
            agent_path: None,
            agent_role: None,
        };
        AgentEvent::Lifecycle(SubagentLifecycleEvent::Created(SubagentCreated { subagent }))
    }

    fn status(id: u64, status: SubagentStatus) -> AgentEvent {
        let change = SubagentStatusChange { agent_id: AgentId(id), session_id: ThreadId::unknown(), status };
        AgentEvent::Lifecycle(SubagentLifecycleEvent::Status(change))
    }

    fn mail(id: u64, recipient: u64) -> AgentEvent {
        let message = InboxMessage {
            sender_agent_id: AgentId::ROOT,
            recipient_agent_id: AgentId(recipient),
            interrupt: false,
            prompt: Some("look".to_owned()),
            timestamp_ms: 7,
        };
        AgentEvent::Mail(Mail { id, message, completion: None, is_quiet: false })
    }

    fn inbox(id: u64, read: Vec<u64>) -> AgentEvent {
        let inbox = AgentInboxEvent {
            agent_id: AgentId(id),
            session_id: ThreadId::unknown(),
            pending_messages: 0,
            pending_interrupts: 0,
        };
        AgentEvent::Inbox(InboxChange { inbox, read })
    }

    fn story() -> Vec<AgentEvent> {
        let completion = SubagentCompletion::Completed { last_message: Some("done".to_owned()) };
        let result = TaskResult { agent_id: AgentId(1), session_id: ThreadId::unknown(), completion, reason: None };
        let watchdog = WatchdogChange { agent_id: AgentId(1), interval_s: 30, message: Some("well?".to_owned()) };
        let deleted = SubagentDeleted { agent_id: AgentId(2), session_id: ThreadId::unknown() };
        vec![
            created(1),
            mail(4, 1),
            status(1, SubagentStatus::Running),
            inbox(1, vec![4]),
            created(2),
            mail(5, 2),
            status(1, SubagentStatus::Idle),
            AgentEvent::Result(result),
            AgentEvent::Read(MailRead { mail: vec![6] }),
            AgentEvent::Watchdog(watchdog),
            AgentEvent::Lifecycle(SubagentLifecycleEvent::Deleted(deleted)),
            AgentEvent::Numbers(Numbers { next_agent_id: 9, next_mail: 2 }),
        ]
    }

    #[test]
    fn events_survive_their_lines_and_lead_to_one_state() {
        let mut state = AgentsState::default();
        let mut lines = Lines::default();
        let mut events = story();
        for event in &events {
            state.apply(event);
        }
        events.push(AgentEvent::All(Box::new(state.clone())));
        for told in &events {
            let body = Body::Agent(std::sync::Arc::new(told.clone()));
            let turn = Some(TurnId::new("t"));
            encode(&Event { thread: ThreadId::unknown(), seq: Seq::default(), at_ms: 0, turn, body }, &mut lines)
                .unwrap();
        }
        let (mut decoder, mut read) = (Decoder::new(Wanted::AGENTS), Vec::new());
        for line in &lines.0 {
            decoder.line(&Line::parse(line).unwrap(), &mut read);
        }
        let told: Vec<AgentEvent> = read
            .iter()
            .filter_map(|event| match &event.body {
                Body::Agent(told) => Some((**told).clone()),
                _ => None,
            })
            .collect();
        assert_eq!(told, events);
        assert_eq!((state.children.len(), state.mail.len(), state.watchdogs.len()), (1, 0, 1));
        assert_eq!(state.numbers, Numbers { next_agent_id: 9, next_mail: 7 });
        assert!(state.children[0].completion.is_some() && state.read.contains(&6));
    }

    #[test]
    fn a_new_task_forgets_the_result_of_the_last_one() {
        let mut state = AgentsState::default();
        for event in story() {
            state.apply(&event);
        }
        state.apply(&status(1, SubagentStatus::Running));
        assert_eq!(state.children[0].completion, None);
    }
}
