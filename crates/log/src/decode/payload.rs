//! The payloads of lines, in one form for all releases.

use std::borrow::Cow;

use codex_wire::error_info::CodexErrorInfo;
use codex_wire::event::{TurnAbortReason, UserMessageEvent};
use codex_wire::input::TextElement;
use codex_wire::text::Text;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Abort, ItemId, TurnId};

/// The payload of an `event_msg` line, parsed in one pass.
#[derive(Deserialize)]
pub(super) struct Payload<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(default)]
    turn_id: Option<String>,
    #[serde(default)]
    item_id: Option<String>,
    /// The client's id of the user's message.
    #[serde(default)]
    client_id: Option<String>,
    /// The call that a question is about.
    #[serde(default)]
    call_id: Option<String>,
    #[serde(default)]
    pub(super) message: Option<String>,
    #[serde(default)]
    pub(super) text: Option<String>,
    #[serde(default)]
    images: Option<Vec<String>>,
    #[serde(default)]
    text_elements: Vec<TextElement>,
    #[serde(default)]
    pub(super) model_context_window: Option<i64>,
    #[serde(default)]
    pub(super) codex_error_info: Option<CodexErrorInfo>,
    #[serde(default)]
    pub(super) last_agent_message: Option<Text>,
    #[serde(default)]
    pub(super) response_id: Option<String>,
    #[serde(default)]
    reason: Option<TurnAbortReason>,
    #[serde(default)]
    pub(super) num_turns: Option<usize>,
    #[serde(default)]
    pub(super) started_at_ms: Option<i64>,
    #[serde(default)]
    pub(super) until_ms: Option<i64>,
    #[serde(default)]
    pub(super) goes_on: bool,
    #[serde(default, borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub(super) goal: Option<&'a RawValue>,
}

impl Payload<'_> {
    /// The id of the turn, if the line contains it.
    pub(super) fn turn(&mut self) -> Option<TurnId> {
        self.turn_id.take().map(TurnId::new)
    }

    /// The id of the item; empty if the line contains none.
    pub(super) fn item_id(&mut self) -> ItemId {
        ItemId::new(self.item_id.take().unwrap_or_default())
    }

    /// The call that a question is about; empty if the line contains none.
    pub(super) fn call(&mut self) -> ItemId {
        ItemId::new(self.call_id.take().unwrap_or_default())
    }

    pub(super) fn key(&mut self) -> Option<std::sync::Arc<str>> {
        self.client_id.take().map(Into::into)
    }

    pub(super) fn words(&mut self) -> String {
        self.message.take().or(self.text.take()).unwrap_or_default()
    }

    pub(super) fn said(&mut self) -> UserMessageEvent {
        UserMessageEvent {
            message: self.words(),
            images: self.images.take(),
            text_elements: std::mem::take(&mut self.text_elements),
        }
    }

    pub(super) fn abort(&self) -> Abort {
        match self.reason {
            Some(TurnAbortReason::Replaced) => Abort::Replaced,
            Some(TurnAbortReason::ReviewEnded) => Abort::ReviewEnded,
            _ => Abort::Interrupted,
        }
    }
}

/// The payload of a `compacted` line.
#[derive(Deserialize)]
pub(super) struct CompactedPayload<'a> {
    #[serde(default)]
    pub(super) message: String,
    #[serde(borrow, default)]
    pub(super) replacement_history: Option<Vec<&'a RawValue>>,
}
