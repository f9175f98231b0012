//! The log of a thread as the notifications of v2.
//!
//! The state here is limited to data that a notification repeats of earlier ones: the start of an item, the last
//! message of a turn, the number of open questions.

use std::borrow::Cow;
use std::collections::HashMap;

use codex_log::review;
use codex_log::{Body, Compacted, Delta, Event, Failure, Item, ItemId, Outcome, Record, Status, TurnId, limit_words};
use codex_protocol::v2::account::AccountRateLimitsUpdatedNotification;
use codex_protocol::v2::item::{InputItem, ThreadItem, TimedItem};
use codex_protocol::v2::notification::{
    ErrorNotification, ItemCompleted, ItemDelta, ItemStarted, RawResponseItemCompleted, ReasoningSummaryPartAdded,
    ReasoningSummaryTextDelta, ReasoningTextDelta, ServerNotification, TerminalInteraction, ThreadNamed,
    ThreadStatusChanged, ThreadTokenUsageUpdated, TurnCompleted, TurnDiffUpdated, TurnNamed, TurnPlanStep,
    TurnPlanUpdated, TurnStarted,
};
use codex_protocol::v2::thread::{ActiveFlag, ThreadStatus};
use codex_protocol::v2::turn::{ItemsView, Turn, TurnStatus};
use codex_protocol::v2::warning::Warning;
use codex_wire::input::UserInput;
use codex_wire::name::Name;
use codex_wire::text::Text;
use codex_wire::tokens::{RateLimitSnapshot, TokenUsageInfo};

use super::goal_and_queue;
use super::history::turn_error;
use super::items::{is_known, thread_item};
use super::mcp;
use super::read_state::read_state_changed;
use super::reviews::{self, review_turn};
use super::torn::complete_length;
use crate::ProtocolRelease;

#[derive(Debug)]
pub struct Projector {
    thread: String,
    /// The thread id as a shared string, for frequent messages.
    name: Name,
    release: ProtocolRelease,
    raw_items: bool,
    raw_reasoning: bool,
    goals: bool,
    /// The start of the running turn; `None` for a turn that continues after a restart of the program.
    turn_began_ms: Option<i64>,
    /// The target of the review whose turn starts next.
    review: Option<String>,
    /// The last message of the running turn, for releases that repeat it.
    last_message: Option<TimedItem>,
    /// The start times of the open items.
    began: HashMap<ItemId, i64>,
    /// The number of open questions.
    waiting: usize,
    /// Bytes of a character that a command has not printed completely.
    torn: HashMap<ItemId, Vec<u8>>,
    /// The turn of the root in which the thread has begun, if it is a child.
    root_turn: Option<String>,
    /// The message that the next turn begins with, for releases that show it there.
    first_message: Option<Vec<UserInput>>,
}

/// The optional messages that a client wants.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProjectionOptions {
    /// Every item of the conversation with the model.
    pub raw_items: bool,
    /// Raw reasoning.
    pub raw_reasoning: bool,
    /// The goal of the thread, though its release did not know goals.
    pub goals: bool,
}

type Out<'a> = &'a mut Vec<ServerNotification>;

impl Projector {
    /// Creates the projection of a thread for a connection.
    #[must_use]
    pub fn new(thread: String, release: ProtocolRelease, wishes: ProjectionOptions) -> Self {
        Self {
            name: thread.as_str().into(),
            thread,
            release,
            raw_items: wishes.raw_items,
            raw_reasoning: wishes.raw_reasoning,
            goals: wishes.goals || release == ProtocolRelease::V0166,
            turn_began_ms: None,
            review: None,
            last_message: None,
            began: HashMap::new(),
            waiting: 0,
            torn: HashMap::new(),
            root_turn: None,
            first_message: None,
        }
    }

    /// Notes in which turn of its root a child has begun.
    pub fn belong_to(&mut self, root_turn: Option<String>) {
        self.root_turn = root_turn;
    }

    fn begun(&self, turn: &str) -> Turn {
        reviews::begun(turn, self.root_turn.as_deref())
    }

