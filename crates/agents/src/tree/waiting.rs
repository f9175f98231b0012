//! Waits of agents for each other.

use codex_log::agents::{AgentEvent, MailRead};
use codex_wire::agent::AgentId;

use super::request::{AgentView, AwaitRequest, Awaited, Reply, Target};
use super::{Agent, AgentError, CallNumber, Effect, Phase, Tree};

/// A call that waits for other agents.
#[derive(Debug)]
pub(super) struct Wait {
    pub(super) call: CallNumber,
    caller: AgentId,
    agents: Vec<AgentId>,
    target: Target,
    due_ms: i64,
    /// Whether the user has said something.
    is_interrupted: bool,
}

impl Wait {
    pub(super) fn due_ms(&self) -> i64 {
        self.due_ms
    }

    /// Whether the root waits, which needs no place.
    pub(super) fn is_roots(&self) -> bool {
        self.caller == AgentId::ROOT
    }
}

impl Tree {
    pub(super) fn begin_wait(
        &mut self,
        caller: AgentId,
        call: CallNumber,
        request: AwaitRequest,
    ) -> Result<(), AgentError> {
        let AwaitRequest { agents, timeout_ms, target } = request;
        for agent in &agents {
            self.below(caller, *agent)?;
        }
        if self.is_closing {
            return Err(AgentError::Closing);
        }
        let timeout_ms = i64::try_from(timeout_ms).unwrap_or(i64::MAX);
        let wait = Wait {
            call,
            caller,
            agents,
            target,
            due_ms: self.now_ms.saturating_add(timeout_ms),
            is_interrupted: false,
        };
        if self.watched(&wait).is_empty() && target != Target::AnyMail {
            return Err(AgentError::NobodyToAwait);
        }
        self.waits.push(wait);
        Ok(())
    }

    pub(super) fn drop_wait(&mut self, call: CallNumber) {
        self.waits.retain(|wait| wait.call != call);
        for agent in self.agents.values_mut().filter(|agent| agent.launch_call == Some(call)) {
            agent.launch_call = None;
        }
    }

    /// Ends the waits of an agent for any mail, because its user has said something.
    pub(super) fn interrupt_waits(&mut self, agent: AgentId) {
        for wait in self.waits.iter_mut().filter(|wait| wait.caller == agent && wait.target == Target::AnyMail) {
            wait.is_interrupted = true;
        }
    }

    /// Whether an agent waits for others.
    pub(super) fn is_waiting(&self, agent: AgentId) -> bool {
        self.waits.iter().any(|wait| wait.caller == agent)
    }

    /// The agents that a wait is for.
    fn watched(&self, wait: &Wait) -> Vec<AgentId> {
        if wait.agents.is_empty() {
            let is_child = |agent: &&Agent| agent.summary.parent_agent_id == Some(wait.caller);
            self.agents.values().filter(is_child).map(Agent::id).collect()
        } else {
            wait.agents.iter().copied().filter(|agent| self.agents.contains_key(agent)).collect()
        }
    }

    /// Ends the waits that have something to tell. The turn of a child continues then, so it needs a place again.
    pub(super) fn check_waits(&mut self) {
        let mut at = 0;
        while let Some(wait) = self.waits.get(at) {
            if !self.may_end(wait) {
                at += 1;
                continue;
            }
            let wait = self.waits.remove(at);
            if let Some(reply) = self.outcome(&wait) {
                self.reply(wait.call, reply);
            } else {
                self.waits.insert(at, wait);
                at += 1;
            }
        }
    }

    /// Whether a wait may end: there is a place for the turn that continues, and the turn is not about to be stopped, which
    /// would lose what the wait has returned.
    pub(super) fn may_end(&self, wait: &Wait) -> bool {
        let is_stopping = |agent: &Agent| matches!(agent.phase, Phase::Interrupting | Phase::Canceling);
        (wait.is_roots() || !self.is_full()) && !self.agents.get(&wait.caller).is_some_and(is_stopping)
    }

    fn outcome(&mut self, wait: &Wait) -> Option<Result<Reply, AgentError>> {
        let watched = self.watched(wait);
        if !self.agents.contains_key(&wait.caller) {
            return Some(Err(AgentError::Gone(wait.caller)));
        }
        if watched.is_empty() && wait.target != Target::AnyMail {
            let named = wait.agents.first().copied();
            return Some(Err(named.map_or(AgentError::NobodyToAwait, AgentError::Gone)));
        }
        let found = match wait.target {
            Target::MailOrEnd => self.with_mail(wait, &watched).or_else(|| self.all_over(&watched)),
            Target::End => watched.iter().copied().find(|agent| self.agents.get(agent).is_some_and(Agent::is_over)),
            Target::AnyMail => {
                let caller = self.agents.get(&wait.caller)?;
                (!caller.inbox.is_empty()).then_some(AgentId::ROOT)
            }
        };
        let is_interrupted = found.is_none() && wait.is_interrupted;
        let is_timed_out = found.is_none() && !is_interrupted && wait.due_ms <= self.now_ms;
        if found.is_none() && !is_timed_out && !is_interrupted {
            return None;
        }
        let messages = match (found, wait.target) {
            (Some(agent), Target::MailOrEnd) => self.take_mail(wait.caller, &[agent]),
            // The results stay in the inbox: with these tools the model is told them besides.
            (Some(_), Target::End | Target::AnyMail) | (None, _) => Vec::new(),
        };
        let view = |agent: AgentId| self.agents.get(&agent).map(AgentView::from);
        let only = if watched.len() == 1 { watched.first().copied() } else { None };
        let agent = found.or(only).filter(|_| wait.target != Target::AnyMail).and_then(view);
        let is_over = found.is_some() && agent.as_ref().is_some_and(|agent| agent.completion.is_some());
        let agents = watched.iter().copied().filter_map(view).collect();
        Some(Ok(Reply::Awaited(Box::new(Awaited { agent, agents, is_timed_out, messages, is_over, is_interrupted }))))
    }

    /// The first of these agents that has sent mail to the caller, interrupts first.
    fn with_mail(&self, wait: &Wait, watched: &[AgentId]) -> Option<AgentId> {
        let inbox = &self.agents.get(&wait.caller)?.inbox;
        inbox.iter().map(|mail| mail.message.sender_agent_id).find(|sender| watched.contains(sender))
    }

    /// The agent that has ended last, if all have. A later wait returns its result again.
    fn all_over(&self, watched: &[AgentId]) -> Option<AgentId> {
        let all = watched.iter().all(|agent| self.agents.get(agent).is_some_and(Agent::is_over));
        watched.last().copied().filter(|_| all)
    }

    /// Takes the mail of these agents out of the caller's inbox. The reply of the call tells it to the model.
    fn take_mail(&mut self, caller: AgentId, senders: &[AgentId]) -> Vec<codex_log::agents::Mail> {
        let Some(found) = self.get(caller) else { return Vec::new() };
        let (taken, left): (Vec<_>, Vec<_>) = std::mem::take(&mut found.inbox)
            .into_iter()
            .partition(|mail| senders.contains(&mail.message.sender_agent_id));
        found.inbox = left;
        found.count();
        if taken.is_empty() {
            return taken;
        }
        let ids: Vec<u64> = taken.iter().map(|mail| mail.id).collect();
        self.effect(Effect::Withdraw { agent: caller, mail: ids.clone() });
        self.tell(caller, AgentEvent::Read(MailRead { mail: ids.clone() }));
        self.tell_inbox(caller, ids);
        taken.into_iter().filter(|mail| mail.completion.is_none()).collect()
    }
}
