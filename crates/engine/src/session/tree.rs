//! The session as an agent of a tree: its mail, and the orders of the tree.

use std::sync::Arc;

use codex_log::agents::{AgentEvent, AgentsState, MailRead};
use codex_log::history::SharedHistory;
use codex_log::settings::Settings;
use codex_log::{Abort, Body, ItemId, Record, TurnId};
use codex_tools::agents::{AgentOrder, ChildHistory, MailTime, Unread, UnreadForm};
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use codex_wire::response::{FunctionCall, FunctionCallOutput, FunctionCallOutputPayload, Message, ResponseItem};

use super::Session;
use crate::setup::Setup;
use crate::turn::{Turn, UserMessage};

impl Session {
    /// Takes its place in the tree. A copy of another thread has that thread's agents and goal in its file, which are not
    /// its own.
    pub(super) fn attach_agents(&mut self) {
        let Some(agents) = self.calls.agents.clone() else { return };
        if is_forked_child(&self.setup) {
            if !self.state.agents.is_empty() {
                self.emit(Body::Agent(Arc::new(AgentEvent::All(Box::default()))));
            }
            if self.state.goal.is_some() {
                self.emit(Body::GoalCleared);
            }
        }
        agents.attach(self.started.meta.id, &self.state.agents, &self.profile.settings);
    }

    /// A copy of its parent's conversation goes on as an agent of its own: with its last turns only, if that is wanted,
    /// and with the instructions of its role behind them.
    pub(super) fn begin_as_fork(&mut self, role: Option<Message>) {
        let Some(child) = self.setup.child.clone() else { return };
        let ChildHistory::Fork { turns, .. } = &child.history else { return };
        if let Some(turns) = turns {
            let conversation = &self.state.conversation;
            let first = conversation.turns().len().checked_sub(*turns).filter(|first| *first > 0);
            if let Some(begin) = first.and_then(|first| conversation.turns().get(first)) {
                let kept = conversation.items().get(begin.item..).unwrap_or_default();
                let replacement = conversation.preface().iter().chain(kept).cloned().collect();
                self.emit(Body::WentBack { response_id: String::new(), replacement });
            }
        }
        // The call that made it and its output are new.
        self.conversations.inherited = self.state.conversation.items().len().saturating_sub(2);
        if let Some(role) = role {
            self.tell_model(role);
        }
    }

    pub(super) async fn obey_tree(&mut self, order: AgentOrder) {
        match order {
            AgentOrder::Log(bodies) => {
                for body in bodies {
                    self.emit(body);
                }
                self.publish().await;
            }
            AgentOrder::Stop => {
                if !self.stop(Abort::Interrupted).await {
                    self.tell_rested();
                }
            }
            AgentOrder::Tighten(above) => self.tighten(&above),
            AgentOrder::Charge(used) => {
                let charged = self.goals.charge_below(used.tokens);
                self.budget_charged(charged);
                self.publish().await;
                self.spend_below(used).await;
            }
            AgentOrder::Share(reply) => {
                self.publish().await;
                let is_whole = self.journal.is_saved();
                let shared = is_whole.then(|| Arc::new(self.shared_history()));
                // The tree may not wait any more.
                let _: Result<(), _> = reply.send(shared);
            }
            AgentOrder::Wake if self.turn.is_some() => {}
            AgentOrder::Wake => self.begin_with_mail().await,
        }
    }

    /// Uses no wider policies than these, in a running turn too. Commands that run already keep their sandbox.
    fn tighten(&mut self, above: &Settings) {
        self.profile.settings = Arc::new(self.profile.settings.tightened_by(above));
        if let Some(turn) = &mut self.turn {
            turn.settings = Arc::new(turn.settings.tightened_by(above));
            turn.tool_context = None;
        }
    }

    /// Logs that the budget of the goal is exhausted, if it is, and cancels the agents below, which work for the goal too.
    pub(super) fn budget_charged(&mut self, used_up: Option<Body>) {
        let Some(used_up) = used_up else { return };
        self.emit(used_up);
        if let Some(agents) = &self.calls.agents {
            agents.cancel_below("the token budget of the goal is exhausted");
        }
    }

