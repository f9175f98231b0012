//! The tree as the logs of its threads tell it.

use codex_log::agents::{AgentEvent, AgentsState, ChildState, Mail, TaskResult, UnnumberedChild};
use codex_tools::agents::StoredChild;
use codex_wire::agent::{
    AgentId, SubagentCompletion, SubagentCreated, SubagentLifecycleEvent, SubagentOrigin, SubagentStatus,
    SubagentSummary,
};
use codex_wire::ids::ThreadId;

use super::agent::{Agent, CutOff, Phase, summarized};
use super::ending::PROGRAM_ENDED;
use super::request::LEAST_INTERVAL;
use super::watching::Watchdog;
use super::{Effect, Limits, Tree};

/// The most agents that are read, so that a log that was tampered with leads to no endless tree.
const MOST_AGENTS: usize = 10_000;

impl Tree {
    /// Rebuilds a tree from the state of its root and those of the threads below, which are read with the ids of their
    /// parents, and returns what to do first. Agents that were at work have failed, because the program has ended; those
    /// whose turns go on are started again.
    #[must_use]
    pub fn resume(
        root: ThreadId,
        limits: Limits,
        own: &AgentsState,
        read: &mut dyn FnMut(ThreadId, ThreadId) -> Option<StoredChild>,
        now_ms: i64,
    ) -> (Self, Vec<Effect>) {
        let mut tree = Self::new(root, limits);
        tree.now_ms = now_ms;
        let mail = tree.read_logs(own, read);
        for mail in mail {
            if let Some(agent) = tree.get(mail.message.recipient_agent_id) {
                agent.inbox.push(mail);
                agent.count();
            }
        }
        // Mail that comes from here on is delivered as it comes.
        let known = tree.get(AgentId::ROOT).map(|root| root.inbox.clone()).unwrap_or_default();
        for mail in known {
            tree.effect(Effect::Deliver { agent: AgentId::ROOT, mail });
        }
        let lost: Vec<AgentId> =
            tree.children().filter(|agent| agent.cut_off == CutOff::Lost && agent.depth == 1).map(Agent::id).collect();
        for agent in lost {
            tree.tell_of_lost(agent);
        }
        let continued: Vec<AgentId> =
            tree.children().filter(|agent| agent.cut_off == CutOff::Continued).map(Agent::id).collect();
        for agent in continued {
            tree.load(agent);
        }
        // A person who resumes a thread speaks first.
        tree.wakes_root = false;
        let effects = std::mem::take(&mut tree.effects);
        (tree, effects)
    }

    /// Reads the agents and watchdogs from all logs, and returns the mail that was not read.
    fn read_logs(
        &mut self,
        own: &AgentsState,
        read: &mut dyn FnMut(ThreadId, ThreadId) -> Option<StoredChild>,
    ) -> Vec<Mail> {
        let (mut mail, mut gone, mut read_mail) = (Vec::new(), Vec::new(), Vec::new());
        let mut open = vec![(AgentId::ROOT, own.clone())];
        while let Some((owner, state)) = open.pop() {
            mail.extend(state.mail);
            gone.extend(state.gone);
            read_mail.extend(state.read.iter().map(|id| (owner, *id)));
            self.numbers = self.numbers.or_higher(state.numbers);
            for watchdog in state.watchdogs {
                let (target, interval) = (watchdog.agent_id, watchdog.interval_s.max(LEAST_INTERVAL));
                self.watchdogs.push(Watchdog::new(owner, target, interval, watchdog.message, self.now_ms));
            }
            let parent = self.agents.get(&owner).map_or_else(ThreadId::unknown, Agent::thread);
            for child in state.unnumbered {
                if self.agents.len() <= MOST_AGENTS && self.agents.values().all(|known| known.thread() != child.thread)
                {
                    let (id, thread) = (self.number(owner, &child), child.thread);
                    open.push((id, read(thread, parent).unwrap_or_default().agents));
                }
            }
            for child in state.children {
                let (id, thread) = (child.summary.agent_id, child.summary.session_id);
                if !self.agents.contains_key(&id) && self.agents.len() <= MOST_AGENTS {
                    let stored = read(thread, parent).unwrap_or_default();
                    self.insert_known(owner, child, stored.goes_on);
                    open.push((id, stored.agents));
                }
            }
        }
        for agent in gone.into_iter().filter(|agent| *agent != AgentId::ROOT) {
            for below in self.subtree(agent) {
                self.agents.remove(&below);
            }
        }
        let known: Vec<AgentId> = self.agents.keys().copied().collect();
        self.watchdogs.retain(|watchdog| known.contains(&watchdog.owner) && known.contains(&watchdog.target));
        mail.sort_by_key(|mail: &Mail| mail.id);
        mail.dedup_by_key(|mail| mail.id);
        mail.retain(|mail| !read_mail.contains(&(mail.message.recipient_agent_id, mail.id)));
        mail
    }

