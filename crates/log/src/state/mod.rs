//! The state of a thread: the fold of its events.
//!
//! One function computes it, event by event, both for the session that emits the events and for readers of a file. The
//! state from the file alone is therefore the state of the session.

#[cfg(any(test, feature = "testing"))]
mod canonical;
mod conversation;
mod item_role;
#[cfg(test)]
mod laws;
mod state_reader;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use codex_wire::goal::Goal;
use codex_wire::plan::UpdatePlanArgs;
use codex_wire::rollout::SessionMeta;
use codex_wire::tokens::{RateLimitSnapshot, TokenUsageInfo};

use self::item_role::ItemRole;
use crate::agents::AgentsState;
use crate::keys::IdempotencyKeys;
use crate::plans::Plans;
use crate::queue::QueueState;
use crate::settings::Settings;
use crate::{Body, Event, Item, Outcome, Question, Record, TurnId, UserMessage};
use codex_wire::budget::Used;

pub use self::item_role::EXTERNAL;
pub use conversation::{Conversation, HistoryStart, OpenCall, TurnBegin};
pub use state_reader::StateReader;

/// The treatment of an interrupted answer. Clients expect one or the other, and files do not record it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupted {
    /// Its messages and calls stay in the conversation.
    Kept,
    /// It is removed from the conversation, with its calls.
    Forgotten,
}

/// The token usage of a thread, and the rate limits of the account.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tokens {
    /// The usage; `None` before the first answer.
    pub info: Option<TokenUsageInfo>,
    /// The latest rate limits of the account; `None` if the provider has not sent any.
    pub rate_limits: Option<RateLimitSnapshot>,
}

impl Tokens {
    /// Updates the limits that came with an answer. Empty ones change nothing.
    pub fn limit(&mut self, limits: RateLimitSnapshot) {
        if self.rate_limits.is_none() || limits != RateLimitSnapshot::default() {
            self.rate_limits = Some(limits);
        }
    }
}

/// A turn that waits for the account's allowance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitWait {
    /// The provider's message.
    pub message: String,
    /// The end of the wait, in milliseconds of Unix time.
    pub until_ms: i64,
}

/// A turn without an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTurn {
    /// Its id, if the log contains it.
    pub id: Option<TurnId>,
    /// Whether its start was recorded, so that only a recorded end can end it. In files without such records, the last
    /// item decides.
    pub is_announced: bool,
}

/// The state of a thread.
#[derive(Debug, Clone)]
pub struct ThreadState {
    /// The id of the thread.
    pub meta: SessionMeta,
    /// The settings of the latest request.
    pub settings: Option<Arc<Settings>>,
    pub tokens: Tokens,
    /// The use of the thread and the agents below it, if it was told: threads without a budget do not tell it.
    pub used: Option<Used>,
    pub goal: Option<Arc<Goal>>,
    /// The latest plan of the model.
    pub plan: Option<UpdatePlanArgs>,
    /// The latest keys of accepted client messages.
    pub keys: IdempotencyKeys,
    /// The turn without an end.
    pub turn: Option<OpenTurn>,
    /// The limit that the turn waits for, if it continues when the thread is resumed.
    pub limit_wait: Option<LimitWait>,
    /// The unanswered questions, oldest first.
    pub questions: Vec<Arc<Question>>,
    /// The agents of the thread.
    pub agents: AgentsState,
    /// Input that waits for its turn.
    pub queue: QueueState,
    /// The conversation with the model.
    pub conversation: Conversation,
    interrupted: Interrupted,
}

impl ThreadState {
    /// The state of a thread of which only the start is known.
    #[must_use]
    pub fn new(meta: SessionMeta, interrupted: Interrupted) -> Self {
        Self {
            meta,
            settings: None,
            tokens: Tokens::default(),
            used: None,
            goal: None,
            plan: None,
            keys: IdempotencyKeys::default(),
            turn: None,
            limit_wait: None,
            questions: Vec::new(),
            agents: AgentsState::default(),
            queue: QueueState::default(),
            conversation: Conversation::default(),
            interrupted,
        }
    }

    /// The treatment of interrupted answers.
    #[must_use]
    pub fn interrupted(&self) -> Interrupted {
        self.interrupted
    }

