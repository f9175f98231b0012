//! The role of an item in the conversation with the model.

use std::borrow::Cow;
use std::sync::Arc;

use codex_wire::conversation_item::ConversationItem;
use codex_wire::response::{Message, ResponseItem};

use crate::line::ItemHead;
use crate::{Record, request_item};

/// The prefixes of generated messages that describe the environment to the model. No user wrote them.
const OF_SURROUNDINGS: [&str; 4] =
    ["# AGENTS.md instructions for ", "<user_instructions>", "<environment_context>", "<INSTRUCTIONS>"];

/// The beginning of a message with untrusted text that a client has put beside the user's, before its key.
pub const EXTERNAL: &str = "<external_";

/// The role of an item in the conversation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ItemRole<'a> {
    /// A message with the role of the user.
    User,
    /// A message of the model.
    Assistant,
    /// A developer message.
    Developer,
    /// A message with another role.
    OtherMessage,
    /// A call, with the id that its output must have.
    Call(Cow<'a, str>),
    /// The output of a call.
    Output(Cow<'a, str>),
    /// Anything else.
    Other,
}

impl<'a> ItemRole<'a> {
    /// The role of an item, and its form for requests if that differs. None if it is not for the model.
    pub(super) fn of(record: &'a Record) -> Option<(Self, Option<ConversationItem>)> {
        match record.made().map(Self::of_made) {
            Some(Some(role)) => Some((role, None)),
            Some(None) if record.made().is_some_and(|item| matches!(item, ResponseItem::GhostSnapshot(_))) => None,
            _ => Self::of_json(record.json.json()),
        }
    }

    /// The role of an item that was created here; none if its JSON has to be inspected.
    fn of_made(item: &'a ResponseItem) -> Option<Self> {
        let call = |id: &'a str| Self::Call(Cow::Borrowed(id));
        let output = |id: &'a str| Self::Output(Cow::Borrowed(id));
        Some(match item {
            ResponseItem::Message(message) => Self::of_message(&message.role),
            ResponseItem::LocalShellCall(made) => made.call_id.as_deref().map_or(Self::Other, call),
            ResponseItem::FunctionCall(made) => call(&made.call_id),
            ResponseItem::CustomToolCall(made) => call(&made.call_id),
            ResponseItem::FunctionCallOutput(made) => output(&made.call_id),
            ResponseItem::CustomToolCallOutput(made) => output(&made.call_id),
            ResponseItem::Reasoning(_) | ResponseItem::WebSearchCall(_) | ResponseItem::Compaction(_) => Self::Other,
            ResponseItem::GhostSnapshot(_) | ResponseItem::Other(_) => return None,
        })
    }

    fn of_json(json: Cow<'a, str>) -> Option<(Self, Option<ConversationItem>)> {
        let (role, request) = match json {
            Cow::Borrowed(json) => Self::of_head(json)?,
            Cow::Owned(json) => {
                let (role, request) = ItemRole::of_head(&json)?;
                (role.into_owned(), request)
            }
        };
        Some((role, request))
    }

    fn of_head(json: &'a str) -> Option<(Self, Option<ConversationItem>)> {
        let head: ItemHead<'_> = serde_json::from_str(json).ok().filter(request_item::is_for_model)?;
        let request = request_item::for_request(json, &head);
        let role = match (&*head.kind, head.call_id) {
            ("message", _) => head.role.map_or(Self::OtherMessage, |role| Self::of_message(&role.0)),
            (kind, Some(id)) if kind.ends_with("_output") => Self::Output(id.0),
            (kind, Some(id)) if kind.ends_with("_call") => Self::Call(id.0),
            _ => Self::Other,
        };
        Some((role, request))
    }

    fn of_message(role: &str) -> Self {
        match role {
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "developer" => Self::Developer,
            _ => Self::OtherMessage,
        }
    }

    fn into_owned<'b>(self) -> ItemRole<'b> {
        match self {
            Self::User => ItemRole::User,
            Self::Assistant => ItemRole::Assistant,
            Self::Developer => ItemRole::Developer,
            Self::OtherMessage => ItemRole::OtherMessage,
            Self::Call(id) => ItemRole::Call(id.into_owned().into()),
            Self::Output(id) => ItemRole::Output(id.into_owned().into()),
            Self::Other => ItemRole::Other,
        }
    }

    /// Whether it is a message of any role.
    pub(super) fn is_message(&self) -> bool {
        matches!(self, Self::User | Self::Assistant | Self::Developer | Self::OtherMessage)
    }
}

/// A message with the role of the user, unless it is an environment context or untrusted text.
pub(super) fn user_message(item: &ConversationItem) -> Option<Message> {
    match Arc::unwrap_or_clone(item.typed().ok()?) {
        ResponseItem::Message(message)
            if message.role == "user"
                && !begins_with(&message, &OF_SURROUNDINGS)
                && !begins_with(&message, &[EXTERNAL]) =>
        {
            Some(message)
        }
        _ => None,
    }
}

/// Whether an item is one of the initial items of a conversation.
pub(super) fn is_preface(record: &Record, role: &ItemRole<'_>) -> bool {
    match role {
        ItemRole::Developer => true,
        ItemRole::User => match record.item().as_deref() {
            Some(ResponseItem::Message(message)) => begins_with(message, &OF_SURROUNDINGS),
            _ => false,
        },
        _ => false,
    }
}

fn begins_with(message: &Message, beginnings: &[&str]) -> bool {
    let text = message.text();
    beginnings.iter().any(|beginning| text.starts_with(beginning))
}
