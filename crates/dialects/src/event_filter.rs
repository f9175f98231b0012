//! The events of a thread that a client receives, and their dialect, which follows from how the client subscribed
//! unless it chose one.

use std::collections::HashMap;

pub use codex_protocol::v2::initialize::Dialect;
use codex_protocol::v2::notification::ServerNotification;
use codex_wire::event::EventMsg;

use crate::ProtocolRelease;

/// The traits of a client that decide which events it receives.
#[derive(Debug, Clone, Copy)]
pub struct ClientTraits {
    /// The release whose behaviour it expects.
    pub release: ProtocolRelease,
    /// The dialect of its notifications, independent of its requests.
    pub dialect: Option<Dialect>,
    /// Whether it wants `codex/event/*` in addition to the notifications.
    pub has_events: bool,
}

/// The subscriptions of a client to one thread.
#[derive(Debug, Clone, Default)]
pub struct Subscriptions {
    /// Whether it subscribed with a v2 method.
    pub is_v2: bool,
    /// Its listeners, and whether each wants every item of the conversation with the model.
    listeners: HashMap<String, bool>,
}

impl Subscriptions {
    /// The subscription of a client that has opened a thread, or sent a request about it, in v2.
    #[must_use]
    pub fn v2() -> Self {
        Self { is_v2: true, listeners: HashMap::new() }
    }

    /// Adds a listener.
    pub fn add(&mut self, name: String, raw_items: bool) {
        self.listeners.insert(name, raw_items);
    }

    /// Removes a listener.
    pub fn remove(&mut self, name: &str) {
        self.listeners.remove(name);
    }

    /// The ids of the listeners.
    #[must_use]
    pub fn names(&self) -> impl ExactSizeIterator<Item = &String> {
        self.listeners.keys()
    }

    /// Whether a listener wants every item of the conversation with the model.
    #[must_use]
    pub fn wants_raw_items(&self) -> bool {
        self.listeners.values().any(|is_wanted| *is_wanted)
    }
}

/// The events of a thread that a client receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventFilter {
    /// The legacy events that it receives.
    pub events: Events,
    /// The notifications that it receives.
    pub notifications: Notifications,
    /// Whether it receives `item/created` and `item/delta`.
    pub items: bool,
    /// Whether it receives approval requests of v1.
    pub v1_questions: bool,
    /// Whether it receives approval requests of v2.
    pub v2_questions: bool,
}

/// The `codex/event/*` messages that a client receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Events {
    /// None.
    None,
    /// All except those that repeat `item/created` and `item/delta`.
    BesideItems,
    /// All.
    All,
}

/// The v2 notifications that a client receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notifications {
    /// None.
    None,
    /// Those that 0.77 also sends to a listener of a conversation.
    OfConversations,
    /// Those about turns and threads, without their items.
    OfTurns,
    /// All.
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
    #[must_use]
    pub fn of(client: Option<ClientTraits>, subscriptions: &Subscriptions) -> Self {
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
    #[must_use]
    pub fn is_muted(self) -> bool {
        self == Self::NOTHING
    }

    /// Whether the client receives a legacy event.
    #[must_use]
    pub fn hears_event(self, event: &EventMsg) -> bool {
        match self.events {
            Events::None => false,
            Events::BesideItems => !is_told_as_item(event),
            Events::All => true,
        }
    }

    /// Whether the client receives a notification.
    #[must_use]
    pub fn hears(self, notification: &ServerNotification) -> bool {
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
