//! `newConversation`, `resumeConversation` and `forkConversation`.

use std::path::PathBuf;
use std::sync::Arc;

use codex_log::history::ForkPoint;
use codex_log::settings::SettingsChange;
use codex_protocol::methods::{Method, call};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v1::conversation::{
    ConversationResumed, ForkConversationParams, NewConversationParams, NewConversationResponse,
    ResumeConversationParams, SessionConfiguredNotification,
};
use codex_protocol::v2::notification::ServerNotification;
use codex_protocol::v2::thread::ThreadOptions;
use codex_thread::{InitialHistory, StartThread, Thread};
use codex_wire::ids::ThreadId;
use tokio::sync::mpsc;

use crate::app::connection::Connection;
use crate::app::disk::blocking;
use crate::app::dispatch::{Request, Serve, ServeThread};
use crate::app::lane::{Lane, LaneRequest};
use crate::app::open_thread::{Begun, begin, explicit, find, read_history, run_lane, start_request};
use crate::app::stored::messages;
use crate::app::stored_threads::tell;
use crate::app::subscriber::ThreadSubscriber;
use codex_dialects::event_filter::{Dialect, Subscriptions};

/// Requests that wait for a new conversation.
type Waiting = mpsc::Receiver<LaneRequest>;

/// An existing conversation, or a copy of one.
struct Resumed {
    /// None if it was loaded already.
    subscriber: Option<ThreadSubscriber>,
    /// `None` if it is resumed in the requested folder.
    requests: Option<Waiting>,
    configured: SessionConfiguredNotification,
}

impl Serve for call::NewConversation {
    async fn serve(request: Request<Self>, params: NewConversationParams) {
        match start(&request.connection, params).await {
            Ok((subscriber, requests, answer)) => {
                request.answer(Ok(answer)).await;
                run_lane(subscriber, requests);
            }
            Err(error) => request.answer(Err(error)).await,
        }
    }
}

impl ServeThread for call::ResumeConversation {
    async fn serve(lane: &mut Lane, request: Request<Self>, params: ResumeConversationParams) {
        let resumed = resume(&request.connection, lane.thread, params).await;
        finish(lane, request, resumed).await;
    }
}

impl ServeThread for call::ForkConversation {
    async fn serve(lane: &mut Lane, request: Request<Self>, params: ForkConversationParams) {
        let (connection, forked) = (Arc::clone(&request.connection), lane.thread);
        let forked = lane.while_listening(fork(&connection, forked, params)).await;
        finish(lane, request, forked).await;
    }
}

/// Sends `sessionConfigured`, then the answer, and then serves requests about the conversation.
async fn finish<M>(lane: &mut Lane, request: Request<M>, resumed: Result<Resumed, ErrorObject>)
where
    M: Method<Response = ConversationResumed>,
{
    let Resumed { subscriber, requests, configured } = match resumed {
        Ok(resumed) => resumed,
        Err(error) => return request.answer(Err(error)).await,
    };
    let answer = ConversationResumed {
        conversation_id: configured.session_id,
        model: configured.model.clone(),
        initial_messages: configured.initial_messages.clone(),
        rollout_path: configured.rollout_path.clone(),
    };
    let connection = &request.connection;
    if connection.client().and_then(|client| client.traits().dialect) != Some(Dialect::V2) {
        tell(connection, ServerNotification::SessionConfigured(Box::new(configured))).await;
    }
    request.answer(Ok(answer)).await;
    match (subscriber, requests) {
        (Some(subscriber), Some(requests)) => run_lane(subscriber, requests),
        (Some(subscriber), None) => lane.attach(subscriber),
        (None, _) => {}
    }
}

async fn start(
    connection: &Arc<Connection>,
    params: NewConversationParams,
) -> Result<(ThreadSubscriber, Waiting, NewConversationResponse), ErrorObject> {
    let request = start_request(connection, &params.into());
    let begun = begin(connection, request, false, Subscriptions::default()).await?;
    let requests = begun.reserve_lane()?;
    let started = begun.subscriber.thread.started();
    let answer = NewConversationResponse {
        conversation_id: begun.subscriber.thread.id(),
        model: started.settings.model.clone(),
        reasoning_effort: started.settings.effort.clone(),
        rollout_path: started.rollout.clone(),
    };
    Ok((begun.subscriber, requests, answer))
}

/// The common part of opening a supplied and a stored conversation.
async fn open(connection: &Arc<Connection>, request: StartThread) -> Result<Resumed, ErrorObject> {
    let is_new = !matches!(request.initial_history, InitialHistory::Resumed { .. });
    let begun = begin(connection, request, false, Subscriptions::default()).await?;
    let requests = is_new.then(|| begun.reserve_lane()).transpose()?;
    let Begun { subscriber, shows_raw_reasoning } = begun;
    let configured = describe(connection, &subscriber.thread, shows_raw_reasoning).await?;
    Ok(Resumed { subscriber: Some(subscriber), requests, configured })
}

async fn resume(
    connection: &Arc<Connection>,
    id: ThreadId,
    params: ResumeConversationParams,
) -> Result<Resumed, ErrorObject> {
    let ResumeConversationParams { path, conversation_id, history, overrides } = params;
    let options = ThreadOptions::from(overrides.unwrap_or_default());
    if let Some(items) = history {
        let items = read_history(items)?;
        let request = start_request(connection, &options);
        return open(connection, StartThread { initial_history: InitialHistory::Given(items), ..request }).await;
    }
    check_named(connection, id, conversation_id, path).await?;
    let _turn = connection.host.start.threads.turn_to_open(id).await;
    if let Some(thread) = connection.host.start.threads.get(id) {
        // A loaded conversation keeps its settings, because other clients use it.
        let host = Arc::clone(&connection.host);
        let with_thoughts = blocking(move || Ok(host.config()?.reasoning.raw)).await?;
        let configured = describe(connection, &thread, with_thoughts).await?;
        return Ok(Resumed { subscriber: None, requests: None, configured });
    }
    let explicit = explicit(&options);
    let request = start_request(connection, &options);
    open(connection, StartThread { initial_history: InitialHistory::Resumed { thread: id, explicit }, ..request }).await
}

async fn fork(
    connection: &Arc<Connection>,
    id: ThreadId,
    params: ForkConversationParams,
) -> Result<Resumed, ErrorObject> {
    let ForkConversationParams { path, conversation_id, overrides } = params;
    let options = ThreadOptions::from(overrides.unwrap_or_default());
    check_named(connection, id, conversation_id, path).await?;
    let explicit = explicit(&options);
    let request = start_request(connection, &options);
    let initial_history = InitialHistory::Forked { thread: id, point: ForkPoint::End, explicit };
    open(connection, StartThread { initial_history, ..request }).await
}

/// Checks that a client names a conversation, and that it exists. One that was found by its file does.
async fn check_named(
    connection: &Arc<Connection>,
    id: ThreadId,
    conversation: Option<ThreadId>,
    path: Option<PathBuf>,
) -> Result<(), ErrorObject> {
    match (path, conversation) {
        (Some(_), _) => Ok(()),
        (None, Some(_)) => find(connection, id).await,
        (None, None) => Err(ErrorObject::invalid("either path, conversationId or history must be given")),
    }
}

/// The description of an existing conversation for a client.
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
