//! The lines that store an event, in the form that other releases read too.
//!
//! Deltas are not stored: their complete items are. Of the event queue, only messages that a resumed client displays
//! again are stored; the others follow from the items of the conversation.

use codex_wire::agent::AgentActivityKind;
use codex_wire::conversation_item::{ConversationItem, ItemOrigin};
use codex_wire::event::EventMsg;
use codex_wire::goal::Goal;
use codex_wire::ids::ThreadId;
use codex_wire::reasoning::ReasoningEffort;
use codex_wire::rollout::TurnContextItem;
use serde::Serialize;

use crate::agents::AgentEvent;
use crate::item::{AgentActivity, KeptItem};
use crate::queue::QueueEvent;
use crate::settings::{Mode, Settings};
use crate::{Body, Event, Item, ItemId, RolledBack, TurnId, messages};
use codex_wire::budget::BudgetEvent;

/// A destination for the lines of a log, in order.
pub trait LineSink {
    /// The reason why a line was not accepted.
    type Error;

    /// Accepts a line with its type and the time of its event, in milliseconds of Unix time.
    ///
    /// # Errors
    /// When the line cannot be encoded or stored.
    fn line<P: Serialize + ?Sized>(&mut self, at_ms: i64, kind: &str, payload: &P) -> Result<(), Self::Error>;

    /// Accepts the line of an item of the conversation with data that only its provider can read. The provider is
    /// written next to the payload, never into it: the payload has the same form in every release.
    ///
    /// # Errors
    /// When the line cannot be encoded or stored.
    fn line_made_by<P: Serialize + ?Sized>(
        &mut self,
        at_ms: i64,
        kind: &str,
        payload: &P,
        origin: &ItemOrigin,
    ) -> Result<(), Self::Error> {
        let _ = origin;
        self.line(at_ms, kind, payload)
    }
}

/// Appends the lines of an event.
///
/// # Errors
/// When the sink does not accept one of them.
pub fn encode<S: LineSink + ?Sized>(event: &Event, sink: &mut S) -> Result<(), S::Error> {
    let mut file = Timed { at_ms: event.at_ms, sink };
    match &event.body {
        Body::ThreadStarted(started) if started.is_resumed => Ok(()),
        Body::ThreadStarted(started) => file.append("session_meta", &started.meta),
        Body::ModelAsked(settings) => file.append("turn_context", &turn_context(settings)),
        Body::Recorded(record) => match record.json.origin() {
            Some(origin) => file.sink.line_made_by(event.at_ms, "response_item", &record.json, origin),
            None => file.append("response_item", &record.json),
        },
        Body::Compacted(compacted) => {
            let replacement_history = compacted.replacement.as_deref();
            file.append("compacted", &CompactedLine { message: &compacted.summary, replacement_history })?;
            file.append("event_msg", &EventMsg::ContextCompacted)
        }
        // Every reader of the file takes the replacement of a summary as the conversation from there on.
        Body::WentBack { replacement, .. } => {
            file.append("compacted", &CompactedLine { message: "", replacement_history: Some(&replacement[..]) })
        }
        Body::Asked(question) => file.append("event_msg", &ApprovalLine::of(event, "approval_asked", question.item())),
        Body::Answered { question, .. } => {
            file.append("event_msg", &ApprovalLine::of(event, "approval_answered", question.item()))
        }
        Body::RolledBack(RolledBack { said, first, .. }) => {
            let turn_id = first.as_ref().map(TurnId::as_str);
            file.append("event_msg", &RolledBackLine { kind: "thread_rolled_back", num_turns: *said, turn_id })
        }
        Body::ItemCompleted(item) => append_item(event, item, &mut file),
        Body::ItemInterrupted(item) => file.append("event_msg", &ItemLine::of(event, "item_interrupted", item)),
        Body::GoalChanged(goal) => file.append("event_msg", &GoalLine::of(event, "goal_changed", Some(goal))),
        Body::GoalCleared => file.append("event_msg", &GoalLine::of(event, "goal_cleared", None)),
        Body::Queue(told) => file.append("event_msg", &QueueLine::of(event, told)),
        Body::LimitReached { failure, until_ms, goes_on } => {
            file.append("event_msg", &LimitLine::of(event, &failure.message, *until_ms, *goes_on))
        }
        Body::Agent(told) => file.append("event_msg", &AgentLine::of(event, told)),
        Body::Budget(told) => file.append("event_msg", &BudgetLine::of(event, told)),
        Body::TurnStarted { .. }
        | Body::TokensCounted { .. }
        | Body::ReviewEntered(_)
        | Body::ReviewExited(_)
        | Body::TurnEnded(_) => append_kept(event, &mut file),
        Body::ItemStarted(_)
        | Body::ItemDelta { .. }
        | Body::TerminalWritten { .. }
        | Body::ImageViewed { .. }
        | Body::DiffChanged(_)
        | Body::PlanUpdated(_)
        | Body::AnswerRetried { .. }
        | Body::Warning { .. }
        | Body::ServerChanged(_)
        | Body::ServersStarted(_)
        | Body::CallProgressed { .. }
        | Body::Unread(_) => Ok(()),
    }
}

