//! Which request is served where: at once, beside all others, or at the subscriber of its thread.

use std::sync::Arc;

use codex_protocol::methods::{ClientRequest, call};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::thread::{LoadedListResponse, PageParams, ThreadUnsubscribeResponse};
use codex_thread::{Feed, Thread};
use codex_wire::ids::ThreadId;
use tokio::sync::mpsc;

use super::connection::{Connection, Unanswered, overloaded};
use super::event_filter::Subscriptions;
use super::questions::Repeat;
use super::subscriber::{SubscriberRequest, ThreadSubscriber};
use super::{open_thread, server_methods, v1};
use codex_dialects::v2::project::Wishes;

/// Has a request served.
pub(crate) async fn dispatch(connection: &Arc<Connection>, unanswered: Unanswered, request: ClientRequest) {
    match &request {
        ClientRequest::ThreadLoadedList(page) => {
            let list = loaded_list(connection, page);
            connection.outbox.answer::<call::ThreadLoadedList>(&unanswered.id, list).await;
        }
        request_about => {
            if let ClientRequest::ThreadUnsubscribe(params) = request_about
                && let Some(status) = params.thread_id.parse().ok().and_then(|id| connection.unheard(id))
            {
                let answer = Ok(ThreadUnsubscribeResponse { status });
                return connection.outbox.answer::<call::ThreadUnsubscribe>(&unanswered.id, answer).await;
            }
            if let Some(conversation) = v1::conversation_of(connection, request_about) {
                return at_subscriber_of_conversation(connection, conversation, unanswered, request).await;
            }
            match thread_of(request_about).map(str::to_owned) {
                Some(name) => at_subscriber(connection, &name, unanswered, request).await,
                None => {
                    if let Some((unanswered, request)) = server_methods::serve(connection, unanswered, request).await {
                        drop(tokio::spawn(open(Arc::clone(connection), unanswered, request)));
                    }
                }
            }
        }
    }
}

/// Serves a request about threads that need not be loaded.
async fn open(connection: Arc<Connection>, unanswered: Unanswered, request: ClientRequest) {
    if let Some((unanswered, request)) = v1::serve_aside(&connection, unanswered, request).await {
        open_thread::serve(connection, unanswered, request).await;
    }
}

/// The thread whose subscriber serves a request; none if it is served beside all others.
fn thread_of(request: &ClientRequest) -> Option<&str> {
    Some(match request {
        ClientRequest::ThreadCompactStart(params) | ClientRequest::ThreadUnsubscribe(params) => &params.thread_id,
        ClientRequest::ThreadRollback(params) => &params.thread_id,
        ClientRequest::ThreadRevert(params) => &params.thread_id,
        ClientRequest::ThreadSettingsUpdate(params) => &params.thread_id,
        ClientRequest::ThreadShellCommand(params) => &params.thread_id,
        ClientRequest::ThreadInjectItems(params) => &params.thread_id,
        ClientRequest::ThreadGoalSet(params) => &params.thread_id,
        ClientRequest::ThreadGoalGet(params) => &params.thread_id,
        ClientRequest::ThreadGoalClear(params) => &params.thread_id,
        ClientRequest::ServerRequestList(params) => &params.thread_id,
        ClientRequest::TurnStart(params) => &params.thread_id,
        ClientRequest::TurnSteer(params) => &params.thread_id,
        ClientRequest::TurnInterrupt(params) => &params.thread_id,
        ClientRequest::ReviewStart(params) => &params.thread_id,
        _ => return None,
    })
}

/// Gives a request to the subscriber of its thread. A client that asks something of a loaded thread listens to it from there on.
async fn at_subscriber(connection: &Arc<Connection>, name: &str, unanswered: Unanswered, request: ClientRequest) {
    let subscriber = match name.parse::<ThreadId>() {
        Ok(thread) => subscriber(connection, thread, Subscriptions::v2()).await.ok_or_else(|| not_found(name)),
        Err(error) => Err(ErrorObject::invalid(format!("invalid thread id: {error}"))),
    };
    hand_over(connection, subscriber, SubscriberRequest::Serve(unanswered, request), || not_found(name)).await;
}

