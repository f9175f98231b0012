//! The events of a thread that a client receives, and their dialect, which follows from how the client subscribed
//! unless it chose one.

use std::collections::HashMap;

pub use codex_protocol::v2::initialize::Dialect;
use codex_protocol::v2::notification::ServerNotification;
use codex_wire::event::EventMsg;

use super::connection::Client;
use codex_dialects::ProtocolRelease;

/// The subscriptions of a client to one thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subscriptions {
    /// Whether it subscribed with a v2 method.
    pub(crate) is_v2: bool,
    /// Its listeners, and whether each wants every item of the conversation with the model.
    listeners: HashMap<String, bool>,
}

impl Subscriptions {
    /// The subscription of a client that has opened a thread, or sent a request about it, in v2.
    pub(crate) fn v2() -> Self {
        Self { is_v2: true, listeners: HashMap::new() }
    }

    pub(crate) fn add(&mut self, name: String, raw_items: bool) {
        self.listeners.insert(name, raw_items);
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.listeners.remove(name);
    }

    /// The ids of the listeners.
    pub(crate) fn names(&self) -> impl ExactSizeIterator<Item = &String> {
        self.listeners.keys()
    }

    /// Whether a listener wants every item of the conversation with the model.
    pub(crate) fn wants_raw_items(&self) -> bool {
        self.listeners.values().any(|is_wanted| *is_wanted)
    }
}

/// The events of a thread that a client receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventFilter {
    pub(crate) events: Events,
    pub(crate) notifications: Notifications,
    /// Whether it receives `item/created` and `item/delta`.
    pub(crate) items: bool,
    /// Whether it receives approval requests of v1.
    pub(crate) v1_questions: bool,
    /// Whether it receives approval requests of v2.
    pub(crate) v2_questions: bool,
}

/// The `codex/event/*` messages that a client receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Events {
    None,
    /// All except those that repeat `item/created` and `item/delta`.
    BesideItems,
    All,
}

/// The v2 notifications that a client receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notifications {
    None,
    /// Those that 0.77 also sends to a listener of a conversation.
    OfConversations,
    /// Those about turns and threads, without their items.
    OfTurns,
    All,
}

impl EventFilter {
    const NOTHING: Self = Self {
        events: Events::None,
        notifications: Notifications::None,
        items: false,
        v1_questions: false,
        v2_questions: false,
    };

    /// The filter of a client with these subscriptions.
    pub(crate) fn of(client: Option<&Client>, subscriptions: &Subscriptions) -> Self {
        let (is_v1, is_v2) = (!subscriptions.listeners.is_empty(), subscriptions.is_v2);
        if !is_v1 && !is_v2 {
            return Self::NOTHING;
        }
        let all = Notifications::All;
        match client.and_then(|client| client.dialect) {
            Some(Dialect::V1) => Self { events: Events::All, v1_questions: true, ..Self::NOTHING },
            Some(Dialect::V2) => Self { notifications: all, v2_questions: true, ..Self::NOTHING },
            Some(Dialect::Both) => {
                Self { events: Events::All, notifications: all, items: false, v1_questions: true, v2_questions: true }
            }
            Some(Dialect::Items) => Self {
                events: Events::BesideItems,
                notifications: Notifications::OfTurns,
                items: true,
                v1_questions: true,
                v2_questions: false,
            },
            None => {
                let has_events = is_v1 || client.is_none_or(|client| client.has_events);
                let is_077 = client.is_none_or(|client| client.release == ProtocolRelease::V077);
                Self {
                    events: if has_events { Events::All } else { Events::None },
                    notifications: match (is_v2, is_077) {
                        (true, _) => all,
                        (false, true) => Notifications::OfConversations,
                        (false, false) => Notifications::None,
                    },
                    items: false,
                    v1_questions: is_v1,
                    v2_questions: is_v2,
                }
            }
        }
    }

    /// Whether the client receives nothing at all.
    pub(crate) fn is_muted(self) -> bool {
        self == Self::NOTHING
    }

    /// Whether the client receives a legacy event.
    pub(crate) fn hears_event(self, event: &EventMsg) -> bool {
        match self.events {
            Events::None => false,
            Events::BesideItems => !is_told_as_item(event),
            Events::All => true,
        }
    }

    /// Whether the client receives a notification.
    pub(crate) fn hears(self, notification: &ServerNotification) -> bool {
        use ServerNotification as N;
        match self.notifications {
            Notifications::None => false,
            Notifications::OfConversations => !matches!(
                notification,
                N::ThreadStarted(_)
                    | N::ThreadStatusChanged(_)
                    | N::ThreadClosed(_)
                    | N::ThreadReverted(_)
                    | N::TurnStarted(_)
                    | N::ServerRequestResolved(_)
                    | N::Warning(_)
            ),
            Notifications::OfTurns => {
                let method = notification.method();
                !method.starts_with("item/") && !matches!(notification, N::TurnPlanUpdated(_))
            }
            Notifications::All => true,
        }
    }
}

/// Whether `item/created` and `item/delta` carry the same content.
fn is_told_as_item(event: &EventMsg) -> bool {
    matches!(
        event,
        EventMsg::AgentMessage(_)
            | EventMsg::AgentMessageDelta(_)
            | EventMsg::AgentMessageContentDelta(_)
            | EventMsg::AgentReasoning(_)
            | EventMsg::AgentReasoningDelta(_)
            | EventMsg::AgentReasoningRawContent(_)
            | EventMsg::AgentReasoningRawContentDelta(_)
            | EventMsg::AgentReasoningSectionBreak(_)
            | EventMsg::ReasoningContentDelta(_)
            | EventMsg::ReasoningRawContentDelta(_)
            | EventMsg::ItemStarted(_)
            | EventMsg::ItemCompleted(_)
            | EventMsg::PlanUpdate(_)
            | EventMsg::ViewImageToolCall(_)
    )
}
