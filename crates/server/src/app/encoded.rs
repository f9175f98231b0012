//! Messages about a thread's events as lines, encoded once for all subscribers of one kind.

use codex_dialects::eq::{self, Vocabulary};
use codex_dialects::v2::project::{ProjectionOptions, Projector};
use codex_log::{Event, TurnId};
use codex_protocol::rpc::Notification;
use codex_thread::encodings::{LineEnd, Lines};
use codex_wire::event::EventMsg;
use codex_wire::ids::ThreadId;
use serde::{Serialize, Serializer};

use super::outbox::add_line;

/// The form of `codex/event/*` messages.
pub(crate) const EVENTS: usize = 0;
/// The forms of notifications, by release.
pub(crate) const NOTIFICATIONS_077: usize = 1;
pub(crate) const NOTIFICATIONS_0166: usize = 2;

/// The length of the prefix of each line, before the name of its method.
const BEFORE_METHOD: usize = r#"{"method":""#.len();
/// The prefix of the method of an event.
pub(crate) const EVENT_PREFIX: &str = "codex/event/";

/// The options of a client as bits.
pub(crate) fn wishes(wishes: ProjectionOptions) -> u8 {
    let ProjectionOptions { raw_items, raw_reasoning, goals } = wishes;
    u8::from(raw_items) | u8::from(raw_reasoning) << 1 | u8::from(goals) << 2
}

/// The notifications of an event.
pub(crate) fn notifications(projector: &Projector, event: &Event) -> Lines {
    let (mut notifications, mut lines) = (Vec::new(), Lines::default());
    projector.render(event, &mut notifications);
    for params in &notifications {
        let method = params.method();
        add(&mut lines, method.len(), &Notification { method, params, emitted_at_ms: event.at_ms });
    }
    lines
}

/// The `codex/event/*` messages of an event.
pub(crate) fn events(event: &Event, vocabulary: Vocabulary) -> Lines {
    let (mut events, mut lines) = (Vec::new(), Lines::default());
    eq::project(event, vocabulary, &mut events);
    for msg in &events {
        let message = queue_event(event.turn.as_ref(), msg, event.thread, event.at_ms);
        add(&mut lines, EVENT_PREFIX.len() + msg.kind().len(), &message);
    }
    lines
}

fn add(lines: &mut Lines, method: usize, message: &impl Serialize) {
    let start = lines.bytes.len() + BEFORE_METHOD;
    add_line(&mut lines.bytes, message);
    lines.ends.push(LineEnd { end: lines.bytes.len(), method: start..start + method });
}

/// A legacy event as a notification.
pub(crate) fn queue_event<'a>(
    turn: Option<&'a TurnId>,
    msg: &'a EventMsg,
    thread: ThreadId,
    emitted_at_ms: i64,
) -> impl Serialize + use<'a> {
    event_message(turn, msg.kind(), msg, thread, emitted_at_ms)
}

/// The same in a form of its own.
pub(crate) fn event_message<'a, M: Serialize>(
    turn: Option<&'a TurnId>,
    kind: &'a str,
    msg: M,
    thread: ThreadId,
    emitted_at_ms: i64,
) -> impl Serialize + use<'a, M> {
    let id = turn.map(TurnId::as_str).unwrap_or_default();
    let params = QueueEvent { id, msg, conversation_id: thread, thread_id: thread };
    EventNotification { method: EventMethod(kind), params, emitted_at_ms }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventNotification<'a, M> {
    method: EventMethod<'a>,
    params: QueueEvent<'a, M>,
    emitted_at_ms: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct QueueEvent<'a, M> {
    id: &'a str,
    msg: M,
    conversation_id: ThreadId,
    thread_id: ThreadId,
}

/// The name of an event's method, which is written without building a string first.
struct EventMethod<'a>(&'a str);

impl Serialize for EventMethod<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{EVENT_PREFIX}{}", self.0))
    }
}
