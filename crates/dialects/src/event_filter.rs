//! The events of a thread that a client receives, and their dialect, which follows from how the client subscribed
//! unless it chose one.

use std::collections::HashMap;

pub use codex_protocol::v2::initialize::Dialect;
use codex_protocol::v2::notification::ServerNotification;
use codex_wire::event::EventMsg;

use crate::ProtocolRelease;

/// The traits of a client that decide which events it receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientTraits {
    /// The release whose behaviour it expects.
    pub release: ProtocolRelease,
    /// The dialect of its notifications, independent of its requests.
    pub dialect: Option<Dialect>,
    /// Whether it wants `codex/event/*` in addition to the notifications.
    pub has_events: bool,
    /// The approval requests that it answers; `None` if that follows from its dialect and its subscription.
    pub approvals: Option<ApprovalForms>,
    /// Whether members without a value are left out, because the client stops at `null`.
    pub leaves_out_null: bool,
}

/// The forms of approval requests that a client is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalForms {
    /// `execCommandApproval` and `applyPatchApproval`.
    V1,
    /// `item/commandExecution/requestApproval` and its like.
    V2,
    /// Each request in both forms; the first answer settles both.
    Both,
}

/// The subscriptions of a client to one thread.
#[derive(Debug, Clone, Default)]
pub struct Subscriptions {
    /// Whether it subscribed with a v2 method.
    pub is_v2: bool,
    /// Whether it did so before it added a listener.
    is_v2_first: bool,
    /// Its listeners, and whether each wants every item of the conversation with the model.
    listeners: HashMap<String, bool>,
}

impl Subscriptions {
    /// The subscription of a client that has opened a thread, or sent a request about it, in v2.
    #[must_use]
    pub fn v2() -> Self {
        Self { is_v2: true, is_v2_first: true, listeners: HashMap::new() }
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

    /// Whether the client is a listener only, or was one first.
    fn is_conversation(&self) -> bool {
        let is_thread = self.is_v2 && self.is_v2_first;
        !is_thread && !self.listeners.is_empty()
    }
}

/// The events of a thread that a client receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventFilter {
    /// The legacy events that it receives.
    pub events: Events,
    /// The notifications that it receives.
    pub notifications: Notifications,
    /// The approval requests that it receives.
    pub approvals: Option<ApprovalForms>,
}

/// The `codex/event/*` messages that a client receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Events {
    /// None.
    None,
    /// The events of the dialect with `item/created`, together with its items.
    Items,
    /// All except the pieces of texts, which the client receives as notifications.
    WithoutPieces,
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
    const NOTHING: Self = Self { events: Events::None, notifications: Notifications::None, approvals: None };

    /// The filter of a client with these subscriptions.
    #[must_use]
    pub fn of(client: Option<ClientTraits>, subscriptions: &Subscriptions) -> Self {
        if subscriptions.listeners.is_empty() && !subscriptions.is_v2 {
            return Self::NOTHING;
        }
        let filter = match client.and_then(|client| client.dialect) {
            Some(Dialect::V1) => Self { events: Events::All, approvals: Some(ApprovalForms::V1), ..Self::NOTHING },
            Some(Dialect::V2) => {
                Self { notifications: Notifications::All, approvals: Some(ApprovalForms::V2), ..Self::NOTHING }
            }
            Some(Dialect::Both) => {
                Self { events: Events::All, notifications: Notifications::All, approvals: Some(ApprovalForms::Both) }
            }
            Some(Dialect::Items) => Self {
                events: Events::Items,
                notifications: Notifications::OfTurns,
                approvals: Some(ApprovalForms::V1),
            },
            None => Self::by_subscription(client, subscriptions),
        };
        Self { approvals: client.and_then(|client| client.approvals).or(filter.approvals), ..filter }
    }

    /// The filter of a client that has no dialect.
    fn by_subscription(client: Option<ClientTraits>, subscriptions: &Subscriptions) -> Self {
        let (is_v1, is_v2) = (!subscriptions.listeners.is_empty(), subscriptions.is_v2);
        let is_conversation = subscriptions.is_conversation();
        let is_0166 = client.is_some_and(|client| client.release == ProtocolRelease::V0166);
        Self {
            events: match client.is_none_or(|client| client.has_events) {
                true => Events::All,
                false if is_conversation => Events::All,
                false if is_v1 => Events::WithoutPieces,
                false => Events::None,
            },
            notifications: match (is_v2, is_0166) {
                (true, _) => Notifications::All,
                (false, false) => Notifications::OfConversations,
                (false, true) => Notifications::None,
            },
            approvals: Some(if is_conversation { ApprovalForms::V1 } else { ApprovalForms::V2 }),
        }
    }

    /// Whether the client receives nothing at all.
    #[must_use]
    pub fn is_muted(self) -> bool {
        self == Self::NOTHING
    }

    /// Whether the client receives a legacy event.
    #[must_use]
    pub fn passes_event(self, event: &EventMsg) -> bool {
        match self.events {
            Events::None => false,
            Events::WithoutPieces => !is_piece(event),
            Events::Items | Events::All => true,
        }
    }

    /// Whether the client receives a notification.
    #[must_use]
    pub fn passes(self, notification: &ServerNotification) -> bool {
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

/// Whether the event is a piece of a text or of a command's output.
fn is_piece(event: &EventMsg) -> bool {
    matches!(
        event,
        EventMsg::AgentMessageDelta(_)
            | EventMsg::AgentMessageContentDelta(_)
            | EventMsg::AgentReasoningDelta(_)
            | EventMsg::AgentReasoningRawContentDelta(_)
            | EventMsg::AgentReasoningSectionBreak(_)
            | EventMsg::ReasoningContentDelta(_)
            | EventMsg::ReasoningRawContentDelta(_)
            | EventMsg::ExecCommandOutputDelta(_)
    )
}
