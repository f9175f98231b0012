//! One turn of the agent as a machine without I/O.
//!
//! It takes inputs (messages of the user, events of the model, outputs of calls) and returns effects (ask the model,
//! run a call, append to the log). It does not know what performs them, so every interleaving can be tested.
//!
//! Invariants: a turn ends exactly once and emits nothing afterwards; every call of the model gets exactly one output
//! before the model is asked again; an item that a client saw completed stays in the conversation.

mod answer;
mod calls;
mod failing;
mod repeats;
#[cfg(test)]
mod tests;
mod user_message;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use codex_log::{Body, Delta, Failure, ItemId, Outcome, Record, TurnId};
use codex_model::{Backoff, ModelEvent, Retry};
use codex_tools::agents::{MailTime, ThreadAgents};
use codex_tools::call::{ToolCall, call_of};
use codex_tools::registry::Registry;
use codex_wire::conversation_item::ItemOrigin;
use codex_wire::response::{FunctionCallOutputPayload, Message, ResponseItem};
use codex_wire::text::Text;
use codex_wire::tokens::{RateLimitSnapshot, TokenUsage};

use self::answer::AnswerItems;
use self::calls::{Calls, mended};
use self::failing::no_summary;
use self::repeats::{Repeated, Repeats, given_up};
pub(crate) use self::user_message::UserMessage;

/// The number of times that the oldest half of a conversation may be dropped, so that the rest fits into a request for
/// a summary.
const MOST_HALVINGS: u32 = 6;

/// An input of the machine.
#[derive(Debug)]
pub(crate) enum Input {
    /// The user has sent more input.
    UserSaid(UserMessage),
    /// The next event of the model's answer.
    Model(ModelEvent),
    /// The model's answer broke off, or there was none.
    AnswerFailed(Failure, Retry),
    /// The wait before a retry is over.
    RetryDue,
    /// A running call has ended, and whether it has failed.
    CallEnded(ItemId, FunctionCallOutputPayload, bool),
    /// The turn must end without being completed. The text is the output of calls that were running.
    Stop(Outcome, Vec<(ItemId, FunctionCallOutputPayload)>),
}

/// An effect to perform, in order.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Append to the log.
    Emit(Body),
    /// Count the tokens of an answer, update the account's limits, and publish both.
    Count { usage: Option<TokenUsage>, rate_limits: Option<RateLimitSnapshot> },
    /// Log the settings of the request. It precedes the first [`Effect::AskModel`] of an answer.
    NoteSettings,
    /// Put the mail of other agents into the conversation.
    TakeMail(MailTime),
    /// Ask the model with the current conversation.
    AskModel,
    /// Ask the model for a summary of the conversation, without this many of its oldest halves.
    AskForSummary { halvings: u32 },
    /// Replace the conversation by a summary.
    Compact(String),
    /// Repeat the last request, without the items that the model has sent since.
    AskAgain,
    /// Wait, and return [`Input::RetryDue`].
    Wait(Duration),
    /// Log the time until which the account allows no more requests, and return [`Input::RetryDue`] then.
    WaitForLimit(Limit),
    /// Run a call and return [`Input::CallEnded`].
    Run(ToolCall),
    /// Cancel the answer, the wait and the running calls.
    Cancel,
    /// Append the partial content of items that will not be completed.
    BreakOff,
    /// The turn is over.
    End(Outcome),
}

/// An exhausted allowance.
#[derive(Debug)]
pub(crate) struct Limit {
    /// The provider's message.
    pub(crate) failure: Failure,
    /// The length of the wait.
    pub(crate) after: Duration,
    /// Whether the turn continues when the thread is resumed.
    pub(crate) goes_on: bool,
}

/// The limits and retries of a turn.
#[derive(Debug)]
pub(crate) struct TurnPolicy {
    /// The maximum number of requests to the model.
    pub(crate) request_limit: u32,
    /// The maximum number of retries of a broken answer.
    pub(crate) retry_limit: u32,
    /// The wait before each retry.
    pub(crate) backoff: Backoff,
    /// Whether an interrupted answer is discarded, with its calls and its cost.
    pub(crate) forgets_interrupted: bool,
    /// The number of tokens in the window above which the conversation is compacted.
    pub(crate) compact_at: Option<i64>,
    /// The maximum number of running calls.
    pub(crate) calls_at_once: usize,
    /// Whether the turn waits until an exhausted allowance is restored.
    pub(crate) waits_for_limits: bool,
    /// The available tools.
    pub(crate) tools: Arc<Registry>,
    /// The other agents, whose mail the turn reads.
    pub(crate) agents: Option<Arc<dyn ThreadAgents>>,
    /// Whether mail comes before the outputs of calls.
    pub(crate) is_mail_first: bool,
}

