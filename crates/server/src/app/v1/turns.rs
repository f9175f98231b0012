//! Input to a conversation, and its listeners.

use codex_log::settings::SettingsChange;
use codex_protocol::methods::call;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v1::turn::{
    AddConversationListenerParams, AddConversationListenerResponse, InterruptConversationParams,
    InterruptConversationResponse, RemoveConversationListenerParams, SendUserMessageParams, SendUserTurnParams,
};
use codex_protocol::v2::empty::Empty;
use codex_thread::TurnStart;
use codex_wire::event::TurnAbortReason;
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;

use super::not_found;
use crate::app::dispatch::{Request, ServeThread};
use crate::app::lane::Lane;
use crate::app::subscriber::ThreadSubscriber;
use codex_dialects::event_filter::Events;

/// The maximum number of listeners of one conversation that a client may add.
const MOST_LISTENERS: usize = 256;

impl ServeThread for call::SendUserMessage {
    async fn serve(lane: &mut Lane, request: Request<Self>, params: SendUserMessageParams) {
        let said = match lane.conversation().await {
            Ok(subscriber) => say(subscriber, params.items, SettingsChange::default()).await,
            Err(error) => Err(error),
        };
        request.answer(said).await;
    }
}

impl ServeThread for call::SendUserTurn {
    async fn serve(lane: &mut Lane, request: Request<Self>, params: SendUserTurnParams) {
        let said = match lane.conversation().await {
            Ok(subscriber) => say_under(subscriber, params).await,
            Err(error) => Err(error),
        };
        request.answer(said).await;
    }
}

impl ServeThread for call::InterruptConversation {
    async fn serve(lane: &mut Lane, request: Request<Self>, _: InterruptConversationParams) {
        match lane.conversation().await {
            Ok(subscriber) => interrupt(subscriber, request).await,
            Err(error) => request.answer(Err(error)).await,
        }
    }
}

impl ServeThread for call::AddConversationListener {
    async fn serve(lane: &mut Lane, request: Request<Self>, params: AddConversationListenerParams) {
        let subscriber = match lane.conversation().await {
            Ok(subscriber) => subscriber,
            Err(error) => return request.answer(Err(error)).await,
        };
        let added = new_listener(subscriber).await;
        let name = added.as_ref().ok().map(|added| added.subscription_id.clone());
        if let Some(name) = &name {
            // The client may use the id as soon as it has the answer.
            subscriber.connection.add_listener(name.clone(), subscriber.thread.id());
        }
        // The answer goes first: the client must know the id of the messages that follow.
        request.answer(added).await;
        if let Some(name) = name {
            subscriber.add_listener(name, params.experimental_raw_events).await;
            if params.experimental_raw_events {
                subscriber.tell_beginning().await;
            }
        }
    }
}

impl ServeThread for call::RemoveConversationListener {
    async fn serve(lane: &mut Lane, request: Request<Self>, params: RemoveConversationListenerParams) {
        match lane.conversation().await {
            Ok(subscriber) => {
                // Pending messages go before the response, and nothing after it.
                request.later().answer_in::<Self>(&mut subscriber.outgoing, Empty {});
                subscriber.remove_listener(&params.subscription_id);
            }
            Err(error) => request.answer(Err(error)).await,
        }
    }
}

/// Creates a listener id, if there is room for one.
async fn new_listener(subscriber: &ThreadSubscriber) -> Result<AddConversationListenerResponse, ErrorObject> {
    if subscriber.listeners() >= MOST_LISTENERS {
        return Err(ErrorObject::invalid(format!("a conversation has at most {MOST_LISTENERS} listeners")));
    }
    // A conversation that has just ended sends no more events.
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
    crate::app::turns::check_turn(subscriber, &change, &items).await?;
    let said = subscriber.thread.say(crate::app::turns::fresh_turn(), items, change).await;
    match said.map_err(|_| not_found(subscriber.thread.id()))? {
        TurnStart::Refused(why) => Err(ErrorObject::invalid(why)),
        TurnStart::Started | TurnStart::Joined(_) | TurnStart::Known(_) => Ok(Empty {}),
    }
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

/// Interrupts the running turn. A client that listens is answered after it has received the end of the turn.
async fn interrupt(subscriber: &mut ThreadSubscriber, request: Request<call::InterruptConversation>) {
    let stopped = match subscriber.thread.interrupt().await {
        Ok(true) => Ok(InterruptConversationResponse { abort_reason: TurnAbortReason::Interrupted }),
        Ok(false) => Err(ErrorObject::invalid("no turn is running that could be interrupted")),
        Err(_) => Err(not_found(subscriber.thread.id())),
    };
    if stopped.is_ok() && subscriber.filter.events != Events::None {
        subscriber.interrupts.push(request.later());
        return;
    }
    request.answer(stopped).await;
}