    /// Stops the running turn for a person, and the agents below. Returns whether a turn was running, or agents of a root
    /// were at work.
    pub(super) async fn interrupt(&mut self, keeps_agents: bool) -> bool {
        let had_turn = self.stop(Abort::Interrupted).await;
        let Some(agents) = self.calls.agents.as_ref().filter(|_| !keeps_agents) else { return had_turn };
        let had_agents = self.setup.child.is_none() && agents.is_busy();
        // The calls of the turn have ended, so that none of them starts another agent.
        agents.cancel_below("the user interrupted the turn");
        had_turn || had_agents
    }

    /// The history for a copy of this thread.
    fn shared_history(&self) -> SharedHistory {
        let (state, position) = (self.state.clone(), self.journal.position());
        SharedHistory { state, position, cache_key: self.profile.cache_key }
    }

    fn tell_rested(&self) {
        if let Some(agents) = &self.calls.agents {
            agents.rested();
        }
    }

    /// Begins a turn with the mail that waits.
    async fn begin_with_mail(&mut self) {
        if self.is_finishing || !self.calls.agents.as_ref().is_some_and(|agents| agents.has_mail()) {
            return self.tell_rested();
        }
        let turn = TurnId::new(ThreadId::fresh().to_string());
        let (machine, effects) = Turn::with_mail(&turn, self.window(), self.turn_policy(&self.profile.settings));
        self.begin(turn, machine, None);
        self.tell_environment();
        self.perform(effects).await;
    }

    /// Puts the mail that waits into the conversation. The line that tells that it was read comes first, so that no
    /// mail is read twice.
    pub(super) fn take_mail(&mut self, when: MailTime) {
        let Some(agents) = self.calls.agents.clone().filter(|_| !self.conversations.is_review()) else { return };
        let unread = agents.take_mail(&self.state.agents, when);
        let mail: Vec<u64> = unread.iter().flat_map(|unread| unread.mail.iter().copied()).collect();
        if mail.is_empty() {
            return;
        }
        self.emit(Body::Agent(Arc::new(AgentEvent::Read(MailRead { mail }))));
        for Unread { form, .. } in unread {
            match form {
                UnreadForm::User(text) => {
                    let message = UserMessage {
                        id: ItemId::new(ThreadId::fresh().to_string()),
                        key: None,
                        content: vec![UserInput::text(text.clone())],
                        message: Message::user(text),
                        is_echoed: true,
                        context: Vec::new(),
                    };
                    for body in message.bodies() {
                        self.emit(body);
                    }
                }
                UnreadForm::Note(text) => self.tell_model(Message::user(text)),
                UnreadForm::Call { call_id, tool, arguments, output } => {
                    let call = FunctionCall {
                        id: None,
                        name: tool.to_owned(),
                        namespace: None,
                        arguments,
                        call_id: call_id.clone(),
                    };
                    let output = FunctionCallOutputPayload::Text(output);
                    self.record(ResponseItem::FunctionCall(call));
                    self.record(ResponseItem::FunctionCallOutput(FunctionCallOutput { call_id, output }));
                }
            }
        }
    }

    fn record(&mut self, item: ResponseItem) {
        if let Ok(record) = Record::new(item) {
            self.emit(Body::Recorded(record));
        }
    }

    /// Tells the agents again after a compaction: readers of the file begin there.
    pub(super) fn log_agents(&mut self) {
        if !self.state.agents.is_empty() {
            let all: AgentsState = self.state.agents.clone();
            self.emit(Body::Agent(Arc::new(AgentEvent::All(Box::new(all)))));
        }
    }

    /// Ends the agents below, and logs how.
    pub(super) async fn end_agents(&mut self) {
        let Some(agents) = &self.calls.agents else { return };
        let last = agents.close().await;
        if !last.is_empty() {
            self.tell_outside_turns(last).await;
        }
    }
}

/// Whether the thread is a child that began with a copy of its parent's history.
fn is_forked_child(setup: &Setup) -> bool {
    setup.child.as_ref().is_some_and(|child| matches!(child.history, ChildHistory::Fork { .. }))
}