/// The purpose of a request to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// An answer for the user.
    Answer,
    /// A summary of the conversation, after which the turn continues or ends.
    Summary { goes_on: bool },
    /// No request: the user runs a command.
    Nothing,
}

/// The model's window when a turn starts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Window {
    /// The size of the window in tokens, if known.
    pub(crate) size: Option<i64>,
    /// The number of tokens in it after the last answer.
    pub(crate) used: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Answering,
    Waiting,
    /// The account's allowance is exhausted.
    Limited,
    Calling,
    Over,
}

#[derive(Debug)]
pub(crate) struct Turn {
    phase: Phase,
    purpose: Purpose,
    /// The number of tokens in the window after the last answer.
    used: i64,
    /// Whether the conversation was compacted in this turn. A second compaction would gain nothing.
    has_compacted: bool,
    /// The number of halves of the conversation that were dropped for the summary to fit.
    halvings: u32,
    policy: TurnPolicy,
    /// The number of retries since the last complete answer, so that an answer that always breaks after a call ends
    /// too.
    attempt: u32,
    /// The number of waits for the account's allowance since then.
    limit_waits: u32,
    /// The open items of the current answer.
    items: AnswerItems,
    /// Calls of the current answer that have no output yet; some run while the phase is `Calling`.
    calls: Calls,
    /// The number of requests so far, without retries.
    requests: u32,
    /// The calls that failed.
    repeats: Repeats,
    /// Messages for the model about calls that it repeats, which follow the outputs.
    pointed_out: Vec<String>,
    /// Messages of the user that arrived while the model was busy.
    joined: VecDeque<UserMessage>,
    /// Whether mail is read before the first output of a call.
    is_mail_due: bool,
    /// The last message of the current answer.
    last_message: Option<Text>,
    /// The provider's id of the last complete answer, if it sent one.
    last_response: Option<String>,
    /// The tokens of a complete answer whose calls have not all ended, if they are published only then.
    uncounted: Option<TokenUsage>,
}

impl Turn {
    /// Starts a turn with input of the user, and returns its first effects.
    pub(crate) fn start(id: &TurnId, said: UserMessage, window: Window, policy: TurnPolicy) -> (Self, Vec<Effect>) {
        let mut turn = Self::new(id, window, policy);
        turn.joined.push_back(said);
        let mut effects = vec![Effect::Emit(Body::TurnStarted { context_window: window.size })];
        turn.ask(&mut effects);
        (turn, effects)
    }

    /// Starts a turn with the mail of other agents, and returns what to do first.
    pub(crate) fn with_mail(id: &TurnId, window: Window, policy: TurnPolicy) -> (Self, Vec<Effect>) {
        let mut turn = Self::new(id, window, policy);
        let mut effects = vec![Effect::Emit(Body::TurnStarted { context_window: window.size })];
        turn.ask(&mut effects);
        (turn, effects)
    }

    /// Starts a turn that compacts the conversation, and returns its first effects.
    pub(crate) fn compact(id: &TurnId, window: Window, policy: TurnPolicy) -> (Self, Vec<Effect>) {
        let mut turn = Self::new(id, window, policy);
        let mut effects = vec![Effect::Emit(Body::TurnStarted { context_window: window.size })];
        turn.ask_for_summary(false, &mut effects);
        (turn, effects)
    }

    /// Starts a turn in which the user runs a command, and returns its first effects.
    pub(crate) fn user_shell(id: &TurnId, call: ToolCall, window: Window, policy: TurnPolicy) -> (Self, Vec<Effect>) {
        let mut turn = Self::new(id, window, policy);
        turn.purpose = Purpose::Nothing;
        turn.calls.push(call);
        let mut effects = vec![Effect::Emit(Body::TurnStarted { context_window: window.size })];
        turn.run_calls_or_ask(&mut effects);
        (turn, effects)
    }

    /// Resumes a turn whose calls wait for an answer of a person, and returns its first effects.
    pub(crate) fn revive(id: &TurnId, calls: Vec<ToolCall>, window: Window, policy: TurnPolicy) -> (Self, Vec<Effect>) {
        let mut turn = Self::new(id, window, policy);
        for call in calls {
            turn.calls.push(call);
        }
        let mut effects = Vec::new();
        turn.run_calls_or_ask(&mut effects);
        (turn, effects)
    }

