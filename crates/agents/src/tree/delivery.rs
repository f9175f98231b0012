//! Mail: its way into an inbox, and the turns that it leads to.

use codex_log::agents::{AgentEvent, InboxChange, Mail};
use codex_wire::agent::{
    AgentId, AgentInboxEvent, InboxMessage, SubagentCompletion, SubagentLifecycleEvent, SubagentReasoningHeader,
    SubagentStatus, SubagentStatusChange,
};

use super::agent::{Agent, CutOff, Phase};
use super::{Effect, Launch, Tree};

/// The number of results of children that may wait for an agent. With more, the older ones of the same child make way.
const MOST_RESULTS: usize = 256;
/// The number of bytes of a result that are passed on.
const RESULT_BYTES: usize = 128 * 1024;

impl Tree {
    /// The agent whose log tells about something that an agent has done: its own if it is loaded.
    pub(super) fn log_of(&self, agent: AgentId) -> AgentId {
        let mut at = agent;
        while at != AgentId::ROOT && self.agents.get(&at).is_none_or(|agent| !agent.is_loaded()) {
            at = self.parent_of(at);
        }
        at
    }

    /// Tells the log of an agent's parent about it. If the parent is not loaded, it is told when it is.
    pub(super) fn tell_parent(&mut self, agent: AgentId, event: AgentEvent) {
        let parent = self.parent_of(agent);
        match self.get(parent) {
            Some(parent) if parent.phase == Phase::Unloaded => parent.deferred.push(event),
            _ => self.tell(parent, event),
        }
    }

    /// Sends a message. Nothing is checked.
    pub(super) fn post(
        &mut self,
        sender: AgentId,
        recipient: AgentId,
        prompt: Option<String>,
        interrupt: bool,
        is_quiet: bool,
    ) {
        let message = InboxMessage {
            sender_agent_id: sender,
            recipient_agent_id: recipient,
            interrupt,
            prompt,
            timestamp_ms: self.now_ms,
        };
        let is_first = self.agents.get(&recipient).is_some_and(|agent| agent.phase == Phase::Launching);
        self.put(sender, message, None, is_quiet);
        if !is_first {
            self.tell_inbox(recipient, Vec::new());
        }
        if !is_quiet {
            self.give_work(recipient);
        }
    }

    /// Sends the result of an agent's task to its parent.
    pub(super) fn post_result(&mut self, agent: AgentId, completion: SubagentCompletion, reason: Option<&str>) {
        let parent = self.parent_of(agent);
        let Some(recipient) = self.get(parent) else { return };
        let is_canceled = *recipient.status() == SubagentStatus::Canceled;
        let results = recipient.inbox.iter().filter(|mail| mail.completion.is_some()).count();
        if results >= MOST_RESULTS {
            let of_agent = |mail: &Mail| mail.completion.is_some() && mail.message.sender_agent_id == agent;
            if let Some(place) = recipient.inbox.iter().position(of_agent) {
                let old = recipient.inbox.remove(place).id;
                self.effect(Effect::Withdraw { agent: parent, mail: vec![old] });
                self.tell_inbox(parent, vec![old]);
            }
        }
        let message = InboxMessage {
            sender_agent_id: agent,
            recipient_agent_id: parent,
            interrupt: false,
            prompt: Some(result_text(&completion, reason)),
            timestamp_ms: self.now_ms,
        };
        self.put(parent, message, Some(completion), false);
        if !is_canceled {
            self.give_work(parent);
        }
    }

    fn put(&mut self, log: AgentId, message: InboxMessage, completion: Option<SubagentCompletion>, is_quiet: bool) {
        let recipient = message.recipient_agent_id;
        let mail = Mail { id: self.numbers.next_mail, message, completion, is_quiet };
        self.numbers.next_mail += 1;
        let log = self.log_of(log);
        self.tell(log, AgentEvent::Mail(mail.clone()));
        let Some(agent) = self.get(recipient) else { return };
        agent.inbox.push(mail.clone());
        agent.count();
        if agent.is_loaded() {
            self.effect(Effect::Deliver { agent: recipient, mail });
        }
    }

    /// Sees to it that an agent reads its mail: it is loaded and woken if need be.
    fn give_work(&mut self, agent: AgentId) {
        if agent == AgentId::ROOT {
            self.wakes_root = true;
            return;
        }
        let Some(found) = self.get(agent) else { return };
        let is_new = found.is_over();
        if is_new {
            found.completion = None;
            found.reason = None;
            self.set_status(agent, SubagentStatus::Queued);
        }
        match self.agents.get(&agent).map(|agent| agent.phase) {
            Some(Phase::Unloaded) => self.load(agent),
            Some(Phase::Resting) => self.enqueue(agent),
            // It reads its mail in its turn, or is woken after it.
            _ => {}
        }
    }

    /// Starts the thread of an agent, and those of all agents above it.
    pub(super) fn load(&mut self, agent: AgentId) {
        let mut way = vec![agent];
        while let Some(&last) = way.last()
            && last != AgentId::ROOT
        {
            way.push(self.parent_of(last));
        }
        for at in way.into_iter().rev() {
            if let Some(found) = self.get(at).filter(|found| found.phase == Phase::Unloaded) {
                found.phase = Phase::Launching;
                self.effect(Effect::Launch { agent: at, how: Launch::Resume });
                self.tell_deferred(at);
            }
        }
    }