    /// Notes the message that the next turn begins with.
    pub fn open_with(&mut self, message: Option<Vec<UserInput>>) {
        self.first_message = message;
    }

    /// Follows another release from here on.
    pub fn follow_release(&mut self, release: ProtocolRelease) {
        self.release = release;
    }

    /// Enables notifications of the goal from here on.
    pub fn hear_of_goals(&mut self) {
        self.goals = true;
    }

    /// Appends the notifications of an event, and updates the state.
    pub fn project(&mut self, event: &Event, out: Out<'_>) {
        self.render(event, out);
        self.observe(event);
    }

    /// The state that an event's notifications depend on besides the event, if it is one number. Clients with the same
    /// number, release and options receive the same messages; for other events this is unknown.
    #[must_use]
    pub fn shared_state(&self, event: &Event) -> Option<i64> {
        match &event.body {
            Body::ItemDelta { item, delta: Delta::Output { bytes, .. } } => {
                (!self.torn.contains_key(item) && complete_length(bytes) == bytes.len()).then_some(0)
            }
            Body::ItemStarted(item) => (!is_asked_about(item)).then_some(0),
            Body::ItemCompleted(item) => Some(self.began.get(item.id()).copied().unwrap_or(event.at_ms)),
            Body::TurnStarted { .. } | Body::Answered { .. } | Body::TurnEnded(_) => None,
            Body::ThreadStarted(_)
            | Body::ModelAsked(_)
            | Body::Asked(_)
            | Body::WentBack { .. }
            | Body::ItemInterrupted(_)
            | Body::RolledBack(_)
            | Body::ServerChanged(_)
            | Body::ServersStarted(_)
            | Body::CallProgressed { .. }
            | Body::Agent(_)
            | Body::Budget(_)
            | Body::Unread(_)
            | Body::GoalChanged(_)
            | Body::GoalCleared
            | Body::Queue(_)
            | Body::Recorded(_)
            | Body::ItemDelta { .. }
            | Body::TerminalWritten { .. }
            | Body::DiffChanged(_)
            | Body::ImageViewed { .. }
            | Body::PlanUpdated(_)
            | Body::ReviewEntered(_)
            | Body::ReviewExited(_)
            | Body::Compacted(_)
            | Body::TokensCounted { .. }
            | Body::AnswerRetried { .. }
            | Body::LimitReached { .. }
            | Body::Warning { .. } => Some(0),
        }
    }

    /// Records the data that later notifications repeat of an event.
    pub fn observe(&mut self, event: &Event) {
        match &event.body {
            Body::TurnStarted { .. } => {
                self.turn_began_ms = Some(event.at_ms);
                self.last_message = None;
                self.waiting = 0;
                self.review = None;
                self.first_message = None;
            }
            Body::ItemStarted(item) => {
                self.waiting += usize::from(is_asked_about(item));
                self.began.insert(item.id().clone(), event.at_ms);
            }
            Body::ItemDelta { item, delta: Delta::Output { bytes, .. } } => self.keep_torn(item, bytes),
            Body::ItemCompleted(item) => {
                self.torn.remove(item.id());
                if item.answer().is_some() && self.release == ProtocolRelease::V0166 {
                    self.last_message = Some(self.whole(event, item));
                }
                self.began.remove(item.id());
            }
            Body::Answered { .. } => self.waiting = self.waiting.saturating_sub(1),
            Body::ReviewEntered(review) => self.review = Some(review.hint.clone()),
            Body::TurnEnded(_) => {
                self.began.clear();
                self.torn.clear();
                self.turn_began_ms = None;
                self.last_message = None;
            }
            _ => {}
        }
    }

