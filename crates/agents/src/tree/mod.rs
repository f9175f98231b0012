//! A tree of agents as a machine without I/O.
//!
//! It takes inputs (calls of agents, ends of their turns, mail that was read, the time) and returns effects (start a
//! thread, put mail into an inbox, wake, stop, close, tell a log, reply to a call). The effects of one input are
//! performed in order.
//!
//! Invariants: an agent's number is never given out twice; accepted mail is read exactly once or its recipient is
//! deleted; every task has exactly one end, and the parent is told; an agent that has ended holds no slot.

mod agent;
mod calls;
mod delivery;
mod ending;
mod error;
mod paths;
mod request;
mod resume;
#[cfg(test)]
mod tests;
mod waiting;
mod watching;

use std::collections::{BTreeMap, VecDeque};

use codex_log::agents::{AgentEvent, Mail, Numbers};
use codex_tools::agents::ChildStarted;
use codex_wire::agent::AgentId;
use codex_wire::ids::ThreadId;

pub use self::agent::{Agent, Phase, summarized};
pub use self::error::AgentError;
pub use self::request::{
    AgentView, AwaitRequest, Awaited, PruneRequest, Pruned, Reply, Request, SendRequest, SpawnRequest, Target,
    WatchAction,
};
use self::waiting::Wait;
use self::watching::Watchdog;

/// The limits of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The number of agents that may be at work or ready at once, without the root.
    pub active: usize,
    /// The number of levels below the root.
    pub depth: u32,
    /// The number of turns that may run at once, without the root's and those that wait for other agents.
    pub turns: usize,
    /// Whether mail wakes an idle root.
    pub wakes_root: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { active: 8, depth: 3, turns: 8, wakes_root: true }
    }
}

/// The number of a call that waits for its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallNumber(pub u64);

/// An input of the machine.
#[derive(Debug, Clone)]
pub enum Input {
    /// An agent calls a tool.
    Call {
        caller: AgentId,
        call: CallNumber,
        request: Request,
    },
    /// A call was dropped, because its turn was stopped.
    CallDropped(CallNumber),
    /// The thread of an agent has started, or could not.
    Launched {
        agent: AgentId,
        result: Result<ChildStarted, String>,
    },
    TurnStarted {
        agent: AgentId,
    },
    TurnEnded {
        agent: AgentId,
        end: TurnEnd,
    },
    /// An agent that was woken had nothing to do.
    Rested {
        agent: AgentId,
    },
    /// An agent has named what it is thinking about.
    Header {
        agent: AgentId,
        header: String,
    },
    /// An agent has read mail.
    Read {
        agent: AgentId,
        mail: Vec<u64>,
    },
    /// The user has said something to an agent while its turn runs.
    Heard {
        agent: AgentId,
    },
    /// The thread of an agent is gone.
    Lost {
        agent: AgentId,
    },
    /// A person has stopped an agent, or its budget is exhausted: the agents below it work for nothing.
    CancelBelow {
        agent: AgentId,
        reason: String,
    },
    /// Time has passed.
    Tick,
    /// The root ends.
    Close,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEnd {
    Completed { last_message: Option<String> },
    Aborted,
    Failed { message: String },
}

/// An effect to perform.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Start the thread of an agent, and come back with [`Input::Launched`].
    Launch { agent: AgentId, how: Launch },
    /// Append to the log of an agent's thread: everything that one input has led to, in one write. If the program ends, a
    /// log tells all of it or nothing.
    Tell { log: AgentId, events: Vec<AgentEvent> },
    /// Put mail into the inbox of an agent's thread.
    Deliver { agent: AgentId, mail: Mail },
    /// Take mail out of it again, because a call has returned it.
    Withdraw { agent: AgentId, mail: Vec<u64> },
    /// An idle agent may begin a turn with the mail in its inbox.
    Wake { agent: AgentId },
    /// Stop the turn of an agent.
    Stop { agent: AgentId },
    /// End the thread of an agent, if it runs.
    Close { agent: AgentId },
    /// Reply to a call.
    Reply { call: CallNumber, reply: Result<Reply, AgentError> },
}

/// The history with which the thread of an agent starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launch {
    /// With an empty history.
    Empty,
    /// With a copy of its parent's history.
    Fork,
    /// With its own history.
    Resume,
}

/// A tree of agents.
#[derive(Debug)]
pub struct Tree {
    limits: Limits,
    agents: BTreeMap<AgentId, Agent>,
    numbers: Numbers,
    /// Agents that have something to do and wait until a turn may run, oldest first.
    queue: VecDeque<AgentId>,
    waits: Vec<Wait>,
    watchdogs: Vec<Watchdog>,
    is_closing: bool,
    /// Whether mail has come that may wake the root.
    wakes_root: bool,
    now_ms: i64,
    effects: Vec<Effect>,
}