    fn new(id: &TurnId, window: Window, policy: TurnPolicy) -> Self {
        Self {
            phase: Phase::Answering,
            purpose: Purpose::Answer,
            used: window.used,
            has_compacted: false,
            halvings: 0,
            calls: Calls::new(policy.calls_at_once, Arc::clone(&policy.tools)),
            policy,
            attempt: 0,
            limit_waits: 0,
            items: AnswerItems::new(id),
            requests: 0,
            repeats: Repeats::default(),
            pointed_out: Vec::new(),
            joined: VecDeque::new(),
            is_mail_due: false,
            last_message: None,
            last_response: None,
            uncounted: None,
        }
    }

    /// Whether the turn has a result for the user: a requested summary and a shell command of the user have none.
    pub(crate) fn is_for_user(&self) -> bool {
        !matches!(self.purpose, Purpose::Summary { goes_on: false } | Purpose::Nothing)
    }

    /// Whether it waits only for its calls.
    pub(crate) fn waits_for_calls(&self) -> bool {
        self.phase == Phase::Calling
    }

    /// Whether [`Self::revive`] restores the same turn: it is not a shell command of the user, and no input waits for
    /// it.
    pub(crate) fn can_be_set_aside(&self) -> bool {
        self.purpose == Purpose::Answer && self.joined.is_empty()
    }

    /// Prepares for being resumed later, and returns effects: the outputs of calls are stored, even those that an
    /// earlier call holds back.
    pub(crate) fn set_aside(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.calls.take_all_ended().into_iter().for_each(|output| record(output, &mut effects));
        effects
    }