/// Appends a line without content, so that later events are numbered by its end.
///
/// # Errors
/// When the sink does not accept it.
pub fn encode_mark<S: LineSink + ?Sized>(at_ms: i64, sink: &mut S) -> Result<(), S::Error> {
    sink.line(at_ms, "event_msg", &MarkLine { kind: "log_mark" })
}

#[derive(Serialize)]
struct MarkLine {
    #[serde(rename = "type")]
    kind: &'static str,
}

/// Appends a complete item.
fn append_item<S: LineSink + ?Sized>(event: &Event, item: &Item, file: &mut Timed<'_, S>) -> Result<(), S::Error> {
    if item.is_kept_elsewhere() {
        return Ok(());
    }
    if !item.is_call() {
        return append_kept(event, file);
    }
    if let Some(activity) = item.agent_activity() {
        return file.append("event_msg", &ActivityLine::of(event, activity));
    }
    file.append("event_msg", &ItemLine::of(event, "item_completed", item))
}

/// Appends a message of the event queue.
fn append_kept<S: LineSink + ?Sized>(event: &Event, file: &mut Timed<'_, S>) -> Result<(), S::Error> {
    let item = match &event.body {
        Body::ItemCompleted(item) => Some(item),
        _ => None,
    };
    let names = Names::of(event, item);
    let mut messages = Vec::new();
    messages::kept(&event.body, &mut messages);
    messages.iter().try_for_each(|message| file.append("event_msg", &NamedLine { message, names }))
}

/// A sink for the lines of one event.
struct Timed<'a, S: ?Sized> {
    at_ms: i64,
    sink: &'a mut S,
}

impl<S: LineSink + ?Sized> Timed<'_, S> {
    fn append<P: Serialize + ?Sized>(&mut self, kind: &str, payload: &P) -> Result<(), S::Error> {
        self.sink.line(self.at_ms, kind, payload)
    }
}

/// The turn and the item of a line. Readers that do not know these members skip them.
#[derive(Clone, Copy, Serialize)]
struct Names<'a> {
    #[serde(rename = "turn_id", skip_serializing_if = "Option::is_none")]
    turn: Option<&'a str>,
    #[serde(rename = "item_id", skip_serializing_if = "Option::is_none")]
    item: Option<&'a str>,
    /// The client's id of the user's message.
    #[serde(rename = "client_id", skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
}

impl<'a> Names<'a> {
    fn of(event: &'a Event, item: Option<&'a Item>) -> Self {
        let key = item.and_then(Item::said).and_then(|said| said.key.as_deref());
        Self { turn: event.turn.as_ref().map(TurnId::as_str), item: item.map(|item| item.id().as_str()), key }
    }
}

#[derive(Serialize)]
struct NamedLine<'a> {
    #[serde(flatten)]
    message: &'a EventMsg,
    #[serde(flatten)]
    names: Names<'a>,
}

/// An item in the stored form of the newest releases; older readers skip it.
#[derive(Serialize)]
struct ItemLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    thread_id: ThreadId,
    #[serde(flatten)]
    names: Names<'a>,
    item: KeptItem<'a>,
}