impl Tree {
    /// A tree that consists of its root.
    #[must_use]
    pub fn new(root: ThreadId, limits: Limits) -> Self {
        let agents = BTreeMap::from([(AgentId::ROOT, Agent::root(root))]);
        let numbers = Numbers { next_agent_id: 1, next_mail: 1 };
        Self {
            limits,
            agents,
            numbers,
            queue: VecDeque::new(),
            waits: Vec::new(),
            watchdogs: Vec::new(),
            is_closing: false,
            wakes_root: false,
            now_ms: 0,
            effects: Vec::new(),
        }
    }

    /// Takes one input at a time in milliseconds of Unix time, and returns what to do, in order.
    pub fn step(&mut self, now_ms: i64, input: Input) -> Vec<Effect> {
        self.now_ms = self.now_ms.max(now_ms);
        match input {
            Input::Call { caller, call, request } => self.call(caller, call, request),
            Input::CallDropped(call) => self.drop_wait(call),
            Input::Launched { agent, result } => self.launched(agent, result),
            Input::TurnStarted { agent } => self.turn_started(agent),
            Input::TurnEnded { agent, end } => self.turn_ended(agent, end),
            Input::Rested { agent } => self.rested(agent),
            Input::Header { agent, header } => self.header(agent, header),
            Input::Read { agent, mail } => self.read(agent, &mail),
            Input::Heard { agent } => self.interrupt_waits(agent),
            Input::Lost { agent } => self.lost(agent),
            Input::CancelBelow { agent, reason } => self.cancel_below(agent, &reason),
            Input::Tick => {}
            Input::Close => self.close(),
        }
        self.ring_watchdogs();
        self.check_waits();
        self.wake_next();
        std::mem::take(&mut self.effects)
    }

    /// The time at which [`Input::Tick`] is due, in milliseconds of Unix time.
    #[must_use]
    pub fn due_ms(&self) -> Option<i64> {
        // The end of a wait that needs a place comes with the place.
        let waits = self.waits.iter().filter(|wait| self.may_end(wait)).map(Wait::due_ms);
        waits.chain(self.watchdogs.iter().map(Watchdog::due_ms)).min()
    }

    /// An agent.
    #[must_use]
    pub fn agent(&self, agent: AgentId) -> Option<&Agent> {
        self.agents.get(&agent)
    }

    /// All agents with the root, oldest first.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values()
    }

    /// The number of agents that are at work or ready, without the root.
    #[must_use]
    pub fn active(&self) -> usize {
        self.children().filter(|agent| !agent.is_over()).count()
    }

    /// Whether the root ends.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// All agents but the root.
    fn children(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values().filter(|agent| agent.id() != AgentId::ROOT)
    }

    fn get(&mut self, agent: AgentId) -> Option<&mut Agent> {
        self.agents.get_mut(&agent)
    }

    /// The parent of an agent; the root is its own.
    fn parent_of(&self, agent: AgentId) -> AgentId {
        self.agents.get(&agent).and_then(|agent| agent.summary.parent_agent_id).unwrap_or(AgentId::ROOT)
    }

    /// Whether an agent is below another.
    #[must_use]
    pub fn is_below(&self, agent: AgentId, ancestor: AgentId) -> bool {
        let mut at = agent;
        while at != AgentId::ROOT {
            at = self.parent_of(at);
            if at == ancestor {
                return true;
            }
        }
        false
    }

    /// An agent and everything below it, the deepest first.
    fn subtree(&self, agent: AgentId) -> Vec<AgentId> {
        let mut all: Vec<&Agent> =
            self.agents.values().filter(|other| other.id() == agent || self.is_below(other.id(), agent)).collect();
        all.sort_by_key(|other| std::cmp::Reverse((other.depth, other.id())));
        all.into_iter().map(Agent::id).collect()
    }

    fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    fn tell(&mut self, log: AgentId, event: AgentEvent) {
        let is_of_log = |effect: &Effect| matches!(effect, Effect::Tell { log: known, .. } if *known == log);
        let last = self.effects.iter().rposition(is_of_log).filter(|at| !self.records_mail_after(*at, &event));
        match last.and_then(|at| self.effects.get_mut(at)) {
            Some(Effect::Tell { events, .. }) => events.push(event),
            _ => self.effect(Effect::Tell { log, events: vec![event] }),
        }
    }

    /// Whether an event reads mail that its sender records only after an effect. Read mail is recorded after sent mail, or
    /// a program that ends between the two writes has read what nobody has sent.
    fn records_mail_after(&self, at: usize, event: &AgentEvent) -> bool {
        let AgentEvent::Read(read) = event else { return false };
        let is_read = |told: &AgentEvent| matches!(told, AgentEvent::Mail(mail) if read.mail.contains(&mail.id));
        self.effects
            .iter()
            .skip(at + 1)
            .any(|effect| matches!(effect, Effect::Tell { events, .. } if events.iter().any(is_read)))
    }

    fn reply(&mut self, call: CallNumber, reply: Result<Reply, AgentError>) {
        self.effect(Effect::Reply { call, reply });
    }
}
