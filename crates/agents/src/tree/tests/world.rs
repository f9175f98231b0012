//! A world around a tree: logs that outlive the program, threads with inboxes, and all messages that were accepted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use codex_log::agents::{AgentEvent, AgentsState, Mail, MailRead};
use codex_tools::agents::{ChildStarted, StoredChild};
use codex_wire::agent::{AgentId, SubagentLifecycleEvent, SubagentStatus};
use codex_wire::ids::ThreadId;

use crate::tree::{AgentError, CallNumber, Effect, Input, Limits, Phase, Reply, Request, Tree, TurnEnd};

/// A running thread.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) inbox: Vec<Mail>,
    pub(super) has_turn: bool,
    /// Wakes and stops that it has not seen to.
    pub(super) orders: VecDeque<Order>,
    /// Mail that its log tells to be read and the tree does not know about.
    pub(super) unreported: Vec<u64>,
}

impl Session {
    /// Whether its turn is to be stopped. It reads no mail any more then.
    fn is_to_stop(&self) -> bool {
        self.orders.contains(&Order::Stop)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Wake,
    Stop,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) tree: Tree,
    limits: Limits,
    root: ThreadId,
    pub(super) now_ms: i64,
    logs: BTreeMap<AgentId, AgentsState>,
    threads: BTreeMap<ThreadId, AgentId>,
    pub(super) sessions: BTreeMap<AgentId, Session>,
    pub(super) launching: Vec<AgentId>,
    /// Agents whose logs have an open question.
    pub(super) asking: BTreeSet<AgentId>,
    pub(super) waiting: BTreeMap<CallNumber, AgentId>,
    next_call: u64,
    /// The number of effects after which the program ends.
    pub(super) effects_left: Option<usize>,
    /// Accepted messages by number, and how often each was read.
    messages: BTreeMap<u64, (Mail, u32)>,
    created: BTreeSet<AgentId>,
    deleted: BTreeSet<AgentId>,
    parents: BTreeMap<AgentId, AgentId>,
    pub(super) replies: Vec<(CallNumber, Result<Reply, AgentError>)>,
    pub(super) told: Vec<(AgentId, AgentEvent)>,
}

impl World {
    pub(super) fn new(limits: Limits) -> Self {
        let root = ThreadId::fresh();
        Self {
            tree: Tree::new(root, limits),
            limits,
            root,
            now_ms: 1_000,
            logs: BTreeMap::new(),
            threads: BTreeMap::from([(root, AgentId::ROOT)]),
            sessions: BTreeMap::from([(AgentId::ROOT, Session::default())]),
            launching: Vec::new(),
            asking: BTreeSet::new(),
            waiting: BTreeMap::new(),
            next_call: 0,
            effects_left: None,
            messages: BTreeMap::new(),
            created: BTreeSet::new(),
            deleted: BTreeSet::new(),
            parents: BTreeMap::new(),
            replies: Vec::new(),
            told: Vec::new(),
        }
    }

    pub(super) fn input(&mut self, input: Input) {
        self.now_ms += 1;
        let mut effects = self.tree.step(self.now_ms, input);
        let left = self.effects_left.take().filter(|left| *left < effects.len());
        effects.truncate(left.unwrap_or(effects.len()));
        self.perform(effects);
        if left.is_some() {
            return self.crash();
        }
        self.check();
    }

    pub(super) fn call(&mut self, caller: AgentId, request: Request) -> CallNumber {
        let call = CallNumber(self.next_call);
        self.next_call += 1;
        self.waiting.insert(call, caller);
        self.input(Input::Call { caller, call, request });
        call
    }