impl<'a> ItemLine<'a> {
    fn of(event: &'a Event, kind: &'static str, item: &'a Item) -> Self {
        Self { kind, thread_id: event.thread, names: Names::of(event, Some(item)), item: item.stored_form() }
    }
}

/// Records that a person was asked about a call, or has answered, so that a question outlives the program that asked
/// it.
#[derive(Serialize)]
struct ApprovalLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    call_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<&'a str>,
}

impl<'a> ApprovalLine<'a> {
    fn of(event: &'a Event, kind: &'static str, call: &'a ItemId) -> Self {
        Self { kind, call_id: call.as_str(), turn_id: event.turn.as_ref().map(TurnId::as_str) }
    }
}

/// Records a rollback in the form of the newest releases: the number of the user's messages. A turn may start without
/// such a message, so the first turn is named as well.
#[derive(Serialize)]
struct RolledBackLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    num_turns: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<&'a str>,
}

/// The goal of the thread from here on. Other releases store goals elsewhere and skip these lines.
#[derive(Serialize)]
struct GoalLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<&'a Goal>,
}

impl<'a> GoalLine<'a> {
    fn of(event: &'a Event, kind: &'static str, goal: Option<&'a Goal>) -> Self {
        Self { kind, turn_id: event.turn.as_ref().map(TurnId::as_str), goal }
    }
}

/// Records that a turn waits for the account's allowance, so that the wait outlives the program. Other releases skip
/// it.
#[derive(Serialize)]
struct LimitLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<&'a str>,
    message: &'a str,
    until_ms: i64,
    goes_on: bool,
}

impl<'a> LimitLine<'a> {
    fn of(event: &'a Event, message: &'a str, until_ms: i64, goes_on: bool) -> Self {
        let turn_id = event.turn.as_ref().map(TurnId::as_str);
        Self { kind: "limit_reached", turn_id, message, until_ms, goes_on }
    }
}

/// Something that has happened to an agent. Other releases pass over most of these lines.
#[derive(Serialize)]
struct AgentLine<'a> {
    #[serde(flatten)]
    told: &'a AgentEvent,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<&'a str>,
}

impl<'a> AgentLine<'a> {
    fn of(event: &'a Event, told: &'a AgentEvent) -> Self {
        Self { told, turn_id: event.turn.as_ref().map(TurnId::as_str) }
    }
}

/// A change of the queue. Other releases pass over these lines.
#[derive(Serialize)]
struct QueueLine<'a> {
    #[serde(flatten)]
    told: &'a QueueEvent,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<&'a str>,
}

impl<'a> QueueLine<'a> {
    fn of(event: &'a Event, told: &'a QueueEvent) -> Self {
        Self { told, turn_id: event.turn.as_ref().map(TurnId::as_str) }
    }
}

/// The use of a budget, or the limit that was reached. Other releases pass over these lines.
#[derive(Serialize)]
struct BudgetLine<'a> {
    #[serde(flatten)]
    told: &'a BudgetEvent,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<&'a str>,
}

impl<'a> BudgetLine<'a> {
    fn of(event: &'a Event, told: &'a BudgetEvent) -> Self {
        Self { told, turn_id: event.turn.as_ref().map(TurnId::as_str) }
    }
}

/// Something that has happened to another agent, in the form of the newest releases.
#[derive(Serialize)]
struct ActivityLine<'a> {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<&'a str>,
    event_id: &'a str,
    occurred_at_ms: i64,
    agent_thread_id: ThreadId,
    agent_path: &'a str,
    kind: AgentActivityKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a ReasoningEffort>,
}

impl<'a> ActivityLine<'a> {
    fn of(event: &'a Event, activity: &'a AgentActivity) -> Self {
        Self {
            kind_of_line: "sub_agent_activity",
            turn_id: event.turn.as_ref().map(TurnId::as_str),
            event_id: activity.id.as_str(),
            occurred_at_ms: event.at_ms,
            agent_thread_id: activity.thread,
            agent_path: &activity.path,
            kind: activity.kind,
            model: activity.model.as_deref(),
            reasoning_effort: activity.effort.as_ref(),
        }
    }
}

/// [`codex_wire::rollout::CompactedItem`] with items that are already encoded.
#[derive(Serialize)]
struct CompactedLine<'a> {
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    replacement_history: Option<&'a [ConversationItem]>,
}