    /// Appends the notifications of an event.
    pub fn render(&self, event: &Event, out: Out<'_>) {
        let turn = event.turn.as_ref().map(TurnId::as_str).unwrap_or_default();
        match &event.body {
            // Clients receive no message about items that break off: these end with their turn.
            Body::ThreadStarted(_)
            | Body::ModelAsked(_)
            | Body::Asked(_)
            | Body::WentBack { .. }
            | Body::ServersStarted(_)
            | Body::Agent(_)
            | Body::Budget(_)
            | Body::ItemInterrupted(_) => {}
            Body::ServerChanged(_) | Body::CallProgressed { .. } => {
                out.extend(mcp::told(self.release, &self.thread, turn, &event.body));
            }
            Body::RolledBack(_) => out.push(self.reverted()),
            Body::Unread(state) => out.push(read_state_changed(self.thread.clone(), state)),
            Body::GoalChanged(_) | Body::GoalCleared => {
                out.extend(goal_and_queue::told(&self.thread, event).filter(|_| self.goals));
            }
            Body::Queue(_) => out.extend(goal_and_queue::told(&self.thread, event)),
            Body::TurnStarted { .. } => self.turn_started(event, turn, out),
            Body::Recorded(record) => self.recorded(turn, record, out),
            Body::ItemStarted(item) | Body::ItemCompleted(item) if !is_known(item, self.release) => {}
            Body::ItemStarted(item) => {
                // Clients expect this order: a command waits for approval before it starts, other items start before
                // they wait.
                let status = is_asked_about(item).then(|| self.active(self.waiting + 1));
                let (before, after) = if item.command().is_some() { (status, None) } else { (None, status) };
                out.extend(before);
                self.push_started(event, turn, thread_item(item, self.release), out);
                out.extend(after);
            }
            Body::ItemDelta { item, delta } => self.item_delta(event.turn.as_ref(), item, delta, out),
            Body::ItemCompleted(item) => self.item_completed(event, turn, item, out),
            Body::Answered { .. } => out.push(self.active(self.waiting.saturating_sub(1))),
            Body::TerminalWritten { .. } | Body::DiffChanged(_) | Body::ImageViewed { .. } | Body::PlanUpdated(_) => {
                self.done_by_tools(event, turn, out);
            }
            Body::ReviewEntered(review) => {
                let item = ThreadItem::EnteredReviewMode { id: turn.to_owned(), review: review.hint.clone() };
                self.at_once(event, turn, item, out);
            }
            Body::ReviewExited(output) => {
                let review = output.as_deref().map(review::describe).unwrap_or_default();
                self.at_once(event, turn, ThreadItem::ExitedReviewMode { id: turn.to_owned(), review }, out);
            }
            Body::Compacted(compacted) => self.compacted(event, turn, compacted, out),
            Body::TokensCounted { info, rate_limits } => self.counted(turn, info.as_ref(), rate_limits.as_deref(), out),
            Body::AnswerRetried { failure, .. } => self.error(turn, failure, true, out),
            Body::LimitReached { failure, until_ms, .. } => self.limit_reached(turn, failure, *until_ms, out),
            Body::Warning { message } => {
                let (thread_id, message) = (Some(self.thread.clone()), message.clone());
                out.push(ServerNotification::Warning(Warning { thread_id, message }));
            }
            Body::TurnEnded(outcome) => self.turn_ended(event, turn, outcome, out),
        }
    }

    fn counted(&self, turn: &str, info: Option<&TokenUsageInfo>, limits: Option<&RateLimitSnapshot>, out: Out<'_>) {
        if let Some(info) = info {
            let (thread_id, turn_id) = self.names(turn);
            let usage = ThreadTokenUsageUpdated { thread_id, turn_id, token_usage: info.into() };
            out.push(ServerNotification::ThreadTokenUsageUpdated(usage));
        }
        if let Some(limits) = limits {
            let updated = AccountRateLimitsUpdatedNotification { rate_limits: limits.clone().into() };
            out.push(ServerNotification::AccountRateLimitsUpdated(updated));
        }
    }

    fn reverted(&self) -> ServerNotification {
        ServerNotification::ThreadReverted(ThreadNamed { thread_id: self.thread.clone() })
    }

    fn limit_reached(&self, turn: &str, failure: &Failure, until_ms: i64, out: Out<'_>) {
        let message = limit_words(failure, until_ms);
        self.error(turn, &Failure { message, ..failure.clone() }, true, out);
    }