    /// The reply to a call, if it has come.
    pub(super) fn reply_to(&self, call: CallNumber) -> Option<&Result<Reply, AgentError>> {
        self.replies.iter().find(|(replied, _)| *replied == call).map(|(_, reply)| reply)
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Launch { agent, .. } => self.launching.push(agent),
                Effect::Tell { log, events } => events.into_iter().for_each(|event| self.log(log, event)),
                Effect::Deliver { agent, mail } => {
                    let session = self.sessions.get_mut(&agent).expect("mail is delivered to a running thread");
                    assert!(session.inbox.iter().all(|known| known.id != mail.id), "{mail:?} was delivered twice");
                    let is_stopped = !session.has_turn || session.is_to_stop();
                    assert!(
                        !mail.message.interrupt || is_stopped,
                        "{mail:?} can be read by the turn that it is to stop"
                    );
                    session.inbox.push(mail);
                }
                Effect::Withdraw { agent, mail } => {
                    if let Some(session) = self.sessions.get_mut(&agent) {
                        session.inbox.retain(|known| !mail.contains(&known.id));
                    }
                }
                Effect::Wake { agent } => self.order(agent, Order::Wake),
                Effect::Stop { agent } => self.order(agent, Order::Stop),
                Effect::Close { agent } => {
                    self.sessions.remove(&agent);
                    self.launching.retain(|launching| *launching != agent);
                    self.waiting.retain(|_, caller| *caller != agent);
                }
                Effect::Reply { call, reply } => {
                    // A caller whose turn was stopped does not wait any more.
                    self.waiting.remove(&call);
                    self.replies.push((call, reply));
                }
            }
        }
    }

    fn order(&mut self, agent: AgentId, order: Order) {
        let session = self.sessions.get_mut(&agent).expect("an order is for a running thread");
        if order == Order::Stop {
            session.orders.retain(|other| *other != Order::Wake);
        }
        session.orders.push_back(order);
    }

    fn log(&mut self, log: AgentId, event: AgentEvent) {
        match &event {
            AgentEvent::Lifecycle(SubagentLifecycleEvent::Created(created)) => {
                let child = &created.subagent;
                assert!(self.created.insert(child.agent_id), "{} was given out twice", child.agent_id);
                self.threads.insert(child.session_id, child.agent_id);
                self.parents.insert(child.agent_id, child.parent_agent_id.unwrap_or(AgentId::ROOT));
            }
            AgentEvent::Lifecycle(SubagentLifecycleEvent::Deleted(deleted)) => {
                self.deleted.insert(deleted.agent_id);
            }
            AgentEvent::Mail(mail) => {
                // Mail of an agent that is deleted is told again.
                let (known, _) = self.messages.entry(mail.id).or_insert_with(|| (mail.clone(), 0));
                assert_eq!(known, mail, "the number {} was given out twice", mail.id);
            }
            AgentEvent::Read(MailRead { mail }) => self.count_read(mail),
            _ => {}
        }
        self.logs.entry(log).or_default().apply(&event);
        self.told.push((log, event));
    }

    fn count_read(&mut self, mail: &[u64]) {
        for id in mail {
            self.messages.get_mut(id).expect("only accepted mail is read").1 += 1;
        }
    }

    /// An agent reads its mail: its log tells so, and the tree is told later.
    pub(super) fn read_mail(&mut self, agent: AgentId) {
        let Some(session) = self.sessions.get_mut(&agent).filter(|session| !session.is_to_stop()) else { return };
        let mail: Vec<u64> = std::mem::take(&mut session.inbox).iter().map(|mail| mail.id).collect();
        session.unreported.extend(&mail);
        let log = self.logs.entry(agent).or_default();
        let new: Vec<u64> = mail.into_iter().filter(|id| !log.read.contains(id)).collect();
        log.apply(&AgentEvent::Read(MailRead { mail: new.clone() }));
        self.count_read(&new);
    }

    pub(super) fn report_read(&mut self, agent: AgentId) {
        let Some(session) = self.sessions.get_mut(&agent) else { return };
        let mail = std::mem::take(&mut session.unreported);
        if !mail.is_empty() {
            self.input(Input::Read { agent, mail });
        }
    }

    /// A thread sees to its oldest order.
    pub(super) fn obey(&mut self, agent: AgentId) {
        self.report_read(agent);
        let Some(session) = self.sessions.get_mut(&agent) else { return };
        match session.orders.pop_front() {
            Some(Order::Wake) if session.has_turn => {}
            Some(Order::Wake) if session.inbox.is_empty() || session.is_to_stop() => {
                self.input(Input::Rested { agent });
            }
            Some(Order::Wake) => self.begin_turn(agent),
            Some(Order::Stop) if session.has_turn => self.end_turn(agent, TurnEnd::Aborted),
            Some(Order::Stop) => self.input(Input::Rested { agent }),
            None => {}
        }
    }

    pub(super) fn begin_turn(&mut self, agent: AgentId) {
        let Some(session) = self.sessions.get_mut(&agent).filter(|session| !session.has_turn) else { return };
        session.has_turn = true;
        self.input(Input::TurnStarted { agent });
        self.read_mail(agent);
    }

    pub(super) fn end_turn(&mut self, agent: AgentId, end: TurnEnd) {
        let Some(session) = self.sessions.get_mut(&agent).filter(|session| session.has_turn) else { return };
        session.has_turn = false;
        self.asking.remove(&agent);
        let calls: Vec<CallNumber> =
            self.waiting.iter().filter(|(_, caller)| **caller == agent).map(|(call, _)| *call).collect();
        for call in calls {
            self.waiting.remove(&call);
            self.input(Input::CallDropped(call));
        }
        self.report_read(agent);
        self.input(Input::TurnEnded { agent, end });
    }

    /// A thread starts, and continues its turn if it has an open question, or fails to start.
    pub(super) fn launch(&mut self, agent: AgentId, error: Option<&str>) {
        let Some(place) = self.launching.iter().position(|launching| *launching == agent) else { return };
        self.launching.remove(place);
        let has_turn = self.asking.contains(&agent);
        let result = error.map_or(Ok(()), |error| Err(error.to_owned())).map(|()| {
            self.sessions.insert(agent, Session { has_turn, ..Session::default() });
            ChildStarted { has_turn, inherited: 0 }
        });
        self.input(Input::Launched { agent, result });
    }

    /// An agent asks a person, in its turn.
    pub(super) fn ask(&mut self, agent: AgentId) {
        if agent != AgentId::ROOT && self.sessions.get(&agent).is_some_and(|session| session.has_turn) {
            self.asking.insert(agent);
        }
    }

    /// The thread of an agent breaks.
    pub(super) fn lose(&mut self, agent: AgentId) {
        if agent != AgentId::ROOT && self.sessions.remove(&agent).is_some() {
            self.waiting.retain(|_, caller| *caller != agent);
            self.input(Input::Lost { agent });
        }
    }

    /// The program ends without warning and is started again.
    pub(super) fn crash(&mut self) {
        self.sessions = BTreeMap::from([(AgentId::ROOT, Session::default())]);
        self.launching.clear();
        self.waiting.clear();
        let own = self.logs.get(&AgentId::ROOT).cloned().unwrap_or_default();
        let (logs, threads) = (self.logs.clone(), self.threads.clone());
        let asking = self.asking.clone();
        let mut read = |thread: ThreadId, _: ThreadId| {
            let agent = threads.get(&thread)?;
            Some(StoredChild { agents: logs.get(agent).cloned().unwrap_or_default(), goes_on: asking.contains(agent) })
        };
        let (tree, effects) = Tree::resume(self.root, self.limits, &own, &mut read, self.now_ms);
        self.tree = tree;
        self.perform(effects);
        for deleted in &self.deleted {
            assert!(self.tree.agent(*deleted).is_none(), "{deleted} was deleted and is there again");
        }
        self.check();
    }

    fn check(&self) {
        for agent in self.tree.agents().filter(|agent| agent.id() != AgentId::ROOT) {
            let about = (agent.id(), agent.status(), &agent.completion, agent.phase);
            assert_eq!(agent.is_over(), agent.completion.is_some(), "{about:?}");
            assert!(agent.depth <= self.limits.depth, "{about:?}");
            assert!(agent.inbox.iter().filter(|mail| mail.completion.is_none()).count() <= 256, "{about:?}");
            assert!(self.created.contains(&agent.id()), "{about:?}");
            let same = self.tree.agents().filter(|other| other.path == agent.path).count();
            assert_eq!(same, 1, "{} is the path of several: {about:?}", agent.path);
        }
        let busy = self.tree.agents().filter(|agent| agent.phase == Phase::Waking).count();
        assert!(busy <= self.limits.turns + 1, "{busy} agents were woken");
    }

    /// Lets everything come to an end.
    pub(super) fn settle(&mut self) {
        for _ in 0..10_000 {
            let agents: Vec<AgentId> = self.sessions.keys().copied().collect();
            let mut is_quiet = self.launching.is_empty();
            for agent in self.launching.clone() {
                self.launch(agent, None);
            }
            for agent in agents {
                let Some(session) = self.sessions.get(&agent) else { continue };
                if session.has_turn {
                    is_quiet = false;
                    self.read_mail(agent);
                    self.report_read(agent);
                    self.end_turn(agent, TurnEnd::Completed { last_message: None });
                } else if !session.orders.is_empty() {
                    is_quiet = false;
                    self.obey(agent);
                } else if agent == AgentId::ROOT && !session.inbox.is_empty() {
                    is_quiet = false;
                    self.begin_turn(agent);
                }
            }
            if is_quiet {
                return;
            }
        }
        panic!("it goes on and on: {:?} {:?}", self.sessions, self.launching);
    }

    /// Whether an agent was deleted, or one above it: the program may end before the logs of those below tell so.
    fn is_deleted(&self, agent: AgentId) -> bool {
        self.deleted.contains(&agent) || self.parents.get(&agent).is_some_and(|parent| self.is_deleted(*parent))
    }

    /// Everything has an end: no agent works, no slot is kept, and no message was lost or read twice.
    pub(super) fn check_settled(&self) {
        let mut ready = 0;
        for agent in self.tree.agents().filter(|agent| agent.id() != AgentId::ROOT) {
            let about = (agent.id(), agent.status(), agent.phase, agent.inbox.len());
            ready += usize::from(*agent.status() == SubagentStatus::Ready);
            assert!(agent.is_over() || *agent.status() == SubagentStatus::Ready, "no end: {about:?}");
            assert!(!agent.is_busy(), "at work: {about:?}");
        }
        assert_eq!(self.tree.active(), ready, "a slot is kept");
        assert!(self.waiting.is_empty() || self.waiting.values().all(|caller| !self.sessions.contains_key(caller)));
        for (id, (mail, read)) in &self.messages {
            let recipient = &mail.message.recipient_agent_id;
            let agent = self.tree.agent(*recipient);
            let waits = agent.is_some_and(|agent| agent.inbox.iter().any(|mail| mail.id == *id));
            let is_resting = agent.is_some_and(|agent| {
                let is_stopped = matches!(agent.status(), SubagentStatus::Canceled | SubagentStatus::Failed);
                agent.phase == Phase::Unloaded || is_stopped || mail.is_quiet
            });
            let is_lost = *read == 0 && !self.is_deleted(*recipient) && !(waits && is_resting);
            assert!(!is_lost, "the message {id} to {recipient} was lost");
            assert!(*read <= 1, "the message {id} to {recipient} was read {read} times");
        }
    }
}
