//! The requests of a tree of agents to one provider, as a machine without I/O: which of them may run.
//!
//! Invariants: never more than the allowed number run; the root goes before all others, which take turns by agent, so
//! that one with many requests delays the others by one; a request waits only while all places are taken, or while the
//! provider has asked to wait.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Instant;

use codex_wire::ids::ThreadId;

/// The agent of a request; none for the root.
pub(crate) type Agent = Option<ThreadId>;

/// The name of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ticket(pub(crate) u64);

#[derive(Debug)]
pub(crate) struct RequestQueue {
    /// The number of requests that may run at once.
    most: usize,
    running: usize,
    /// The waiting requests of each agent that has some, the agent whose turn it is first.
    waiting: VecDeque<(Agent, VecDeque<Ticket>)>,
    /// The time until which the provider wants no requests.
    held_until: Option<Instant>,
}

impl RequestQueue {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, running: 0, waiting: VecDeque::new(), held_until: None }
    }

    /// A request of an agent waits.
    pub(crate) fn enter(&mut self, agent: Agent, ticket: Ticket) {
        match self.waiting.iter_mut().find(|(waiting, _)| *waiting == agent) {
            Some((_, tickets)) => tickets.push_back(ticket),
            None => self.waiting.push_back((agent, VecDeque::from([ticket]))),
        }
    }

    pub(crate) fn is_waiting(&self, ticket: Ticket) -> bool {
        self.waiting.iter().any(|(_, tickets)| tickets.contains(&ticket))
    }

    /// A request is over: one that waits leaves the queue, and one that runs frees its place.
    pub(crate) fn leave(&mut self, ticket: Ticket) {
        if self.is_waiting(ticket) {
            self.waiting.iter_mut().for_each(|(_, tickets)| tickets.retain(|other| *other != ticket));
            self.waiting.retain(|(_, tickets)| !tickets.is_empty());
        } else {
            self.running = self.running.saturating_sub(1);
        }
    }

    /// The provider wants no requests until then.
    pub(crate) fn hold(&mut self, until: Instant) {
        self.held_until = self.held_until.max(Some(until));
    }

    /// Lets the next request run, if one may. Others that run outside of the queue take places too.
    pub(crate) fn next(&mut self, now: Instant, outside: usize) -> Option<Ticket> {
        if self.held_until.is_some_and(|until| now < until) {
            return None;
        }
        self.held_until = None;
        if self.running + outside >= self.most {
            return None;
        }
        let root = self.waiting.iter().position(|(agent, _)| agent.is_none());
        let (agent, mut tickets) = self.waiting.remove(root.unwrap_or(0))?;
        let ticket = tickets.pop_front()?;
        if !tickets.is_empty() {
            self.waiting.push_back((agent, tickets));
        }
        self.running += 1;
        Some(ticket)
    }

    /// The time at which [`Self::next`] is due again.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.held_until
    }
}