    fn recorded(&self, turn: &str, record: &Record, out: Out<'_>) {
        if self.raw_items
            && let Some(item) = record.item()
        {
            let (thread_id, turn_id) = self.names(turn);
            let raw = RawResponseItemCompleted { thread_id, turn_id, item: (*item).clone() };
            out.push(ServerNotification::RawResponseItemCompleted(Box::new(raw)));
        }
    }

    /// The notifications of tools.
    fn done_by_tools(&self, event: &Event, turn: &str, out: Out<'_>) {
        match &event.body {
            Body::TerminalWritten { item, terminal, stdin } => {
                let (thread_id, turn_id) = self.names(turn);
                out.push(ServerNotification::TerminalInteraction(TerminalInteraction {
                    thread_id,
                    turn_id,
                    item_id: item.as_str().to_owned(),
                    process_id: terminal.to_string(),
                    stdin: stdin.clone(),
                }));
            }
            Body::DiffChanged(diff) => {
                let (thread_id, turn_id) = self.names(turn);
                let diff = diff.to_string();
                out.push(ServerNotification::TurnDiffUpdated(TurnDiffUpdated { thread_id, turn_id, diff }));
            }
            Body::ImageViewed { item, path } => {
                let id = item.as_str().to_owned();
                self.at_once(event, turn, ThreadItem::ImageView { id, path: path.clone() }, out);
            }
            Body::PlanUpdated(plan) => {
                let (thread_id, turn_id) = self.names(turn);
                let steps = plan.plan.iter().map(|step| TurnPlanStep::new(step.step.clone(), step.status));
                out.push(ServerNotification::TurnPlanUpdated(TurnPlanUpdated {
                    thread_id,
                    turn_id,
                    explanation: plan.explanation.clone(),
                    plan: steps.collect(),
                }));
            }
            _ => {}
        }
    }

    fn names(&self, turn: &str) -> (String, String) {
        (self.thread.clone(), turn.to_owned())
    }

    /// An active thread that waits for this many answers.
    fn active(&self, waiting: usize) -> ServerNotification {
        let active_flags = if waiting > 0 { vec![ActiveFlag::WaitingOnApproval] } else { Vec::new() };
        self.status_is(ThreadStatus::Active { active_flags })
    }

    fn status_is(&self, status: ThreadStatus) -> ServerNotification {
        let thread_id = self.thread.clone();
        ServerNotification::ThreadStatusChanged(ThreadStatusChanged { thread_id, status })
    }

    fn turn_started(&self, event: &Event, turn: &str, out: Out<'_>) {
        out.push(self.active(0));
        let started_at = Some(event.at_ms / 1000);
        let begun = self.review.as_ref().map_or_else(|| self.begun(turn), |hint| review_turn(turn, hint.clone()));
        let mut turn = Turn { started_at, ..begun };
        turn.items.extend(self.first_message.iter().map(|message| first_message_item(&turn.id, message)));
        out.push(ServerNotification::TurnStarted(TurnStarted { thread_id: self.thread.clone(), turn }));
    }

    fn push_started(&self, event: &Event, turn: &str, item: ThreadItem, out: Out<'_>) {
        let (thread_id, turn_id) = self.names(turn);
        let item = TimedItem { item, started_at_ms: Some(event.at_ms), completed_at_ms: None };
        let started = ItemStarted { item, thread_id, turn_id, started_at_ms: event.at_ms };
        out.push(ServerNotification::ItemStarted(Box::new(started)));
    }

    fn item_completed(&self, event: &Event, turn: &str, item: &Item, out: Out<'_>) {
        if let Some(patch) = item.patch()
            && patch.status == Status::Completed
            && let Some(end) = &patch.end
        {
            let delta = self.delta(event.turn.as_ref(), item.id(), end.stdout.clone());
            out.push(ServerNotification::FileChangeOutputDelta(delta));
        }
        self.push_completed(event, turn, self.whole(event, item), out);
    }