pub(crate) fn turn_context(settings: &Settings) -> TurnContextItem {
    TurnContextItem {
        cwd: settings.cwd.clone(),
        approval_policy: settings.approval_policy,
        sandbox_policy: settings.sandbox_policy.clone(),
        model: settings.model.clone(),
        effort: settings.effort.clone(),
        summary: settings.summary.clone(),
        collaboration_mode: (settings.mode != Mode::default()).then(|| settings.collaboration_mode()),
        multi_agent_version: settings.agent_tools.map(|version| version.as_str().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use codex_wire::error_info::CodexErrorInfo;
    use codex_wire::input::UserInput;
    use codex_wire::plan::UpdatePlanArgs;

    use super::*;
    use crate::{Abort, AgentMessage, Class, Delta, Failure, Outcome, Seq, UserMessage};
    use codex_wire::budget::Used;

    #[derive(Default)]
    struct Kinds(Vec<String>);

    impl LineSink for Kinds {
        type Error = serde_json::Error;

        fn line<P: Serialize + ?Sized>(&mut self, _: i64, kind: &str, payload: &P) -> Result<(), Self::Error> {
            let payload = serde_json::to_value(payload)?;
            self.0.push(format!("{kind} {}", payload["type"].as_str().unwrap_or_default()));
            Ok(())
        }
    }

    #[test]
    fn only_stored_events_have_lines() {
        let message = || Item::AgentMessage(AgentMessage::empty(ItemId::new("m")));
        let content = vec![UserInput::text("hi")];
        let said = Item::UserMessage(UserMessage { id: ItemId::new("u"), key: None, content });
        let failure = || Failure { message: String::new(), hint: None, info: CodexErrorInfo::Other };
        let bodies = [
            (Body::TurnStarted { context_window: None }, "event_msg task_started"),
            (Body::ItemStarted(message()), ""),
            (Body::ItemDelta { item: ItemId::new("m"), delta: Delta::Text("x".into()) }, ""),
            (Body::ItemCompleted(said), "event_msg user_message"),
            (Body::ItemCompleted(message()), "event_msg agent_message"),
            (Body::ItemInterrupted(message()), "event_msg item_interrupted"),
            (Body::TerminalWritten { item: ItemId::new("c"), terminal: 1, stdin: String::new() }, ""),
            (Body::ImageViewed { item: ItemId::new("c"), path: "/a.png".into() }, ""),
            (Body::PlanUpdated(UpdatePlanArgs { explanation: None, plan: Vec::new() }), ""),
            (Body::DiffChanged("".into()), ""),
            (Body::ReviewExited(None), "event_msg exited_review_mode"),
            (Body::WentBack { response_id: String::new(), replacement: Vec::new() }, "compacted "),
            (Body::RolledBack(RolledBack { turns: 1, said: 1, first: None }), "event_msg thread_rolled_back"),
            (Body::TokensCounted { info: None, rate_limits: None }, "event_msg token_count"),
            (Body::AnswerRetried { failure: failure(), attempt: 1, limit: 2, delay: Duration::ZERO }, ""),
            (Body::LimitReached { failure: failure(), until_ms: 1, goes_on: true }, "event_msg limit_reached"),
            (Body::Budget(BudgetEvent::Used { used: Used::default() }), "event_msg budget_used"),
            (Body::Warning { message: String::new() }, ""),
            (Body::GoalCleared, "event_msg goal_cleared"),
            (Body::TurnEnded(Outcome::Aborted(Abort::Interrupted)), "event_msg turn_aborted"),
            (Body::TurnEnded(Outcome::Failed(failure())), "event_msg error,event_msg task_complete"),
        ];
        for (body, expected) in bodies {
            let mut kinds = Kinds::default();
            let event =
                Event { thread: ThreadId::fresh(), seq: Seq::default(), at_ms: 0, turn: Some(TurnId::new("t")), body };
            encode(&event, &mut kinds).unwrap();
            assert_eq!(kinds.0.join(","), expected);
            assert_eq!(event.body.class() == Class::Kept, !expected.is_empty(), "{expected}");
        }
    }
}
