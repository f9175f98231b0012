//! The calls of agents.

use std::collections::BTreeSet;

use codex_log::agents::{AgentEvent, Mail, Numbers, WatchdogChange};
use codex_wire::agent::{
    AgentId, SubagentCreated, SubagentDeleted, SubagentLifecycleEvent, SubagentOrigin, SubagentStatus, SubagentSummary,
};

use super::agent::{Agent, MOST_BYTES, Phase, summarized, trimmed_label};
use super::request::{
    AgentView, LABEL_CHARS, LEAST_INTERVAL, PruneRequest, Pruned, Reply, Request, SendRequest, SpawnRequest,
};
use super::watching::Watchdog;
use super::{AgentError, CallNumber, Effect, Launch, Tree, WatchAction};

type Outcome = Result<Reply, AgentError>;

impl Tree {
    pub(super) fn call(&mut self, caller: AgentId, call: CallNumber, request: Request) {
        let reply = match request {
            Request::Spawn(request) => match self.spawn(caller, call, request) {
                // The reply follows when the thread has started.
                Ok(()) => return,
                Err(error) => Err(error),
            },
            Request::Await(request) => match self.begin_wait(caller, call, request) {
                Ok(()) => return,
                Err(error) => Err(error),
            },
            Request::Reopen(agent) => match self.reopen(caller, call, agent) {
                Ok(None) => return,
                Ok(Some(reply)) => Ok(reply),
                Err(error) => Err(error),
            },
            Request::Find(target) => self.find_for(caller, &target).map(|agent| Reply::Agent(Box::new(agent.into()))),
            Request::Send(request) => self.send(caller, request),
            Request::List { all } => Ok(self.list(caller, all)),
            Request::ListBelow(prefix) => self.list_below(caller, prefix.as_deref()),
            Request::Look(agent) => self.below(caller, agent).map(|agent| Reply::Agent(Box::new(agent.into()))),
            Request::Cancel { agent, reason } => self.cancel_for(caller, agent, reason),
            Request::Prune(request) => self.prune(caller, request),
            Request::Close(agent) => self.close_agent(caller, agent),
            Request::Delete(agent) => self.delete_for(caller, agent),
            Request::Watch { agent, interval_s, message, is_canceled } => {
                self.watch(caller, agent, interval_s, message, is_canceled)
            }
        };
        self.reply(call, reply);
    }

    fn spawn(&mut self, caller: AgentId, call: CallNumber, request: SpawnRequest) -> Result<(), AgentError> {
        let SpawnRequest { thread, origin, prompt, label, task, role } = request;
        if self.is_closing {
            return Err(AgentError::Closing);
        }
        let parent = self.agents.get(&caller).ok_or(AgentError::NotFound(caller))?;
        let (parent_thread, depth) = (parent.thread(), parent.depth + 1);
        match prompt.as_deref() {
            Some(prompt) => checked_prompt(prompt)?,
            None if origin == SubagentOrigin::Fork => {}
            None => return Err(AgentError::EmptyPrompt),
        }
        let label = checked_label(label.as_deref())?;
        if depth > self.limits.depth {
            return Err(AgentError::TooDeep(self.limits.depth));
        }
        let id = AgentId(self.numbers.next_agent_id);
        let path = self.path_below(caller, id, task.as_deref())?;
        if self.active() >= self.limits.active {
            return Err(AgentError::NoSlot(self.limits.active));
        }
        let how = if origin == SubagentOrigin::Fork { Launch::Fork } else { Launch::Empty };
        self.numbers.next_agent_id += 1;
        let summary = SubagentSummary {
            agent_id: id,
            parent_agent_id: Some(caller),
            session_id: thread,
            parent_session_id: Some(parent_thread),
            origin,
            status: SubagentStatus::Queued,
            label,
            summary: prompt.as_deref().and_then(summarized),
            reasoning_header: None,
            started_at_ms: self.now_ms,
            pending_messages: 0,
            pending_interrupts: 0,
            agent_path: task.map(|_| path.clone()),
            agent_role: role,
        };
        let created = SubagentCreated { subagent: summary.clone() };
        self.tell(caller, AgentEvent::Lifecycle(SubagentLifecycleEvent::Created(created)));
        let mut agent = Agent::of(summary, path, depth, Phase::Launching);
        agent.launch_call = Some(call);
        self.agents.insert(id, agent);
        self.tell_inbox(id, Vec::new());
        if let Some(prompt) = prompt {
            self.post(caller, id, Some(prompt), false, false);
        }
        self.effect(Effect::Launch { agent: id, how });
        Ok(())
    }

    /// An agent below the caller.
    pub(super) fn below(&self, caller: AgentId, agent: AgentId) -> Result<&Agent, AgentError> {
        let found = self.known(agent)?;
        if self.is_below(agent, caller) { Ok(found) } else { Err(AgentError::Foreign(agent)) }
    }