/// Gives a request to the subscriber of its conversation. A client listens to it when it adds a listener.
async fn at_subscriber_of_conversation(
    connection: &Arc<Connection>,
    conversation: Result<ThreadId, ErrorObject>,
    unanswered: Unanswered,
    request: ClientRequest,
) {
    let id = match conversation {
        Ok(id) => id,
        Err(error) => return connection.outbox.refuse(&unanswered.id, error).await,
    };
    let subscriber = subscriber(connection, id, Subscriptions::default()).await.ok_or_else(|| v1::not_found(id));
    hand_over(connection, subscriber, SubscriberRequest::Serve(unanswered, request), || v1::not_found(id)).await;
}

async fn hand_over(
    connection: &Connection,
    subscriber: Result<mpsc::Sender<Box<SubscriberRequest>>, ErrorObject>,
    request: SubscriberRequest,
    gone: impl Fn() -> ErrorObject,
) {
    match subscriber {
        Ok(subscriber) => match subscriber.try_send(Box::new(request)) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(request)) => refuse(connection, *request, overloaded()).await,
            Err(mpsc::error::TrySendError::Closed(request)) => refuse(connection, *request, gone()).await,
        },
        Err(error) => refuse(connection, request, error).await,
    }
}

async fn refuse(connection: &Connection, request: SubscriberRequest, error: ErrorObject) {
    if let SubscriberRequest::Serve(unanswered, _) = request {
        connection.outbox.refuse(&unanswered.id, error).await;
    }
}

/// There is no such thread here.
pub(crate) fn not_found(name: &str) -> ErrorObject {
    ErrorObject::invalid(format!("thread not found: {name}"))
}

/// The subscriber of a loaded thread; a new one for a client that listens so.
async fn subscriber(
    connection: &Arc<Connection>,
    id: ThreadId,
    subscriptions: Subscriptions,
) -> Option<mpsc::Sender<Box<SubscriberRequest>>> {
    if let Some(subscriber) = connection.subscriber(id) {
        return Some(subscriber);
    }
    let thread = connection.host.start.threads.get(id)?;
    if let Some(requests) = connection.reserve_subscriber(id) {
        let Ok(subscription) = thread.subscribe().await else {
            connection.remove_subscriber(id);
            return None;
        };
        let mut subscriber = new_subscriber(connection, thread, subscription.feed, Wishes::default(), subscriptions);
        subscriber.take_in(&subscription.standing, false);
        subscriber.repeat(subscription.running.as_ref(), &subscription.asked, Repeat::No);
        run_subscriber(subscriber, requests);
    }
    connection.subscriber(id)
}

/// A subscriber that is not open yet.
pub(crate) fn new_subscriber(
    connection: &Arc<Connection>,
    thread: Thread,
    feed: Feed,
    wishes: Wishes,
    subscriptions: Subscriptions,
) -> ThreadSubscriber {
    ThreadSubscriber::new(Arc::clone(connection), thread, feed, wishes, subscriptions)
}

/// Opens a subscriber at its place.
pub(crate) fn run_subscriber(subscriber: ThreadSubscriber, requests: mpsc::Receiver<Box<SubscriberRequest>>) {
    tokio::spawn(Box::new(subscriber).run(requests));
}

fn loaded_list(connection: &Connection, page: &PageParams) -> Result<LoadedListResponse, ErrorObject> {
    let names: Vec<String> =
        connection.host.start.threads.loaded().iter().map(|thread| thread.id().to_string()).collect();
    let start = match &page.cursor {
        Some(cursor) if cursor.parse::<ThreadId>().is_ok() => names.partition_point(|name| name <= cursor),
        Some(cursor) => return Err(ErrorObject::invalid(format!("invalid cursor: {cursor}"))),
        None => 0,
    };
    let limit = page.limit.map_or(usize::MAX, |limit| (limit as usize).max(1));
    let data: Vec<String> = names.iter().skip(start).take(limit).cloned().collect();
    let next_cursor = data.last().filter(|_| start + data.len() < names.len()).cloned();
    Ok(LoadedListResponse { data, next_cursor })
}
