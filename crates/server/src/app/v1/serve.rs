//! What a subscriber does with the requests of the first version about its conversation.

use std::sync::Arc;

use codex_log::settings::SettingsChange;
use codex_protocol::methods::{ClientRequest, call};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v1::turn::{AddConversationListenerResponse, InterruptConversationResponse, SendUserTurnParams};
use codex_protocol::v2::empty::Empty;
use codex_wire::event::TurnAbortReason;
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;

use super::not_found;
use crate::app::connection::Unanswered;
use crate::app::event_filter::Events;
use crate::app::subscriber::ThreadSubscriber;

/// How many listeners of one conversation a client may have.
const MOST_LISTENERS: usize = 256;

/// Serves a request about the subscriber's conversation, or hands it back if it is not of this version.
pub(crate) async fn serve(
    subscriber: &mut ThreadSubscriber,
    unanswered: Unanswered,
    request: ClientRequest,
) -> Option<(Unanswered, ClientRequest)> {
    let (connection, id) = (Arc::clone(&subscriber.connection), &unanswered.id);
    let outbox = &connection.outbox;
    match request {
        ClientRequest::SendUserMessage(params) => {
            let said = say(subscriber, params.items, SettingsChange::default()).await;
            outbox.answer::<call::SendUserMessage>(id, said).await;
        }
        ClientRequest::SendUserTurn(params) => {
            let said = say_under(subscriber, *params).await;
            outbox.answer::<call::SendUserTurn>(id, said).await;
        }
        ClientRequest::InterruptConversation(_) => interrupt(subscriber, unanswered).await,
        ClientRequest::AddConversationListener(params) => {
            let added = new_listener(subscriber).await;
            let name = added.as_ref().ok().map(|added| added.subscription_id.clone());
            // The answer goes first: the client must know the name of what it hears from here on.
            outbox.answer::<call::AddConversationListener>(id, added).await;
            if let Some(name) = name {
                subscriber.add_listener(name, params.experimental_raw_events).await;
                if params.experimental_raw_events {
                    subscriber.tell_beginning().await;
                }
            }
        }
        ClientRequest::RemoveConversationListener(params) => {
            // What was under way is heard before the answer, and nothing after it.
            subscriber.answer_after_notifications::<call::RemoveConversationListener>(&unanswered, Empty {});
            subscriber.remove_listener(&params.subscription_id);
        }
        other => return Some((unanswered, other)),
    }
    None
}

/// A name for a listener, if there is room for one.
async fn new_listener(subscriber: &ThreadSubscriber) -> Result<AddConversationListenerResponse, ErrorObject> {
    if subscriber.listeners() >= MOST_LISTENERS {
        return Err(ErrorObject::invalid(format!("a conversation has at most {MOST_LISTENERS} listeners")));
    }
    // A conversation that has just ended has nothing more to say.
    subscriber.thread.running().await.map_err(|_| not_found(subscriber.thread.id()))?;
    Ok(AddConversationListenerResponse { subscription_id: ThreadId::fresh().to_string() })
}

async fn say(
    subscriber: &ThreadSubscriber,
    items: Vec<UserInput>,
    change: SettingsChange,
) -> Result<Empty, ErrorObject> {
    if items.is_empty() {
        return Err(ErrorObject::invalid("items must not be empty"));
    }
    crate::app::serve::check_turn(subscriber, &change, &items).await?;
    let said = subscriber.thread.say(crate::app::serve::fresh_turn(), items, change).await;
    said.map(|_| Empty {}).map_err(|_| not_found(subscriber.thread.id()))
}

async fn say_under(subscriber: &ThreadSubscriber, params: SendUserTurnParams) -> Result<Empty, ErrorObject> {
    let change = SettingsChange {
        cwd: Some(params.cwd),
        approval_policy: Some(params.approval_policy),
        reviewer: None,
        sandbox_policy: Some(params.sandbox_policy),
        model: Some(params.model),
        effort: Some(params.effort),
        summary: params.summary,
        output_schema: params.output_schema,
        mode: None,
    };
    say(subscriber, params.items, change).await
}

/// Stops the running turn. A client that listens is answered after it has heard that the turn is over.
async fn interrupt(subscriber: &mut ThreadSubscriber, unanswered: Unanswered) {
    let stopped = match subscriber.thread.interrupt().await {
        Ok(true) => Ok(InterruptConversationResponse { abort_reason: TurnAbortReason::Interrupted }),
        Ok(false) => Err(ErrorObject::invalid("no turn is running that could be interrupted")),
        Err(_) => Err(not_found(subscriber.thread.id())),
    };
    if stopped.is_ok() && subscriber.filter.events != Events::None {
        subscriber.interrupts.push(unanswered);
        return;
    }
    subscriber.connection.outbox.answer::<call::InterruptConversation>(&unanswered.id, stopped).await;
}