    pub(super) fn known(&self, agent: AgentId) -> Result<&Agent, AgentError> {
        let was_there = agent.0 < self.numbers.next_agent_id;
        let error = if was_there { AgentError::Gone(agent) } else { AgentError::NotFound(agent) };
        self.agents.get(&agent).ok_or(error)
    }

    fn send(&mut self, caller: AgentId, request: SendRequest) -> Outcome {
        let SendRequest { agent, prompt, label, interrupt, is_quiet } = request;
        if agent == caller {
            return Err(AgentError::ToItself);
        }
        self.known(agent)?;
        let is_below = self.is_below(agent, caller);
        if !is_below && !self.is_below(caller, agent) {
            return Err(AgentError::Foreign(agent));
        }
        if interrupt && !is_below {
            let is_root = agent == AgentId::ROOT;
            return Err(if is_root { AgentError::InterruptsRoot } else { AgentError::InterruptsAbove });
        }
        match prompt.as_deref() {
            Some(prompt) => checked_prompt(prompt)?,
            None if interrupt => {}
            None => return Err(AgentError::NothingToSay),
        }
        let label = checked_label(label.as_deref())?;
        let summary = prompt.as_deref().and_then(summarized);
        self.may_take(agent, prompt.as_ref().map_or(0, String::len), is_quiet)?;
        // The turn that is stopped must not read the message, which is for the next one.
        if interrupt {
            self.interrupt(agent);
        }
        if let Some(prompt) = prompt {
            self.post(caller, agent, Some(prompt), interrupt, is_quiet);
        }
        let found = self.get(agent).ok_or(AgentError::Gone(agent))?;
        if agent == AgentId::ROOT {
            return Ok(Reply::ToRoot { thread: found.thread(), label, summary });
        }
        if label.is_some() {
            found.summary.label = label;
        }
        Ok(Reply::Agent(Box::new((&*found).into())))
    }

    /// Whether an agent can take a message of this size, and the work that it means unless it is quiet.
    pub(super) fn may_take(&self, agent: AgentId, bytes: usize, is_quiet: bool) -> Result<(), AgentError> {
        if self.is_closing {
            return Err(AgentError::Closing);
        }
        let found = self.known(agent)?;
        if !found.has_room(bytes) {
            return Err(AgentError::Full(agent));
        }
        if agent != AgentId::ROOT && !is_quiet && found.is_over() && self.active() >= self.limits.active {
            return Err(AgentError::NoSlot(self.limits.active));
        }
        Ok(())
    }

    fn list(&self, caller: AgentId, all: bool) -> Reply {
        let is_listed =
            |agent: &&Agent| agent.summary.parent_agent_id == Some(caller) || all && self.is_below(agent.id(), caller);
        Reply::Agents(self.agents.values().filter(is_listed).map(AgentView::from).collect())
    }