    /// Takes one input and returns effects, in order.
    pub(crate) fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        match (self.phase, input) {
            (Phase::Over, _) => {}
            (Phase::Limited, Input::UserSaid(said)) => {
                // The person may know of a change, such as another login.
                self.joined.push_back(said);
                effects.push(Effect::Cancel);
                self.ask_after_limit(&mut effects);
            }
            (Phase::Limited, Input::RetryDue) => self.ask_after_limit(&mut effects),
            (_, Input::UserSaid(said)) => self.joined.push_back(said),
            (Phase::Answering, Input::Model(event)) => match (self.items.count(&event), self.purpose) {
                (Some(failure), _) => self.fail(failure, Retry::Never, &mut effects),
                (None, Purpose::Answer | Purpose::Nothing) => self.answer(event, &mut effects),
                (None, Purpose::Summary { goes_on }) => self.summarize(event, goes_on, &mut effects),
            },
            (Phase::Answering, Input::AnswerFailed(failure, retry)) => self.fail(failure, retry, &mut effects),
            (Phase::Waiting, Input::RetryDue) => {
                self.phase = Phase::Answering;
                effects.push(Effect::AskAgain);
            }
            (Phase::Calling, Input::CallEnded(id, output, has_failed)) => {
                self.end_call(&id, output, has_failed, &mut effects);
            }
            (_, Input::Stop(outcome, outputs)) => self.stop(outcome, outputs, &mut effects),
            // Other inputs belong to work that was cancelled before they arrived.
            (Phase::Waiting | Phase::Limited | Phase::Calling, Input::Model(_) | Input::AnswerFailed(..))
            | (Phase::Answering | Phase::Calling, Input::RetryDue)
            | (Phase::Answering | Phase::Waiting | Phase::Limited, Input::CallEnded(..)) => {}
        }
        effects
    }

    /// Takes the output of a call. One that has failed too often ends the turn.
    fn end_call(
        &mut self,
        id: &ItemId,
        output: FunctionCallOutputPayload,
        has_failed: bool,
        effects: &mut Vec<Effect>,
    ) {
        let Some(call) = self.calls.end(id, output) else { return };
        let repeated = if self.purpose == Purpose::Nothing { None } else { self.repeats.count(call, has_failed) };
        match repeated {
            Some(Repeated::Ended(why)) => {
                let failure = given_up(why, "Send a message to continue, and say what it should do instead.");
                return self.fail(failure, Retry::Never, effects);
            }
            Some(Repeated::PointedOut(told)) => self.pointed_out.push(told),
            None => {}
        }
        self.run_calls_or_ask(effects);
    }

    /// Counts a request, unless the turn has made as many as it may: then it ends.
    fn may_ask(&mut self, effects: &mut Vec<Effect>) -> bool {
        let limit = self.policy.request_limit;
        if self.requests < limit {
            self.requests += 1;
            return true;
        }
        let why = format!("the turn has made {limit} requests to the model, the maximum (max_turn_requests)");
        self.fail(given_up(why, "Send a message to continue in another turn."), Retry::Never, effects);
        false
    }

    /// Adds input to the conversation and asks the model, after a compaction if the window is nearly full.
    fn ask(&mut self, effects: &mut Vec<Effect>) {
        for told in std::mem::take(&mut self.pointed_out) {
            record(ResponseItem::Message(Message::user(told)), effects);
        }
        let is_full = self.policy.compact_at.is_some_and(|limit| self.used >= limit);
        if is_full && !self.has_compacted {
            return self.ask_for_summary(true, effects);
        }
        if !self.may_ask(effects) {
            return;
        }
        self.take_in_what_was_said(effects);
        if self.policy.agents.is_some() {
            effects.push(Effect::TakeMail(MailTime::BeforeRequest));
        }
        self.phase = Phase::Answering;
        self.last_message = None;
        effects.push(Effect::NoteSettings);
        effects.push(Effect::AskModel);
    }

    fn ask_for_summary(&mut self, goes_on: bool, effects: &mut Vec<Effect>) {
        // Without a summary there is no way to ask, whatever the limit of requests.
        self.requests += 1;
        self.phase = Phase::Answering;
        self.purpose = Purpose::Summary { goes_on };
        self.has_compacted = true;
        self.last_message = None;
        effects.push(Effect::NoteSettings);
        effects.push(Effect::AskForSummary { halvings: self.halvings });
    }

    /// Processes an event of a summary. Clients do not see it grow.
    fn summarize(&mut self, event: ModelEvent, goes_on: bool, effects: &mut Vec<Effect>) {
        match event {
            ModelEvent::Opened { rate_limits } => {
                effects.push(Effect::Count { usage: None, rate_limits });
            }
            ModelEvent::Notice(message) => effects.push(Effect::Emit(Body::Warning { message })),
            ModelEvent::ItemDone(ResponseItem::Message(message), _) => self.last_message = Some(message.text()),
            ModelEvent::Completed { response_id, usage, .. } => {
                self.last_response = Some(response_id).filter(|id| !id.is_empty());
                self.items.close();
                effects.push(Effect::Count { usage, rate_limits: None });
                let Some(summary) = self.last_message.take().filter(|text| !text.trim().is_empty()) else {
                    return self.fail(no_summary(), Retry::Stream { after: None }, effects);
                };
                effects.push(Effect::Compact(summary.into()));
                (self.used, self.attempt, self.limit_waits) = (0, 0, 0);
                if goes_on || !self.joined.is_empty() {
                    self.purpose = Purpose::Answer;
                    self.ask(effects);
                } else {
                    self.complete(None, effects);
                }
            }
            ModelEvent::ItemAdded(_)
            | ModelEvent::ItemDone(..)
            | ModelEvent::TextDelta { .. }
            | ModelEvent::ReasoningPartAdded { .. }
            | ModelEvent::ReasoningSummaryDelta { .. }
            | ModelEvent::ReasoningDelta { .. } => {}
        }
    }

    fn take_in_what_was_said(&mut self, effects: &mut Vec<Effect>) {
        for said in self.joined.drain(..) {
            effects.extend(said.bodies().into_iter().map(Effect::Emit));
        }
    }

    fn answer(&mut self, event: ModelEvent, effects: &mut Vec<Effect>) {
        let delta = match event {
            ModelEvent::Opened { rate_limits } => {
                return effects.push(Effect::Count { usage: None, rate_limits });
            }
            ModelEvent::ItemAdded(item) => return self.items.start(&item, effects),
            ModelEvent::ItemDone(item, origin) => return self.item_done(item, origin, effects),
            ModelEvent::Notice(message) => return effects.push(Effect::Emit(Body::Warning { message })),
            ModelEvent::Completed { response_id, usage, .. } => {
                self.last_response = Some(response_id).filter(|id| !id.is_empty());
                self.used = usage.map_or(self.used, |usage| usage.tokens_in_window());
                if self.policy.forgets_interrupted && !self.calls.is_empty() {
                    self.uncounted = usage;
                } else {
                    effects.push(Effect::Count { usage, rate_limits: None });
                }
                (self.attempt, self.limit_waits) = (0, 0);
                self.items.close();
                self.is_mail_due = self.policy.is_mail_first;
                return self.run_calls_or_ask(effects);
            }
            ModelEvent::TextDelta { item_id, delta } => (item_id, Delta::Text(delta.into())),
            ModelEvent::ReasoningPartAdded { item_id, index } => (item_id, Delta::SummaryPart { index }),
            ModelEvent::ReasoningSummaryDelta { item_id, index, delta } => {
                (item_id, Delta::Summary { index, text: delta.into() })
            }
            ModelEvent::ReasoningDelta { item_id, index, delta } => (item_id, Delta::Raw { index, text: delta.into() }),
        };
        let (id, delta) = delta;
        let item = self.items.grow(id, &delta, effects);
        effects.push(Effect::Emit(Body::ItemDelta { item, delta }));
    }

    fn item_done(&mut self, item: ResponseItem, origin: Option<Arc<ItemOrigin>>, effects: &mut Vec<Effect>) {
        let item = mended(item);
        match &item {
            ResponseItem::Message(message) if message.role == "assistant" => {
                self.last_message = Some(message.text());
                self.items.complete(&item, effects);
            }
            ResponseItem::Reasoning(_) => self.items.complete(&item, effects),
            ResponseItem::WebSearchCall(search) => self.items.search(search, effects),
            _ => call_of(&item).into_iter().for_each(|call| self.calls.push(call)),
        }
        record_made_by(item, origin, effects);
        if let Some(Effect::Emit(Body::Recorded(record))) = effects.last() {
            self.items.weigh(record.json.json_bytes());
        }
    }

    /// Runs the calls that may run now; if none is left, asks the model again if anything was added to the
    /// conversation, otherwise ends.
    fn run_calls_or_ask(&mut self, effects: &mut Vec<Effect>) {
        let came_from_call = self.phase == Phase::Calling;
        let ended = self.calls.take_ended();
        // Between two outputs there can be nothing: some APIs would reject that.
        if !ended.is_empty() && std::mem::take(&mut self.is_mail_due) {
            effects.push(Effect::TakeMail(MailTime::BeforeOutputs));
        }
        for output in ended {
            record(output, effects);
        }
        if self.calls.is_empty()
            && let Some(usage) = self.uncounted.take()
        {
            effects.push(Effect::Count { usage: Some(usage), rate_limits: None });
        }
        if !self.calls.is_empty() {
            self.phase = Phase::Calling;
            effects.extend(self.calls.start().into_iter().map(Effect::Run));
        } else if (came_from_call && self.purpose != Purpose::Nothing) || !self.joined.is_empty() || self.has_mail() {
            self.purpose = Purpose::Answer;
            self.ask(effects);
        } else {
            let last_message = self.last_message.take();
            self.complete(last_message, effects);
        }
    }

    fn stop(&mut self, outcome: Outcome, outputs: Vec<(ItemId, FunctionCallOutputPayload)>, effects: &mut Vec<Effect>) {
        effects.extend([Effect::Cancel, Effect::BreakOff]);
        for (id, output) in outputs {
            self.calls.end(&id, output);
        }
        self.drop_calls(effects);
        // The client knows that its input was accepted, so the next turn must contain it.
        self.take_in_what_was_said(effects);
        self.end(outcome, effects);
    }

    /// Gives every call without an output one that says so.
    fn drop_calls(&mut self, effects: &mut Vec<Effect>) {
        self.calls.drop_all().into_iter().for_each(|output| record(output, effects));
    }

    /// Whether mail has come that keeps the turn running.
    fn has_mail(&self) -> bool {
        let goes_on = |agents: &Arc<dyn ThreadAgents>| agents.goes_on();
        self.purpose == Purpose::Answer && self.policy.agents.as_ref().is_some_and(goes_on)
    }

    fn complete(&mut self, last_message: Option<Text>, effects: &mut Vec<Effect>) {
        let bookmark = self.last_response.take();
        self.end(Outcome::Completed { last_message, bookmark }, effects);
    }

    fn end(&mut self, outcome: Outcome, effects: &mut Vec<Effect>) {
        self.phase = Phase::Over;
        effects.push(Effect::End(outcome));
    }
}

/// Adds an item to the conversation.
fn record(item: ResponseItem, effects: &mut Vec<Effect>) {
    record_made_by(item, None, effects);
}

fn record_made_by(item: ResponseItem, origin: Option<Arc<ItemOrigin>>, effects: &mut Vec<Effect>) {
    // An item that cannot be encoded cannot be sent either. There are none; losing one is better than ending the
    // thread.
    if let Ok(record) = Record::new(item) {
        effects.push(Effect::Emit(Body::Recorded(record.made_by(origin))));
    }
}
