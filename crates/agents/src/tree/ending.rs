//! Beginnings and ends of turns, tasks and agents.

use codex_log::agents::{AgentEvent, Inherited, TaskResult};
use codex_tools::agents::ChildStarted;
use codex_wire::agent::{
    AgentId, SubagentCompletion, SubagentDeleted, SubagentLifecycleEvent, SubagentStatus, SubagentStatusChange,
};
use codex_wire::event::TurnAbortReason;

use super::agent::{Agent, CutOff, Phase};
use super::request::Reply;
use super::{AgentError, Effect, Tree, TurnEnd};

/// The reason for the end of agents that ran when the program ended.
pub(super) const PROGRAM_ENDED: &str = "the program ended";
/// The reason for the end of an agent whose thread is gone.
const THREAD_ENDED: &str = "its thread has ended";

impl Tree {
    pub(super) fn launched(&mut self, agent: AgentId, result: Result<ChildStarted, String>) {
        let Some(found) = self.get(agent).filter(|found| found.phase == Phase::Launching) else { return };
        let call = found.launch_call.take();
        let is_over = std::mem::take(&mut found.is_over_early);
        let result = if is_over { result.and(Err(THREAD_ENDED.to_owned())) } else { result };
        let ChildStarted { has_turn, inherited } = match result {
            Ok(started) => started,
            Err(message) => return self.not_launched(agent, call, message),
        };
        found.phase = Phase::Resting;
        let has_history = std::mem::take(&mut found.is_new) && inherited > 0;
        if has_history {
            found.inherited = inherited;
        }
        let is_continued = found.cut_off == CutOff::Continued;
        if is_continued {
            found.cut_off = CutOff::None;
        }
        let is_lost = is_continued && !has_turn && !found.is_over();
        let (mail, thread) = (found.inbox.clone(), found.thread());
        if has_history {
            let told = Inherited { agent_id: agent, session_id: thread, messages: inherited };
            self.tell_parent(agent, AgentEvent::Inherited(told));
        }
        if has_turn {
            self.turn_continued(agent);
        }
        for mail in mail {
            self.effect(Effect::Deliver { agent, mail });
        }
        if is_lost {
            // Its policies have changed, so that its question is not asked again.
            self.finish(agent, SubagentCompletion::Failed { message: PROGRAM_ENDED.to_owned() });
        }
        let Some(found) = self.agents.get(&agent) else { return };
        let is_waiting = found.phase == Phase::Resting && !found.is_over();
        let has_work = is_waiting && found.inbox.iter().any(|mail| !mail.is_quiet);
        if is_waiting && !has_work && *found.status() == SubagentStatus::Queued {
            self.set_status(agent, SubagentStatus::Ready);
        } else if has_work {
            self.enqueue(agent);
            self.wake_next();
        } else if *found.status() == SubagentStatus::Idle {
            // An agent below it may have ended while it was not loaded.
            self.go_on(agent);
            self.wake_next();
        }
        if let (Some(call), Some(found)) = (call, self.agents.get(&agent)) {
            let reply = Reply::Agent(Box::new(found.into()));
            self.reply(call, Ok(reply));
        }
    }

    /// The thread of an agent continues a turn. If its task has ended meanwhile, or it was interrupted, the turn is stopped.
    fn turn_continued(&mut self, agent: AgentId) {
        let Some(found) = self.get(agent) else { return };
        if found.is_over() {
            found.phase = Phase::Canceling;
            self.effect(Effect::Stop { agent });
        } else {
            let is_interrupted = found.inbox.iter().any(|mail| mail.message.interrupt);
            found.phase = Phase::Turn;
            self.queue.retain(|queued| *queued != agent);
            self.set_status(agent, SubagentStatus::Running);
            self.tell_root(agent);
            if is_interrupted {
                self.interrupt(agent);
            }
        }
    }

    /// Tells the log of the root that an agent further below is at work. Clients of the root need its question, and do not
    /// hear the agents between them unless those are at work too.
    fn tell_root(&mut self, agent: AgentId) {
        let Some(found) = self.agents.get(&agent).filter(|found| found.depth > 1) else { return };
        let (session_id, status) = (found.thread(), found.status().clone());
        let change = SubagentStatusChange { agent_id: agent, session_id, status };
        self.tell(AgentId::ROOT, AgentEvent::Lifecycle(SubagentLifecycleEvent::Status(change)));
    }

