//! The first version, as the clients of 2025 speak it: conversations, listeners, events of the queue.
//!
//! A conversation is a thread, and its events are those of `codex proto`. This module translates methods and responses;
//! what a listener hears comes from the subscriber of its thread, as for every other client.

mod listeners;
mod open_conversation;
mod stored_threads;
mod turns;

use codex_protocol::rpc::ErrorObject;
use codex_wire::ids::ThreadId;

/// There is no such conversation here.
pub(crate) fn not_found(conversation: ThreadId) -> ErrorObject {
    ErrorObject::invalid(format!("conversation not found: {conversation}"))
}
