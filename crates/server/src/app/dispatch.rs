//! Which request is served where: at once, beside all others, or at the desk of its thread.

use std::sync::Arc;

use codex_protocol::methods::{ClientRequest, call};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::thread::{LoadedListResponse, PageParams, ThreadUnsubscribeResponse};
use codex_thread::{Feed, Thread};
use codex_wire::ids::ThreadId;
use tokio::sync::mpsc;

use super::connection::{Connection, Unanswered, overloaded};
use super::desk::{Desk, Task};
use super::hearing::Listening;
use super::questions::Repeat;
use super::{beside, opening, v1};
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
                return at_desk_of_conversation(connection, conversation, unanswered, request).await;
            }
            match thread_of(request_about).map(str::to_owned) {
                Some(name) => at_desk(connection, &name, unanswered, request).await,
                None => {
                    if let Some((unanswered, request)) = beside::serve(connection, unanswered, request).await {
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
        opening::serve(connection, unanswered, request).await;
    }
}

/// The thread whose desk serves a request; none if it is served beside all others.
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

/// Gives a request to the desk of its thread. A client that asks something of a loaded thread listens to it from there on.
async fn at_desk(connection: &Arc<Connection>, name: &str, unanswered: Unanswered, request: ClientRequest) {
    let desk = match name.parse::<ThreadId>() {
        Ok(thread) => desk(connection, thread, Listening::v2()).await.ok_or_else(|| not_found(name)),
        Err(error) => Err(ErrorObject::invalid(format!("invalid thread id: {error}"))),
    };
    hand_over(connection, desk, Task::Serve(unanswered, request), || not_found(name)).await;
}

/// Gives a request to the desk of its conversation. A client listens to it when it adds a listener.
async fn at_desk_of_conversation(
    connection: &Arc<Connection>,
    conversation: Result<ThreadId, ErrorObject>,
    unanswered: Unanswered,
    request: ClientRequest,
) {
    let id = match conversation {
        Ok(id) => id,
        Err(error) => return connection.outbox.refuse(&unanswered.id, error).await,
    };
    let desk = desk(connection, id, Listening::default()).await.ok_or_else(|| v1::not_found(id));
    hand_over(connection, desk, Task::Serve(unanswered, request), || v1::not_found(id)).await;
}

async fn hand_over(
    connection: &Connection,
    desk: Result<mpsc::Sender<Box<Task>>, ErrorObject>,
    task: Task,
    gone: impl Fn() -> ErrorObject,
) {
    match desk {
        Ok(desk) => match desk.try_send(Box::new(task)) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(task)) => refuse(connection, *task, overloaded()).await,
            Err(mpsc::error::TrySendError::Closed(task)) => refuse(connection, *task, gone()).await,
        },
        Err(error) => refuse(connection, task, error).await,
    }
}

async fn refuse(connection: &Connection, task: Task, error: ErrorObject) {
    if let Task::Serve(unanswered, _) = task {
        connection.outbox.refuse(&unanswered.id, error).await;
    }
}

/// There is no such thread here.
pub(crate) fn not_found(name: &str) -> ErrorObject {
    ErrorObject::invalid(format!("thread not found: {name}"))
}

/// The desk of a loaded thread; a new one for a client that listens so.
async fn desk(connection: &Arc<Connection>, id: ThreadId, listening: Listening) -> Option<mpsc::Sender<Box<Task>>> {
    if let Some(desk) = connection.desk(id) {
        return Some(desk);
    }
    let thread = connection.host.start.threads.get(id)?;
    if let Some(tasks) = connection.reserve_desk(id) {
        let Ok(subscription) = thread.subscribe().await else {
            connection.remove_desk(id);
            return None;
        };
        let mut desk = new_desk(connection, thread, subscription.feed, Wishes::default(), listening);
        desk.take_in(&subscription.standing, false);
        desk.repeat(subscription.running.as_ref(), &subscription.asked, Repeat::No);
        open_desk(desk, tasks);
    }
    connection.desk(id)
}

/// A desk that is not open yet.
pub(crate) fn new_desk(
    connection: &Arc<Connection>,
    thread: Thread,
    feed: Feed,
    wishes: Wishes,
    listening: Listening,
) -> Desk {
    Desk::new(Arc::clone(connection), thread, feed, wishes, listening)
}

/// Opens a desk at its place.
pub(crate) fn open_desk(desk: Desk, tasks: mpsc::Receiver<Box<Task>>) {
    tokio::spawn(Box::new(desk).run(tasks));
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