    /// A new agent that could not start is rolled back; another one fails.
    fn not_launched(&mut self, agent: AgentId, call: Option<super::CallNumber>, message: String) {
        let Some(found) = self.get(agent) else { return };
        (found.phase, found.cut_off) = (Phase::Unloaded, CutOff::None);
        let (is_new, is_over, thread) = (found.is_new, found.is_over(), found.thread());
        if is_new {
            let log = self.log_of(self.parent_of(agent));
            self.agents.remove(&agent);
            let deleted = SubagentDeleted { agent_id: agent, session_id: thread };
            self.tell(log, AgentEvent::Lifecycle(SubagentLifecycleEvent::Deleted(deleted)));
        } else if !is_over {
            self.finish(agent, SubagentCompletion::Failed { message: message.clone() });
        }
        if let Some(call) = call {
            self.reply(call, Err(AgentError::Launch(message)));
        }
    }

    pub(super) fn turn_started(&mut self, agent: AgentId) {
        self.queue.retain(|queued| *queued != agent);
        let Some(found) = self.get(agent) else { return };
        if matches!(found.phase, Phase::Resting | Phase::Waking | Phase::Unloaded | Phase::Launching) {
            found.phase = Phase::Turn;
        }
        if found.phase == Phase::Turn && agent != AgentId::ROOT {
            found.completion = None;
            found.reason = None;
            self.set_status(agent, SubagentStatus::Running);
        }
    }

    pub(super) fn rested(&mut self, agent: AgentId) {
        let Some(found) = self.get(agent) else { return };
        match found.phase {
            Phase::Waking | Phase::Interrupting => {
                found.phase = Phase::Resting;
                if agent != AgentId::ROOT && !found.is_over() {
                    self.set_status(agent, SubagentStatus::Ready);
                }
            }
            Phase::Canceling => found.phase = Phase::Resting,
            Phase::Unloaded | Phase::Launching | Phase::Resting | Phase::Turn => {}
        }
        self.go_on(agent);
    }

    pub(super) fn turn_ended(&mut self, agent: AgentId, end: TurnEnd) {
        let Some(found) = self.get(agent) else { return };
        let phase = std::mem::replace(&mut found.phase, Phase::Resting);
        if agent == AgentId::ROOT {
            // A person who has stopped the root wants it to stay so, and an error may come again at once.
            self.wakes_root = matches!(end, TurnEnd::Completed { .. });
            return;
        }
        match (phase, end) {
            (Phase::Unloaded | Phase::Launching, _) => {
                if let Some(found) = self.get(agent) {
                    found.phase = phase;
                }
                return;
            }
            // Its end was told already.
            (Phase::Canceling | Phase::Resting, _) => {}
            (Phase::Interrupting, _) => self.set_status(agent, SubagentStatus::Ready),
            (_, TurnEnd::Completed { last_message }) => {
                self.finish(agent, SubagentCompletion::Completed { last_message });
            }
            (_, TurnEnd::Failed { message }) => self.finish(agent, SubagentCompletion::Failed { message }),
            (_, TurnEnd::Aborted) => {
                self.finish(agent, SubagentCompletion::Canceled { reason: TurnAbortReason::Interrupted });
            }
        }
        self.go_on(agent);
    }

    /// Sees to mail that has come in the meantime.
    fn go_on(&mut self, agent: AgentId) {
        let Some(found) = self.agents.get(&agent) else { return };
        let is_resting = agent != AgentId::ROOT && found.phase == Phase::Resting;
        let has_mail = found.inbox.iter().any(|mail| !mail.is_quiet);
        if is_resting && !has_mail && *found.status() == SubagentStatus::Queued {
            // The turn that was being stopped has read the mail of the next task.
            self.set_status(agent, SubagentStatus::Ready);
        } else if is_resting && has_mail && *found.status() != SubagentStatus::Canceled {
            if found.is_over() {
                self.set_status(agent, SubagentStatus::Queued);
            }
            if let Some(found) = self.get(agent) {
                found.completion = None;
            }
            self.enqueue(agent);
        }
    }

    /// Ends the task of an agent and tells its parent.
    pub(super) fn finish(&mut self, agent: AgentId, completion: SubagentCompletion) {
        self.end_task(agent, completion.clone(), None);
        self.post_result(agent, completion, None);
    }

