//! Decodes the lines of a file, from any release, to the events of the log.
//!
//! A line gives only the events that it contains: turns without a recorded start or end, and ids that the file does not
//! contain, are left to the reader. A turn without an id is `None`, and an item without one has an empty id.

mod payload;
mod wanted;

use std::path::PathBuf;
use std::sync::Arc;

use codex_wire::conversation_item::ConversationItem;
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::event::TokenCountEvent;
use codex_wire::ids::ThreadId;
use codex_wire::review::{EnteredReviewModeEvent, ReviewOutputEvent};
use codex_wire::rollout::{SessionMeta, TurnContextItem};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::item::{AgentActivity, StoredActivity};
use crate::line::{Head, Line};
use crate::plans::Plans;
use crate::settings::Settings;
use crate::state::HistoryStart;
use crate::{
    AgentMessage, Answer, Body, Compacted, Event, Failure, Item, ItemId, Outcome, Question, QuestionId, QuestionKind,
    Reasoning, Record, ReviewEntered, RolledBack, Seq, StoredItem, ThreadStarted, TurnId, UserMessage,
};
use payload::{CompactedPayload, Payload};

pub use wanted::Wanted;

/// Reads the log of a thread from its lines.
#[derive(Debug)]
pub struct Decoder {
    wanted: Wanted,
    thread: Option<ThreadId>,
    /// The number of the previous event: the last event of a line is numbered by the end of the line, all others repeat
    /// this number.
    number: Seq,
    /// Reasoning that further lines may continue.
    thought: Option<Thought>,
    /// Whether the failure of the turn was already decoded; then the line that ends it adds nothing.
    has_failed: bool,
    plans: Plans,
    /// The start time of the last line's item, if the line contains it.
    began_ms: Option<i64>,
}

#[derive(Debug)]
struct Thought {
    /// The end of its last line.
    end: Seq,
    at_ms: i64,
    turn: Option<TurnId>,
    item: Reasoning,
}

/// The time and the turn of an event.
struct Moment {
    at_ms: i64,
    turn: Option<TurnId>,
}

type Out<'a> = &'a mut Vec<Event>;