    fn list_below(&self, caller: AgentId, prefix: Option<&str>) -> Outcome {
        let prefix = prefix.map(|prefix| self.resolved_path(caller, prefix)).transpose()?;
        let is_within = |agent: &Agent| {
            prefix.as_ref().is_none_or(|prefix| {
                agent.path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        let listed = self.agents.values().filter(|agent| self.is_below(agent.id(), caller) && is_within(agent));
        Ok(Reply::Agents(listed.map(AgentView::from).collect()))
    }

    fn cancel_for(&mut self, caller: AgentId, agent: AgentId, reason: Option<String>) -> Outcome {
        self.below(caller, agent)?;
        self.cancel(agent, Some(caller), reason.as_deref());
        self.below(caller, agent).map(|agent| Reply::Agent(Box::new(agent.into())))
    }

    fn prune(&mut self, caller: AgentId, request: PruneRequest) -> Outcome {
        let mut pruned = Pruned::default();
        let agents = match &request.agents {
            Some(agents) if agents.is_empty() => return Err(AgentError::NothingToPrune),
            Some(agents) => agents.clone(),
            None => self.agents.values().filter(|a| a.summary.parent_agent_id == Some(caller)).map(Agent::id).collect(),
        };
        for agent in agents {
            let Ok(found) = self.below(caller, agent) else {
                pruned.unknown.push(agent);
                continue;
            };
            let thread = found.thread();
            let is_active = |agent: &AgentId| self.agents.get(agent).is_some_and(|agent| !agent.is_over());
            if request.completed_only && self.subtree(agent).iter().any(is_active) {
                pruned.skipped_active.push(thread);
                continue;
            }
            self.delete(caller, agent);
            pruned.pruned.push(thread);
        }
        Ok(Reply::Pruned { request, pruned })
    }

    /// Cancels an agent and everything below it, and ends their threads. They stay known, so that they can be opened
    /// again.
    fn close_agent(&mut self, caller: AgentId, agent: AgentId) -> Outcome {
        let view = AgentView::from(self.below(caller, agent)?);
        self.cancel(agent, Some(caller), None);
        for closed in self.subtree(agent) {
            let Some(found) = self.get(closed).filter(|found| found.phase != Phase::Unloaded) else { continue };
            found.phase = Phase::Unloaded;
            let call = found.launch_call.take();
            self.effect(Effect::Close { agent: closed });
            if let Some(call) = call {
                self.reply(call, Err(AgentError::Gone(closed)));
            }
        }
        Ok(Reply::Agent(Box::new(view)))
    }

    fn delete_for(&mut self, caller: AgentId, agent: AgentId) -> Outcome {
        let view = AgentView::from(self.below(caller, agent)?);
        self.delete(caller, agent);
        Ok(Reply::Agent(Box::new(view)))
    }

    /// Deletes an agent and everything below it.
    fn delete(&mut self, caller: AgentId, agent: AgentId) {
        self.cancel(agent, Some(caller), None);
        let all = self.subtree(agent);
        self.keep_mail_of(&all);
        let mut logs = BTreeSet::from([AgentId::ROOT]);
        for gone in all {
            let parent = self.parent_of(gone);
            let Some(removed) = self.agents.remove(&gone) else { continue };
            self.queue.retain(|queued| *queued != gone);
            self.watchdogs.retain(|watchdog| watchdog.owner != gone && watchdog.target != gone);
            self.effect(Effect::Close { agent: gone });
            let deleted = SubagentDeleted { agent_id: gone, session_id: removed.thread() };
            let log = self.log_of(parent);
            self.tell(log, AgentEvent::Lifecycle(SubagentLifecycleEvent::Deleted(deleted)));
            logs.insert(log);
            if let Some(call) = removed.launch_call {
                self.reply(call, Err(AgentError::Gone(gone)));
            }
        }
        // A log that tells of a deletion is the reason why others are not read any more, with the numbers in them.
        for log in logs {
            self.tell(log, AgentEvent::Numbers(self.numbers));
        }
    }

    /// Tells the recipients' logs about unread mail of agents whose logs are not read any more.
    fn keep_mail_of(&mut self, gone: &[AgentId]) {
        let is_kept = |mail: &&Mail| gone.contains(&mail.message.sender_agent_id);
        let survivors = self.agents.values().filter(|agent| !gone.contains(&agent.id()));
        let kept: Vec<Mail> = survivors.flat_map(|agent| agent.inbox.iter().filter(is_kept)).cloned().collect();
        for mail in kept {
            let log = self.log_of(mail.message.recipient_agent_id);
            self.tell(log, AgentEvent::Mail(mail));
        }
    }

    /// Starts the thread of an agent again, so that it is loaded. Returns the reply if it is.
    fn reopen(&mut self, caller: AgentId, call: CallNumber, agent: AgentId) -> Result<Option<Reply>, AgentError> {
        if self.is_closing {
            return Err(AgentError::Closing);
        }
        let found = self.below(caller, agent)?;
        if found.phase != Phase::Unloaded || found.launch_call.is_some() {
            return Ok(Some(Reply::Agent(Box::new(found.into()))));
        }
        self.load(agent);
        if let Some(found) = self.get(agent) {
            found.launch_call = Some(call);
        }
        Ok(None)
    }

    fn watch(
        &mut self,
        caller: AgentId,
        agent: AgentId,
        interval_s: u64,
        message: Option<String>,
        is_canceled: bool,
    ) -> Outcome {
        let place = self.watchdogs.iter().position(|known| known.owner == caller && known.target == agent);
        if is_canceled {
            let action = if place.is_some() { WatchAction::Canceled } else { WatchAction::NotFound };
            if let Some(place) = place {
                self.remove_watchdog(place);
            }
            return Ok(Reply::Watch { agent, interval_s, message, action });
        }
        if interval_s < LEAST_INTERVAL {
            return Err(AgentError::ShortInterval);
        }
        self.known(agent)?;
        if agent != caller && !self.is_below(agent, caller) && !self.is_below(caller, agent) {
            return Err(AgentError::Foreign(agent));
        }
        if let Some(message) = &message {
            checked_prompt(message)?;
        }
        let watchdog = Watchdog::new(caller, agent, interval_s, message.clone(), self.now_ms);
        let told = WatchdogChange { agent_id: agent, interval_s, message: Some(watchdog.message.clone()) };
        let action = if let Some(place) = place {
            self.watchdogs[place] = watchdog;
            WatchAction::Replaced
        } else {
            self.watchdogs.push(watchdog);
            WatchAction::Started
        };
        self.tell(caller, AgentEvent::Watchdog(told));
        Ok(Reply::Watch { agent, interval_s, message, action })
    }

    /// The numbers that were given out so far.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        self.numbers
    }
}

fn checked_prompt(prompt: &str) -> Result<(), AgentError> {
    if prompt.trim().is_empty() {
        return Err(AgentError::EmptyPrompt);
    }
    if prompt.len() > MOST_BYTES { Err(AgentError::LongPrompt(prompt.len())) } else { Ok(()) }
}

fn checked_label(label: Option<&str>) -> Result<Option<String>, AgentError> {
    let label = label.and_then(trimmed_label);
    match label.as_ref().map(|label| label.chars().count()) {
        Some(length) if length > LABEL_CHARS => Err(AgentError::LongLabel(length)),
        _ => Ok(label),
    }
}