    /// Tells the log of an agent what has happened to its children while it was not loaded.
    fn tell_deferred(&mut self, agent: AgentId) {
        let deferred = self.get(agent).map(|agent| std::mem::take(&mut agent.deferred)).unwrap_or_default();
        for event in deferred {
            self.tell(agent, event);
        }
        let lost: Vec<AgentId> = self
            .children()
            .filter(|child| child.summary.parent_agent_id == Some(agent) && child.cut_off == CutOff::Lost)
            .map(Agent::id)
            .collect();
        for child in lost {
            self.tell_of_lost(child);
        }
    }

    pub(super) fn enqueue(&mut self, agent: AgentId) {
        if !self.queue.contains(&agent) {
            self.queue.push_back(agent);
        }
    }

    /// Wakes the root, and as many agents of the queue as may run.
    pub(super) fn wake_next(&mut self) {
        if self.is_closing {
            return;
        }
        let wakes_root = self.limits.wakes_root && self.wakes_root;
        if let Some(root) = self.get(AgentId::ROOT)
            && wakes_root
            && root.phase == Phase::Resting
            && !root.inbox.is_empty()
        {
            root.phase = Phase::Waking;
            self.wakes_root = false;
            self.effect(Effect::Wake { agent: AgentId::ROOT });
        }
        while !self.is_full()
            && let Some(next) = self.queue.pop_front()
        {
            let Some(agent) = self.get(next) else { continue };
            if agent.phase != Phase::Resting || agent.is_over() {
                continue;
            }
            if agent.inbox.is_empty() {
                // It has read its mail, or a call has returned it, while it waited for its turn.
                if *agent.status() == SubagentStatus::Queued {
                    self.set_status(next, SubagentStatus::Ready);
                }
                continue;
            }
            agent.phase = Phase::Waking;
            self.set_status(next, SubagentStatus::Running);
            self.effect(Effect::Wake { agent: next });
        }
    }

    /// Whether no other turn may run.
    pub(super) fn is_full(&self) -> bool {
        self.turns() >= self.limits.turns
    }

    /// The number of running turns that count.
    fn turns(&self) -> usize {
        self.children().filter(|agent| agent.is_busy() && !self.is_waiting(agent.id())).count()
    }

    pub(super) fn read(&mut self, agent: AgentId, read: &[u64]) {
        let Some(found) = self.get(agent) else { return };
        let senders: Vec<AgentId> = found
            .inbox
            .iter()
            .filter(|mail| read.contains(&mail.id) && mail.completion.is_none())
            .map(|mail| mail.message.sender_agent_id)
            .collect();
        let before = found.inbox.len();
        found.inbox.retain(|mail| !read.contains(&mail.id));
        if found.inbox.len() == before {
            return;
        }
        found.count();
        let is_idle = found.inbox.is_empty() && found.phase == Phase::Resting;
        let is_ready = is_idle && *found.status() == SubagentStatus::Queued && agent != AgentId::ROOT;
        self.tell_inbox(agent, read.to_vec());
        if is_ready {
            self.set_status(agent, SubagentStatus::Ready);
        }
        // The logs of other senders forget the mail too.
        let parent = self.parent_of(agent);
        let mut others: Vec<AgentId> = senders.into_iter().filter(|sender| *sender != parent).collect();
        others.sort_unstable();
        others.dedup();
        for sender in others {
            if self.agents.get(&sender).is_some_and(Agent::is_loaded)
                && let Some(event) = self.inbox_event(agent, read.to_vec())
            {
                self.tell(sender, event);
            }
        }
    }

    fn inbox_event(&self, agent: AgentId, read: Vec<u64>) -> Option<AgentEvent> {
        let summary = &self.agents.get(&agent)?.summary;
        let inbox = AgentInboxEvent {
            agent_id: agent,
            session_id: summary.session_id,
            pending_messages: summary.pending_messages,
            pending_interrupts: summary.pending_interrupts,
        };
        Some(AgentEvent::Inbox(InboxChange { inbox, read }))
    }

    /// Tells how much mail waits for an agent.
    pub(super) fn tell_inbox(&mut self, agent: AgentId, read: Vec<u64>) {
        if let Some(event) = self.inbox_event(agent, read) {
            self.tell_parent(agent, event);
        }
    }

    pub(super) fn set_status(&mut self, agent: AgentId, status: SubagentStatus) {
        let Some(found) = self.get(agent).filter(|found| found.summary.status != status) else { return };
        found.summary.status = status.clone();
        let change = SubagentStatusChange { agent_id: agent, session_id: found.thread(), status };
        self.tell_parent(agent, AgentEvent::Lifecycle(SubagentLifecycleEvent::Status(change)));
    }

    pub(super) fn header(&mut self, agent: AgentId, header: String) {
        let Some(found) = self.get(agent).filter(|found| found.summary.reasoning_header.is_none()) else { return };
        found.summary.reasoning_header = Some(header.clone());
        let change = SubagentReasoningHeader { agent_id: agent, session_id: found.thread(), reasoning_header: header };
        self.tell_parent(agent, AgentEvent::Lifecycle(SubagentLifecycleEvent::ReasoningHeader(change)));
    }
}

/// The result of a task in words.
fn result_text(completion: &SubagentCompletion, reason: Option<&str>) -> String {
    let mut text = match completion {
        SubagentCompletion::Completed { last_message } => {
            last_message.clone().unwrap_or_else(|| "subagent completed".to_owned())
        }
        SubagentCompletion::Failed { message } => format!("subagent failed: {message}"),
        SubagentCompletion::Canceled { reason: why } => {
            format!("subagent canceled: {}", reason.unwrap_or(why.as_str()))
        }
    };
    if text.len() > RESULT_BYTES {
        let end = (0..=RESULT_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}