impl Decoder {
    /// Creates a decoder for these kinds of events.
    #[must_use]
    pub fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            thread: None,
            number: Seq::default(),
            thought: None,
            has_failed: false,
            plans: Plans::default(),
            began_ms: None,
        }
    }

    /// Appends the events of a line.
    pub fn line(&mut self, line: &Line<'_>, out: &mut Vec<Event>) {
        let before = out.len();
        self.began_ms = None;
        self.take(line, out);
        self.number = Seq::at(line.range.end);
        if let Some(event) = out[before..].last_mut().filter(|event| !event.body.is_thought()) {
            event.seq = self.number;
        }
    }

    fn take(&mut self, line: &Line<'_>, out: Out<'_>) {
        match &*line.kind {
            "event_msg" => self.event_msg(line, out),
            "response_item" if self.wanted.any(Wanted::RECORDS | Wanted::PLANS) => self.response_item(line, out),
            "compacted" if self.wanted.any(Wanted::COMPACTIONS) => self.compacted(line, out),
            "turn_context" if self.wanted.any(Wanted::SETTINGS) => {
                if let Some(context) = line.payload_as::<TurnContextItem>() {
                    self.flush(out);
                    self.push(Moment::of(line), Body::ModelAsked(Arc::new(Settings::recorded(context))), out);
                }
            }
            "session_meta" if self.thread.is_none() && self.wanted.any(Wanted::META) => self.session_meta(line, out),
            _ => {}
        }
    }

    /// The start time of the item that is the last event of the last line, if the line contains it. A reader that needs
    /// only this time can do without [`Wanted::STARTS`], which costs a copy of the item.
    #[must_use]
    pub fn began_ms(&self) -> Option<i64> {
        self.began_ms
    }

    /// Appends the events that waited for further lines.
    pub fn end(&mut self, out: &mut Vec<Event>) {
        self.flush(out);
    }

    fn session_meta(&mut self, line: &Line<'_>, out: Out<'_>) {
        let Some(meta) = line.payload_as::<SessionMeta>() else { return };
        self.thread = Some(meta.id);
        let started = ThreadStarted {
            settings: Arc::new(Settings::of_folder(meta.cwd.clone())),
            provider: meta.model_provider.clone().unwrap_or_default(),
            meta,
            is_resumed: false,
            rollout: PathBuf::new(),
            history_log: 0,
            history_entries: 0,
            instruction_sources: Vec::new(),
        };
        self.push(Moment::of(line), Body::ThreadStarted(Box::new(started)), out);
    }

    fn response_item(&mut self, line: &Line<'_>, out: Out<'_>) {
        if self.wanted.any(Wanted::PLANS) {
            let kind = Head::of(line.text.as_bytes()).map(|head| head.inner).filter(|inner| !inner.is_empty());
            if let Some(plan) = self.plans.take(kind, line.payload.get()) {
                self.flush(out);
                self.push(Moment::of(line), Body::PlanUpdated(plan), out);
            }
        }
        if self.wanted.any(Wanted::RECORDS) {
            self.flush(out);
            let json = ConversationItem::from(line.payload.to_owned());
            self.push(Moment::of(line), Body::Recorded(Record::stored(json.made_by(line.origin()))), out);
        }
    }

    fn compacted(&mut self, line: &Line<'_>, out: Out<'_>) {
        let Ok(compacted) = serde_json::from_str::<CompactedPayload<'_>>(line.payload.get()) else { return };
        self.flush(out);
        let encoded = |item: &RawValue| ConversationItem::from(item.to_owned());
        let replacement = compacted.replacement_history.map(|items| items.into_iter().map(encoded).collect());
        // A rewound conversation replaces the current one, without a summary.
        let body = match replacement {
            Some(replacement) if compacted.message.is_empty() => {
                Body::WentBack { response_id: String::new(), replacement }
            }
            replacement => {
                Body::Compacted(Arc::new(Compacted { summary: compacted.message, replacement, before: 0, after: 0 }))
            }
        };
        self.push(Moment::of(line), body, out);
    }

    fn event_msg(&mut self, line: &Line<'_>, out: Out<'_>) {
        if self.is_passed_over(line) {
            return;
        }
        let Ok(payload) = serde_json::from_str::<Payload<'_>>(line.payload.get()) else { return };
        if Wanted::told_by(&payload.kind).is_some_and(|told| self.wanted.any(told)) {
            self.told(line, payload, out);
        }
    }

    /// Whether the head of a line shows that it contains nothing wanted. A thread has many such lines, and they are
    /// long.
    fn is_passed_over(&self, line: &Line<'_>) -> bool {
        let text = line.text.as_bytes();
        let Some(head) = Head::of(text).filter(|head| !head.inner.is_empty()) else { return false };
        if !Wanted::told_by(head.inner).is_some_and(|told| self.wanted.any(told)) {
            return true;
        }
        let besides = match head.inner {
            "item_completed" => Wanted::NONE,
            "item_interrupted" => Wanted::BROKEN_OFF,
            _ => return false,
        };
        let is_wanted = |kind: &str| self.wanted.any(Wanted::told_by_item(kind) | besides);
        !head.item(text).is_none_or(is_wanted)
    }

    fn told(&mut self, line: &Line<'_>, mut payload: Payload<'_>, out: Out<'_>) {
        let moment = Moment { at_ms: line.at_ms(), turn: payload.turn() };
        let kind = std::mem::take(&mut payload.kind);
        if let "agent_reasoning" | "agent_reasoning_raw_content" = &*kind {
            return self.thought(moment, (&kind, Seq::at(line.range.end)), payload, out);
        }
        self.flush(out);
        match &*kind {
            "user_message" => {
                self.has_failed = false;
                let (id, key) = (payload.item_id(), payload.key());
                self.item(moment, UserMessage::of(id, key, payload.said()).into(), out);
            }
            "agent_message" => {
                let answer = AgentMessage { id: payload.item_id(), text: payload.words().into() };
                self.item(moment, answer.into(), out);
            }
            "item_completed" | "item_interrupted" => self.item_as_such(moment, &kind, &payload, out),
            "token_count" => {
                let Some(TokenCountEvent { info, rate_limits }) = line.payload_as() else { return };
                let rate_limits = rate_limits.map(Box::new);
                self.push(moment, Body::TokensCounted { info, rate_limits }, out);
            }
            "goal_cleared" => self.push(moment, Body::GoalCleared, out),
            "goal_changed" => {
                let goal = payload.goal.and_then(|goal| serde_json::from_str(goal.get()).ok());
                // An event that cannot be decoded is skipped.
                let body = goal.map_or(Body::GoalCleared, |goal| Body::GoalChanged(Arc::new(goal)));
                self.push(moment, body, out);
            }
            "approval_asked" => self.push(moment, Body::Asked(Arc::new(asked(payload.call()))), out),
            "approval_answered" => {
                let (question, answer) = (QuestionId::first(payload.call()), Answer::Declined);
                self.push(moment, Body::Answered { question, answer, item: None }, out);
            }
            "subagent_lifecycle" | "agent_inbox" | "agent_mail" | "agent_mail_read" | "agent_result"
            | "agent_watchdog" | "agent_history" | "agent_numbers" | "agent_tree" => {
                self.decoded(moment, line, |told| Body::Agent(Arc::new(told)), out);
            }
            "queue_added" | "queue_updated" | "queue_removed" | "queue_ordered" | "queue_paused" | "queue_resumed"
            | "queue_all" => {
                self.decoded(moment, line, |told| Body::Queue(Arc::new(told)), out);
            }
            "budget_used" | "budget_reached" => self.decoded(moment, line, Body::Budget, out),
            "sub_agent_activity" => {
                if let Some(activity) = line.payload_as::<StoredActivity>() {
                    self.item(moment, AgentActivity::from(activity).into(), out);
                }
            }
            "warning" => self.push(moment, Body::Warning { message: payload.words() }, out),
            "entered_review_mode" | "exited_review_mode" | "context_compacted" => {
                self.reviewed_or_compacted(moment, &kind, line, out);
            }
            _ => self.turn(moment, &kind, payload, out),
        }
    }

    /// A payload that is stored as it is. One that cannot be decoded is skipped.
    fn decoded<T: DeserializeOwned>(
        &self,
        moment: Moment,
        line: &Line<'_>,
        body: impl FnOnce(T) -> Body,
        out: Out<'_>,
    ) {
        if let Some(told) = line.payload_as() {
            self.push(moment, body(told), out);
        }
    }

    fn reviewed_or_compacted(&mut self, moment: Moment, kind: &str, line: &Line<'_>, out: Out<'_>) {
        #[derive(Deserialize)]
        struct Exited {
            #[serde(default)]
            review_output: Option<ReviewOutputEvent>,
        }
        match kind {
            "entered_review_mode" => {
                let Some(EnteredReviewModeEvent { target, user_facing_hint, prompt }) = line.payload_as() else {
                    return;
                };
                let (hint, prompt) = (user_facing_hint.unwrap_or_default(), prompt.unwrap_or_default());
                self.push(moment, Body::ReviewEntered(Arc::new(ReviewEntered { target, hint, prompt })), out);
            }
            "exited_review_mode" => {
                let Some(Exited { review_output }) = line.payload_as() else { return };
                self.push(moment, Body::ReviewExited(review_output.map(Arc::new)), out);
            }
            // Readers that want to know what is left have this from the previous line.
            _ if self.wanted.any(Wanted::COMPACTIONS) => {}
            _ => {
                let compacted = Compacted { summary: String::new(), replacement: None, before: 0, after: 0 };
                self.push(moment, Body::Compacted(Arc::new(compacted)), out);
            }
        }
    }

    /// Starts and ends of turns.
    fn turn(&mut self, moment: Moment, kind: &str, mut payload: Payload<'_>, out: Out<'_>) {
        let body = match kind {
            "task_started" | "turn_started" => {
                self.has_failed = false;
                Body::TurnStarted { context_window: payload.model_context_window }
            }
            "error" => {
                self.has_failed = true;
                let info = payload.codex_error_info.take().unwrap_or(CodexErrorInfo::Other);
                Body::TurnEnded(Outcome::Failed(Failure { message: payload.words(), hint: None, info }))
            }
            "task_complete" | "turn_complete" if std::mem::take(&mut self.has_failed) => return,
            "task_complete" | "turn_complete" => {
                let (last_message, bookmark) = (payload.last_agent_message, payload.response_id);
                Body::TurnEnded(Outcome::Completed { last_message, bookmark })
            }
            "turn_aborted" => {
                self.has_failed = false;
                Body::TurnEnded(Outcome::Aborted(payload.abort()))
            }
            "limit_reached" => {
                let (until_ms, goes_on) = (payload.until_ms.unwrap_or(0), payload.goes_on);
                let info = CodexErrorInfo::UsageLimitExceeded;
                Body::LimitReached {
                    failure: Failure { message: payload.words(), hint: None, info },
                    until_ms,
                    goes_on,
                }
            }
            "thread_rolled_back" => {
                let (turns, first) = (payload.num_turns.unwrap_or(0), moment.turn.clone());
                let body = Body::RolledBack(RolledBack { turns, said: turns, first });
                return self.push(Moment { turn: None, ..moment }, body, out);
            }
            _ => return,
        };
        self.push(moment, body, out);
    }

    fn thought(&mut self, moment: Moment, (kind, end): (&str, Seq), mut payload: Payload<'_>, out: Out<'_>) {
        let id = payload.item_id();
        let is_more = self.thought.as_ref().is_some_and(|thought| thought.item.id == id && !id.as_str().is_empty());
        if !is_more {
            self.flush(out);
        }
        let Moment { at_ms, turn } = moment;
        let thought = self.thought.get_or_insert_with(|| Thought { end, at_ms, turn, item: Reasoning::empty(id) });
        thought.end = end;
        let parts = if kind == "agent_reasoning" { &mut thought.item.summary } else { &mut thought.item.raw };
        parts.push(payload.words());
    }

    /// An item that is stored as an item.
    fn item_as_such(&mut self, moment: Moment, kind: &str, payload: &Payload<'_>, out: Out<'_>) {
        let Some(item) = payload.item.and_then(|item| StoredItem::read(item.get())) else { return };
        if item.said().is_some() {
            self.has_failed = false;
        }
        let wanted = Wanted::item(&item);
        let (body, wanted): (fn(Item) -> Body, _) = match kind {
            "item_interrupted" => (Body::ItemInterrupted, wanted | Wanted::BROKEN_OFF),
            _ => (Body::ItemCompleted, wanted),
        };
        if self.wanted.any(wanted) {
            self.began_ms = payload.started_at_ms;
            self.item_started(&moment, payload.started_at_ms, &item, out);
            self.push(moment, body(item), out);
        }
    }

    fn item(&self, moment: Moment, item: Item, out: Out<'_>) {
        self.item_started(&moment, None, &item, out);
        self.push(moment, Body::ItemCompleted(item), out);
    }

    fn item_started(&self, moment: &Moment, began_ms: Option<i64>, item: &Item, out: Out<'_>) {
        if self.wanted.any(Wanted::STARTS) {
            let began = Moment { at_ms: began_ms.unwrap_or(moment.at_ms), turn: moment.turn.clone() };
            self.push(began, Body::ItemStarted(item.begun()), out);
        }
    }

    fn flush(&mut self, out: Out<'_>) {
        if let Some(Thought { end, at_ms, turn, item }) = self.thought.take() {
            let number = std::mem::replace(&mut self.number, end);
            self.item(Moment { at_ms, turn }, item.into(), out);
            self.number = number;
        }
    }

    fn push(&self, moment: Moment, body: Body, out: Out<'_>) {
        let Moment { at_ms, turn } = moment;
        let thread = self.thread.unwrap_or_else(ThreadId::unknown);
        out.push(Event { thread, seq: self.number, at_ms, turn, body });
    }
}

/// The start of a conversation after a `compacted` line; `None` if the line is malformed.
#[must_use]
pub fn begins_after(line: &Line<'_>) -> Option<HistoryStart> {
    let compacted = serde_json::from_str::<CompactedPayload<'_>>(line.payload.get()).ok()?;
    Some(if compacted.replacement_history.is_some() { HistoryStart::Replacement } else { HistoryStart::Summary })
}

/// A question about a call, of which the lines contain only the id. It is asked again before it is answered.
fn asked(call: ItemId) -> Question {
    let kind = QuestionKind::Command { argv: Vec::new(), cwd: PathBuf::new(), parsed: Vec::new(), amendment: None };
    Question { id: QuestionId::first(call), reason: None, kind, deadline: None }
}

impl Moment {
    /// The time of a line that names no turn.
    fn of(line: &Line<'_>) -> Self {
        Self { at_ms: line.at_ms(), turn: None }
    }
}