    fn whole(&self, event: &Event, item: &Item) -> TimedItem {
        TimedItem {
            item: thread_item(item, self.release),
            started_at_ms: Some(self.began.get(item.id()).copied().unwrap_or(event.at_ms)),
            completed_at_ms: Some(event.at_ms),
        }
    }

    fn push_completed(&self, event: &Event, turn: &str, item: TimedItem, out: Out<'_>) {
        let (thread_id, turn_id) = self.names(turn);
        let completed = ItemCompleted { item, thread_id, turn_id, completed_at_ms: event.at_ms };
        out.push(ServerNotification::ItemCompleted(Box::new(completed)));
    }

    /// An item that is complete as soon as it starts.
    fn at_once(&self, event: &Event, turn: &str, item: ThreadItem, out: Out<'_>) {
        self.push_started(event, turn, item.clone(), out);
        let whole = TimedItem { item, started_at_ms: Some(event.at_ms), completed_at_ms: Some(event.at_ms) };
        self.push_completed(event, turn, whole, out);
    }

    fn delta(&self, turn: Option<&TurnId>, item: &ItemId, delta: impl Into<Text>) -> ItemDelta {
        let (thread_id, turn_id, item_id) = self.shared_names(turn, item);
        ItemDelta { thread_id, turn_id, item_id, delta: delta.into() }
    }

    fn shared_names(&self, turn: Option<&TurnId>, item: &ItemId) -> (Name, Name, Name) {
        (self.name.clone(), turn.map_or_else(|| "".into(), TurnId::to_name), item.to_name())
    }

    fn item_delta(&self, turn: Option<&TurnId>, item: &ItemId, delta: &Delta, out: Out<'_>) {
        let (thread_id, turn_id, item_id) = self.shared_names(turn, item);
        out.push(match delta {
            Delta::Text(text) => {
                let delta = text.clone();
                ServerNotification::AgentMessageDelta(ItemDelta { thread_id, turn_id, item_id, delta })
            }
            Delta::Output { bytes, .. } => {
                let Some(text) = self.text(item, bytes) else { return };
                let delta = text.into();
                ServerNotification::CommandOutputDelta(ItemDelta { thread_id, turn_id, item_id, delta })
            }
            Delta::SummaryPart { index } => ServerNotification::ReasoningSummaryPartAdded(ReasoningSummaryPartAdded {
                thread_id,
                turn_id,
                item_id,
                summary_index: *index,
            }),
            Delta::Summary { index, text } => {
                ServerNotification::ReasoningSummaryTextDelta(ReasoningSummaryTextDelta {
                    thread_id,
                    turn_id,
                    item_id,
                    delta: text.clone(),
                    summary_index: *index,
                })
            }
            Delta::Raw { .. } if !self.raw_reasoning => return,
            Delta::Raw { index, text } => ServerNotification::ReasoningTextDelta(ReasoningTextDelta {
                thread_id,
                turn_id,
                item_id,
                delta: text.clone(),
                content_index: *index,
            }),
        });
    }