    /// Processes one event.
    pub fn apply(&mut self, event: &Event) {
        match &event.body {
            Body::ThreadStarted(started) => self.meta.clone_from(&started.meta),
            Body::TurnStarted { .. } => self.turn_started(event.turn.as_ref()),
            Body::ModelAsked(settings) => {
                self.settings = Some(Arc::clone(settings));
                self.limit_wait = None;
                self.conversation.mark_sent();
            }
            Body::Recorded(record) => self.recorded(record),
            Body::ItemCompleted(item) => self.item_completed(item, event.turn.as_ref()),
            Body::Asked(question) => {
                self.questions.retain(|asked| asked.id != question.id);
                self.questions.push(Arc::clone(question));
            }
            Body::Answered { question, .. } => self.questions.retain(|asked| asked.id != *question),
            Body::PlanUpdated(plan) => self.plan = Some(plan.clone()),
            Body::ReviewExited(_) => self.conversation.keep_unsent(),
            Body::Compacted(compacted) => {
                self.conversation.compact(compacted);
                self.turn = self.turn.take().filter(|turn| turn.is_announced);
            }
            Body::WentBack { replacement, .. } => {
                let mut plans = Plans::default();
                self.plan = replacement.iter().filter_map(|item| plans.take(None, &item.json())).last();
                self.conversation.replace(replacement);
            }
            Body::RolledBack(gone) => {
                self.conversation.roll_back(gone);
                self.turn = None;
                self.limit_wait = None;
            }
            Body::LimitReached { failure, until_ms, goes_on } => {
                let wait = LimitWait { message: failure.message.clone(), until_ms: *until_ms };
                self.limit_wait = goes_on.then_some(wait);
            }
            Body::GoalChanged(goal) => self.goal = Some(Arc::clone(goal)),
            Body::GoalCleared => self.goal = None,
            Body::TokensCounted { info, rate_limits } => self.counted(info.as_ref(), rate_limits.as_deref()),
            Body::Agent(told) => self.agents.apply(told),
            Body::Budget(told) => self.used = Some(*told.used()),
            Body::Queue(told) => self.queue.apply(told),
            Body::TurnEnded(outcome) => self.turn_ended(outcome),
            Body::ItemStarted(_)
            | Body::ItemDelta { .. }
            | Body::ItemInterrupted(_)
            | Body::TerminalWritten { .. }
            | Body::DiffChanged(_)
            | Body::ImageViewed { .. }
            | Body::ReviewEntered(_)
            | Body::AnswerRetried { .. }
            | Body::Warning { .. }
            | Body::ServerChanged(_)
            | Body::ServersStarted(_)
            | Body::CallProgressed { .. }
            | Body::Unread(_) => {}
        }
    }

    fn turn_started(&mut self, id: Option<&TurnId>) {
        self.close_turn();
        self.turn = Some(OpenTurn { id: id.cloned(), is_announced: true });
        self.conversation.begin_turn(None, id.cloned());
    }

    fn turn_ended(&mut self, outcome: &Outcome) {
        self.close_turn();
        if self.interrupted == Interrupted::Forgotten && matches!(outcome, Outcome::Aborted(_)) {
            self.conversation.forget_unsent();
        }
    }

    fn close_turn(&mut self) {
        self.turn = None;
        self.limit_wait = None;
        self.questions.clear();
    }

    fn recorded(&mut self, record: &Record) {
        let Some(role) = self.conversation.append(record) else { return };
        if let ItemRole::Output(id) = &role {
            self.questions.retain(|asked| asked.item().as_str() != *id);
        }
        // In files without records of ends, a turn is over when the model has sent a message without a later call.
        let is_announced = self.turn.as_ref().is_some_and(|turn| turn.is_announced);
        let is_of_model = role == ItemRole::Assistant || !role.is_message();
        if is_of_model && !is_announced {
            self.turn = (!role.is_message()).then_some(OpenTurn { id: None, is_announced: false });
        }
    }

    fn item_completed(&mut self, item: &Item, turn: Option<&TurnId>) {
        if let Some(said) = item.said().filter(|_| !item.is_kept_elsewhere()) {
            self.said(said, turn);
        }
        self.agents.item_completed(item);
    }

    fn said(&mut self, said: &UserMessage, turn: Option<&TurnId>) {
        let is_announced = self.turn.as_ref().is_some_and(|turn| turn.is_announced);
        match self.conversation.claim() {
            Some(place) if self.begins_turn(is_announced, turn) => {
                self.conversation.begin_turn(Some(place), turn.cloned());
            }
            Some(_) => {}
            None => self.conversation.hear(said.texts().join("\n")),
        }
        if !is_announced {
            self.turn = Some(OpenTurn { id: turn.cloned(), is_announced });
        }
        if let (Some(key), Some(turn)) = (&said.key, turn) {
            self.keys.note(Arc::clone(key), turn.clone());
            self.queue.said(key);
        }
    }

    /// Whether a message starts a turn: in files without records of starts every message does, unless it names the
    /// previous turn. After a compaction, only the messages after it are known of its turn.
    fn begins_turn(&self, is_announced: bool, turn: Option<&TurnId>) -> bool {
        match self.conversation.turns().last() {
            None => true,
            Some(last) => !is_announced && (turn.is_none() || last.id.as_ref() != turn),
        }
    }

    fn counted(&mut self, info: Option<&TokenUsageInfo>, rate_limits: Option<&RateLimitSnapshot>) {
        if let Some(info) = info {
            self.tokens.info = Some(info.clone());
        }
        if let Some(limits) = rate_limits {
            self.tokens.limit(limits.clone());
        }
    }
}
