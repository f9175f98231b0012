//! Requests that open conversations. They are served beside all others.

use std::path::PathBuf;
use std::sync::Arc;

use codex_log::history::ForkPoint;
use codex_log::settings::SettingsChange;
use codex_protocol::methods::{ClientRequest, Method, call};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v1::conversation::{
    ConversationResumed, ForkConversationParams, NewConversationParams, NewConversationResponse,
    ResumeConversationParams, SessionConfiguredNotification,
};
use codex_protocol::v2::notification::ServerNotification;
use codex_protocol::v2::thread::ThreadOptions;
use codex_thread::{Beginning, StartThread, Thread};
use codex_wire::ids::ThreadId;
use tokio::sync::mpsc;

use crate::app::connection::{Connection, Unanswered};
use crate::app::disk::blocking;
use crate::app::dispatch::run_subscriber;
use crate::app::event_filter::{Dialect, Subscriptions};
use crate::app::open_thread::{Begun, begin, explicit, find, read_history, start_request};
use crate::app::stored::messages;
use crate::app::stored_threads::tell;
use crate::app::subscriber::{SubscriberRequest, ThreadSubscriber};

/// A subscriber at which nobody listens yet, and what waits for it.
type Place = (ThreadSubscriber, mpsc::Receiver<Box<SubscriberRequest>>);

/// A conversation that was there before.
struct Resumed {
    /// None if it was loaded already.
    place: Option<Place>,
    configured: SessionConfiguredNotification,
}

/// Serves the requests of this group.
pub(super) async fn serve(
    connection: &Arc<Connection>,
    unanswered: Unanswered,
    request: ClientRequest,
) -> Option<(Unanswered, ClientRequest)> {
    match request {
        ClientRequest::NewConversation(params) => match start(connection, *params).await {
            Ok((place, answer)) => {
                connection.outbox.answer::<call::NewConversation>(&unanswered.id, Ok(answer)).await;
                run_subscriber(place.0, place.1);
            }
            Err(error) => connection.outbox.refuse(&unanswered.id, error).await,
        },
        ClientRequest::ResumeConversation(params) => {
            let resumed = resume(connection, *params).await;
            finish::<call::ResumeConversation>(connection, unanswered, resumed).await;
        }
        ClientRequest::ForkConversation(params) => {
            let forked = fork(connection, *params).await;
            finish::<call::ForkConversation>(connection, unanswered, forked).await;
        }
        other => return Some((unanswered, other)),
    }
    None
}

/// Tells that a conversation is ready, then answers, and then it can be spoken to.
async fn finish<M>(connection: &Arc<Connection>, unanswered: Unanswered, resumed: Result<Resumed, ErrorObject>)
where
    M: Method<Response = ConversationResumed>,
{
    let Resumed { place, configured } = match resumed {
        Ok(resumed) => resumed,
        Err(error) => return connection.outbox.refuse(&unanswered.id, error).await,
    };
    let answer = ConversationResumed {
        conversation_id: configured.session_id,
        model: configured.model.clone(),
        initial_messages: configured.initial_messages.clone(),
        rollout_path: configured.rollout_path.clone(),
    };
    if connection.client().and_then(|client| client.dialect) != Some(Dialect::V2) {
        tell(connection, ServerNotification::SessionConfigured(Box::new(configured))).await;
    }
    connection.outbox.answer::<M>(&unanswered.id, Ok(answer)).await;
    if let Some((subscriber, requests)) = place {
        run_subscriber(subscriber, requests);
    }
}

async fn start(
    connection: &Arc<Connection>,
    params: NewConversationParams,
) -> Result<(Place, NewConversationResponse), ErrorObject> {
    let request = start_request(connection, &params.into());
    let Begun { subscriber, requests, thread, .. } =
        begin(connection, request, false, Subscriptions::default()).await?;
    let started = thread.started();
    let answer = NewConversationResponse {
        conversation_id: thread.id(),
        model: started.settings.model.clone(),
        reasoning_effort: started.settings.effort.clone(),
        rollout_path: started.rollout.clone(),
    };
    Ok(((subscriber, requests), answer))
}

/// What stays the same when a client brings a conversation along, or names one.
async fn open(connection: &Arc<Connection>, request: StartThread) -> Result<Resumed, ErrorObject> {
    let begun = begin(connection, request, false, Subscriptions::default()).await?;
    let Begun { subscriber, requests, thread, shows_raw_reasoning } = begun;
    let configured = describe(connection, &thread, shows_raw_reasoning).await?;
    Ok(Resumed { place: Some((subscriber, requests)), configured })
}

async fn resume(connection: &Arc<Connection>, params: ResumeConversationParams) -> Result<Resumed, ErrorObject> {
    let ResumeConversationParams { path, conversation_id, history, overrides } = params;
    let options = ThreadOptions::from(overrides.unwrap_or_default());
    if let Some(items) = history {
        let items = read_history(items)?;
        let request = start_request(connection, &options);
        return open(connection, StartThread { beginning: Beginning::Given(items), ..request }).await;
    }
    let id = named(connection, conversation_id, path).await?;
    let _turn = connection.host.start.threads.turn_to_open(id).await;
    if let Some(thread) = connection.host.start.threads.get(id) {
        // It goes on as it is; what was asked to be different would change it under those who use it.
        let host = Arc::clone(&connection.host);
        let with_thoughts = blocking(move || Ok(host.config()?.reasoning.raw)).await?;
        return Ok(Resumed { place: None, configured: describe(connection, &thread, with_thoughts).await? });
    }
    let explicit = explicit(&options);
    let request = start_request(connection, &options);
    open(connection, StartThread { beginning: Beginning::Resumed { thread: id, explicit }, ..request }).await
}

async fn fork(connection: &Arc<Connection>, params: ForkConversationParams) -> Result<Resumed, ErrorObject> {
    let ForkConversationParams { path, conversation_id, overrides } = params;
    let options = ThreadOptions::from(overrides.unwrap_or_default());
    let id = named(connection, conversation_id, path).await?;
    let explicit = explicit(&options);
    let request = start_request(connection, &options);
    let beginning = Beginning::Forked { thread: id, point: ForkPoint::End, explicit };
    open(connection, StartThread { beginning, ..request }).await
}

/// The conversation a client means. A path goes before a name, and starts at the home folder.
async fn named(
    connection: &Arc<Connection>,
    conversation: Option<ThreadId>,
    path: Option<PathBuf>,
) -> Result<ThreadId, ErrorObject> {
    if path.is_none() && conversation.is_none() {
        return Err(ErrorObject::invalid("either path, conversationId or history must be given"));
    }
    let path = path.map(|path| connection.host.start.config.home().path().join(path));
    let name = conversation.map(|id| id.to_string()).unwrap_or_default();
    find(connection, &name, path).await
}

/// What a client is told of a conversation that was there before.
async fn describe(
    connection: &Connection,
    thread: &Thread,
    with_thoughts: bool,
) -> Result<SessionConfiguredNotification, ErrorObject> {
    let settings = thread.configure(SettingsChange::default()).await.map_err(|_| super::not_found(thread.id()))?;
    let started = thread.started();
    let (host, id) = (Arc::clone(&connection.host), thread.id());
    let said = blocking(move || messages(&*host.store, id, with_thoughts).map_err(ErrorObject::internal_from)).await?;
    Ok(SessionConfiguredNotification {
        session_id: thread.id(),
        model: settings.model.clone(),
        reasoning_effort: settings.effort.clone(),
        history_log_id: started.history_log,
        history_entry_count: started.history_entries,
        initial_messages: Some(said),
        rollout_path: started.rollout.clone(),
    })
}
