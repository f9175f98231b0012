//! The first version, as the clients of 2025 speak it: conversations, listeners, events of the queue.
//!
//! A conversation is a thread, and its events are those of `codex proto`. What is here translates methods and answers;
//! what a listener hears comes from the subscriber of its thread, as for every other client.

mod listeners;
mod open_conversation;
mod serve;
mod stored_threads;

use std::sync::Arc;

use codex_protocol::methods::ClientRequest;
use codex_protocol::rpc::ErrorObject;
use codex_wire::ids::ThreadId;

use super::connection::{Connection, Unanswered};
pub(crate) use serve::serve;

/// The conversation whose subscriber serves a request.
pub(crate) fn conversation_of(
    connection: &Connection,
    request: &ClientRequest,
) -> Option<Result<ThreadId, ErrorObject>> {
    Some(Ok(match request {
        ClientRequest::SendUserMessage(params) => params.conversation_id,
        ClientRequest::SendUserTurn(params) => params.conversation_id,
        ClientRequest::InterruptConversation(params) => params.conversation_id,
        ClientRequest::AddConversationListener(params) => params.conversation_id,
        ClientRequest::RemoveConversationListener(params) => {
            let name = &params.subscription_id;
            let unknown = || ErrorObject::invalid(format!("subscription not found: {name}"));
            return Some(connection.listener(name).ok_or_else(unknown));
        }
        _ => return None,
    }))
}

/// Serves a request beside all others, or hands it back if it is not of this version.
pub(crate) async fn serve_aside(
    connection: &Arc<Connection>,
    unanswered: Unanswered,
    request: ClientRequest,
) -> Option<(Unanswered, ClientRequest)> {
    let (unanswered, request) = open_conversation::serve(connection, unanswered, request).await?;
    stored_threads::serve(connection, unanswered, request).await
}

/// There is no such conversation here.
pub(crate) fn not_found(conversation: ThreadId) -> ErrorObject {
    ErrorObject::invalid(format!("conversation not found: {conversation}"))
}