    /// The output of a command, after the incomplete character of the previous piece.
    fn untorn<'a>(&self, item: &ItemId, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        match self.torn.get(item) {
            Some(torn) => Cow::Owned([torn, bytes].concat()),
            None => Cow::Borrowed(bytes),
        }
    }

    /// The text of a command's output. A character that is split between two chunks waits for the second.
    fn text(&self, item: &ItemId, bytes: &[u8]) -> Option<String> {
        let whole = self.untorn(item, bytes);
        let text = String::from_utf8_lossy(&whole[..complete_length(&whole)]).into_owned();
        (!text.is_empty()).then_some(text)
    }

    fn keep_torn(&mut self, item: &ItemId, bytes: &[u8]) {
        let whole = self.untorn(item, bytes);
        let torn = whole[complete_length(&whole)..].to_vec();
        if !torn.is_empty() {
            self.torn.insert(item.clone(), torn);
        } else if !self.torn.is_empty() {
            self.torn.remove(item);
        }
    }

    fn compacted(&self, event: &Event, turn: &str, _: &Compacted, out: Out<'_>) {
        let id = format!("{turn}:compaction:{}", event.seq);
        self.at_once(event, turn, ThreadItem::ContextCompaction { id }, out);
        let (thread_id, turn_id) = self.names(turn);
        out.push(ServerNotification::ThreadCompacted(TurnNamed { thread_id, turn_id }));
    }

    fn error(&self, turn: &str, failure: &Failure, will_retry: bool, out: Out<'_>) {
        let (thread_id, turn_id) = self.names(turn);
        let error = turn_error(failure, self.release);
        out.push(ServerNotification::Error(ErrorNotification { error, will_retry, thread_id, turn_id }));
    }

    fn turn_ended(&self, event: &Event, turn: &str, outcome: &Outcome, out: Out<'_>) {
        let (status, error) = match outcome {
            Outcome::Completed { .. } => (TurnStatus::Completed, None),
            Outcome::Aborted(_) => (TurnStatus::Interrupted, None),
            Outcome::Failed(failure) => (TurnStatus::Failed, Some(failure)),
        };
        out.push(self.status_is(if error.is_some() { ThreadStatus::SystemError } else { ThreadStatus::Idle }));
        if let Some(failure) = error {
            self.error(turn, failure, false, out);
        }
        let error = error.map(|failure| turn_error(failure, self.release));
        let (began_ms, last) = (self.turn_began_ms, self.last_message.clone());
        let ended = Turn {
            items_view: if last.is_some() { ItemsView::Summary } else { ItemsView::NotLoaded },
            items: last.into_iter().collect(),
            status,
            error,
            started_at: began_ms.map(|began_ms| began_ms / 1000),
            completed_at: Some(event.at_ms / 1000),
            duration_ms: began_ms.map(|began_ms| (event.at_ms - began_ms).max(0)),
            ..self.begun(turn)
        };
        let (thread_id, turn_id) = self.names(turn);
        out.push(ServerNotification::TurnCompleted(TurnCompleted { thread_id, turn: ended, turn_id, status }));
    }
}

/// The message that a turn begins with, as an item with the name of the turn: the form of 0.58.
#[must_use]
pub fn first_message_item(turn: &str, message: &[UserInput]) -> TimedItem {
    let content = message.iter().map(InputItem::from).collect();
    let item = ThreadItem::UserMessage { id: turn.to_owned(), client_id: None, content };
    TimedItem { item, started_at_ms: None, completed_at_ms: None }
}

fn is_asked_about(item: &Item) -> bool {
    item.status() == Some(Status::AwaitingApproval)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(projector: &mut Projector, item: &ItemId, bytes: &[u8]) -> Option<String> {
        let text = projector.text(item, bytes);
        projector.keep_torn(item, bytes);
        text
    }

    #[test]
    fn a_character_in_two_pieces_is_shown_once() {
        let mut projector = Projector::new(String::new(), ProtocolRelease::V077, ProjectionOptions::default());
        let item = ItemId::new("a");
        assert_eq!(told(&mut projector, &item, b"x\xc3").as_deref(), Some("x"));
        assert_eq!(told(&mut projector, &item, b"\xa9y").as_deref(), Some("éy"));
        assert_eq!(told(&mut projector, &item, b"\xe2").as_deref(), None);
        assert_eq!(told(&mut projector, &item, b"\x82").as_deref(), None);
        assert_eq!(told(&mut projector, &item, b"\xac").as_deref(), Some("€"));
    }

    #[test]
    fn broken_bytes_do_not_hold_up_what_follows() {
        let mut projector = Projector::new(String::new(), ProtocolRelease::V077, ProjectionOptions::default());
        let item = ItemId::new("a");
        assert_eq!(told(&mut projector, &item, b"\xff\xfeok").as_deref(), Some("\u{fffd}\u{fffd}ok"));
        assert_eq!(told(&mut projector, &item, b"\xff\xc3").as_deref(), Some("\u{fffd}"));
        assert_eq!(told(&mut projector, &item, b"\xa9").as_deref(), Some("é"));
    }
}
