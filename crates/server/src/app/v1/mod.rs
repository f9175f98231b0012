//! v1 of the protocol, as clients of 2025 use it: conversations, listeners, and `codex/event/*`.
//!
//! A conversation is a thread, and its events are those of `codex proto`. This module translates methods and responses;
//! the events come from the subscriber of the thread, as for every other client.

mod listeners;
mod open_conversation;
mod stored_threads;
mod turns;

use codex_protocol::rpc::ErrorObject;
use codex_wire::ids::ThreadId;

/// The error for a conversation that does not exist.
pub(crate) fn not_found(conversation: ThreadId) -> ErrorObject {
    ErrorObject::invalid(format!("conversation not found: {conversation}"))
}