    fn end_task(&mut self, agent: AgentId, completion: SubagentCompletion, reason: Option<&str>) {
        let Some(found) = self.get(agent) else { return };
        found.completion = Some(completion.clone());
        found.reason = reason.map(str::to_owned);
        let result = TaskResult {
            agent_id: agent,
            session_id: found.thread(),
            completion: completion.clone(),
            reason: reason.map(str::to_owned),
        };
        self.queue.retain(|queued| *queued != agent);
        let status = match completion {
            SubagentCompletion::Completed { .. } => SubagentStatus::Idle,
            SubagentCompletion::Canceled { .. } => SubagentStatus::Canceled,
            SubagentCompletion::Failed { .. } => SubagentStatus::Failed,
        };
        self.set_status(agent, status);
        self.tell_parent(agent, AgentEvent::Result(result));
    }

    /// Cancels an agent and everything below it.
    pub(super) fn cancel(&mut self, agent: AgentId, caller: Option<AgentId>, reason: Option<&str>) {
        let all = self.subtree(agent);
        for at in all.iter().copied() {
            self.drop_watchdogs(at);
            let Some(found) = self.get(at) else { continue };
            let is_over = found.is_over();
            match found.phase {
                Phase::Waking | Phase::Turn | Phase::Interrupting => {
                    found.phase = Phase::Canceling;
                    self.effect(Effect::Stop { agent: at });
                }
                Phase::Unloaded | Phase::Launching | Phase::Resting | Phase::Canceling => {}
            }
            if is_over {
                continue;
            }
            let completion = SubagentCompletion::Canceled { reason: TurnAbortReason::Interrupted };
            self.end_task(at, completion.clone(), reason);
            // The caller knows, and the agents that are canceled with it need not.
            let parent = self.parent_of(at);
            if Some(parent) != caller && !all.contains(&parent) {
                self.post_result(at, completion, reason);
            }
        }
    }

    /// Cancels everything below an agent, which knows the reason.
    pub(super) fn cancel_below(&mut self, agent: AgentId, reason: &str) {
        let is_child = |child: &&super::Agent| child.summary.parent_agent_id == Some(agent);
        let children: Vec<AgentId> = self.agents.values().filter(is_child).map(super::Agent::id).collect();
        for child in children {
            self.cancel(child, Some(agent), Some(reason));
        }
    }

    pub(super) fn interrupt(&mut self, agent: AgentId) {
        let Some(found) = self.get(agent) else { return };
        match found.phase {
            Phase::Waking | Phase::Turn => {
                found.phase = Phase::Interrupting;
                self.effect(Effect::Stop { agent });
            }
            Phase::Unloaded | Phase::Launching | Phase::Resting | Phase::Interrupting | Phase::Canceling => {}
        }
    }

    pub(super) fn lost(&mut self, agent: AgentId) {
        if agent == AgentId::ROOT {
            return self.close();
        }
        let Some(found) = self.get(agent).filter(|found| found.phase != Phase::Unloaded) else { return };
        if found.phase == Phase::Launching {
            // The result of the launch follows, and is the better reason.
            found.is_over_early = true;
            return;
        }
        found.phase = Phase::Unloaded;
        let (is_over, is_busy) = (found.is_over(), *found.status() != SubagentStatus::Ready);
        if !is_over && is_busy {
            self.finish(agent, SubagentCompletion::Failed { message: THREAD_ENDED.to_owned() });
        }
    }

    /// Tells about an agent that ran when the program ended.
    pub(super) fn tell_of_lost(&mut self, agent: AgentId) {
        if let Some(found) = self.get(agent) {
            found.cut_off = CutOff::None;
            found.summary.status = SubagentStatus::Running;
        }
        self.finish(agent, SubagentCompletion::Failed { message: PROGRAM_ENDED.to_owned() });
    }

    /// Ends all agents, because the root ends.
    pub(super) fn close(&mut self) {
        if std::mem::replace(&mut self.is_closing, true) {
            return;
        }
        let waits = std::mem::take(&mut self.waits);
        for wait in waits {
            self.reply(wait.call, Err(AgentError::Closing));
        }
        // Their owners' logs keep them, so that they run again when the root is resumed.
        self.watchdogs.clear();
        let children: Vec<AgentId> = self.children().filter(|agent| agent.depth == 1).map(Agent::id).collect();
        for child in children {
            self.cancel(child, Some(AgentId::ROOT), Some("the session ended"));
        }
        let loaded: Vec<AgentId> =
            self.children().filter(|agent| agent.phase != Phase::Unloaded).map(Agent::id).collect();
        for agent in loaded.into_iter().rev() {
            if let Some(found) = self.get(agent) {
                found.phase = Phase::Unloaded;
            }
            self.effect(Effect::Close { agent });
        }
    }
}