    /// Gives a child that another release has started its number, and tells the log of its parent.
    fn number(&mut self, owner: AgentId, child: &UnnumberedChild) -> AgentId {
        let id = AgentId(self.numbers.next_agent_id);
        let status = match &child.completion {
            Some(SubagentCompletion::Completed { .. }) => SubagentStatus::Idle,
            Some(SubagentCompletion::Canceled { .. }) => SubagentStatus::Canceled,
            Some(SubagentCompletion::Failed { .. }) | None => SubagentStatus::Failed,
        };
        let failed = || SubagentCompletion::Failed { message: PROGRAM_ENDED.to_owned() };
        let completion = child.completion.clone().unwrap_or_else(failed);
        let summary = SubagentSummary {
            agent_id: id,
            parent_agent_id: Some(owner),
            session_id: child.thread,
            parent_session_id: self.agents.get(&owner).map(Agent::thread),
            origin: SubagentOrigin::Spawn,
            status,
            label: child.nickname.clone(),
            summary: child.prompt.as_deref().and_then(summarized),
            reasoning_header: None,
            started_at_ms: self.now_ms,
            pending_messages: 0,
            pending_interrupts: 0,
            agent_path: child.path.clone(),
            agent_role: child.role.clone(),
        };
        let created = SubagentCreated { subagent: summary.clone() };
        let result =
            TaskResult { agent_id: id, session_id: child.thread, completion: completion.clone(), reason: None };
        self.insert_known(owner, ChildState { summary, completion: Some(completion), inherited: 0 }, false);
        self.tell_parent(id, AgentEvent::Lifecycle(SubagentLifecycleEvent::Created(created)));
        self.tell_parent(id, AgentEvent::Result(result));
        id
    }

    fn insert_known(&mut self, owner: AgentId, child: ChildState, goes_on: bool) {
        let ChildState { mut summary, completion, inherited } = child;
        let depth = self.agents.get(&owner).map_or(0, |owner| owner.depth) + 1;
        summary.parent_agent_id = Some(owner);
        (summary.pending_messages, summary.pending_interrupts) = (0, 0);
        let was_busy = matches!(summary.status, SubagentStatus::Queued | SubagentStatus::Running);
        let cut_off = match (was_busy, goes_on) {
            (false, _) => CutOff::None,
            (true, false) => CutOff::Lost,
            (true, true) => CutOff::Continued,
        };
        match cut_off {
            CutOff::None => {}
            CutOff::Lost => summary.status = SubagentStatus::Failed,
            CutOff::Continued => summary.status = SubagentStatus::Queued,
        }
        let id = summary.agent_id;
        self.numbers.next_agent_id = self.numbers.next_agent_id.max(id.0 + 1);
        let path = summary.agent_path.clone().unwrap_or_else(|| self.numbered_path(owner, id));
        let mut agent = Agent::of(summary, path, depth, Phase::Unloaded);
        agent.cut_off = cut_off;
        agent.inherited = inherited;
        let failed = || SubagentCompletion::Failed { message: PROGRAM_ENDED.to_owned() };
        agent.completion = if cut_off == CutOff::Lost { Some(failed()) } else { completion };
        self.agents.insert(id, agent);
    }
}
