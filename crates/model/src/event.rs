//! The events of an answer.

use std::sync::Arc;

use codex_wire::{
    conversation_item::ItemOrigin,
    response::ResponseItem,
    tokens::{RateLimitSnapshot, TokenUsage},
};

/// One event of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// The provider has accepted the request; its answer follows.
    Opened {
        /// The rate limits of the account. The Responses API always has some, which are empty if the provider sent
        /// none.
        rate_limits: Option<RateLimitSnapshot>,
    },
    /// An item has started. It is a preview: its text is still empty.
    ItemAdded(ResponseItem),
    /// More text of a message.
    TextDelta {
        /// The message.
        item_id: String,
        delta: String,
    },
    /// A new part of a reasoning summary has begun.
    ReasoningPartAdded {
        /// The reasoning item.
        item_id: String,
        /// The place of the part in the summary.
        index: i64,
    },
    /// More text of a reasoning summary.
    ReasoningSummaryDelta {
        /// The reasoning item.
        item_id: String,
        /// The place of the part in the summary.
        index: i64,
        delta: String,
    },
    /// More raw reasoning.
    ReasoningDelta {
        /// The reasoning item.
        item_id: String,
        /// The place of the part in the content.
        index: i64,
        delta: String,
    },
    /// An item is complete. It has an origin if it contains data that only its provider can read.
    ItemDone(ResponseItem, Option<Arc<ItemOrigin>>),
    /// A warning for the user.
    Notice(String),
    /// The answer is complete; nothing follows.
    Completed {
        /// The provider's id of the answer; empty if it sent none.
        response_id: String,
        usage: Option<TokenUsage>,
        /// Whether the provider reports that it enforced a schema.
        follows_schema: bool,
    },
}
