//! Which request is served where: at once, beside all others, or at the desk of its thread.

use std::sync::Arc;

use codex_engine::{Feed, Thread};
use codex_wire::ids::ThreadId;
use codex_wire::methods::{ClientRequest, call};
use codex_wire::rpc::ErrorObject;
use codex_wire::v2::thread::{LoadedListResponse, PageParams};
use tokio::sync::mpsc;

use super::connection::{Connection, Unanswered, overloaded};
use super::desk::{Desk, Task};
use super::v2::project::Wishes;
use super::{beside, opening};

/// Has a request served.
pub(crate) async fn dispatch(connection: &Arc<Connection>, unanswered: Unanswered, request: ClientRequest) {
    match &request {
        ClientRequest::ThreadLoadedList(page) => {
            let list = loaded_list(connection, page);
            connection.outbox.answer::<call::ThreadLoadedList>(&unanswered.id, Ok(list)).await;
        }
        request_about => match thread_of(request_about).map(str::to_owned) {
            Some(name) => at_desk(connection, &name, unanswered, request).await,
            None => {
                if let Some((unanswered, request)) = beside::serve(connection, unanswered, request).await {
                    drop(tokio::spawn(opening::serve(Arc::clone(connection), unanswered, request)));
                }
            }
        },
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
        ClientRequest::TurnStart(params) => &params.thread_id,
        ClientRequest::TurnSteer(params) => &params.thread_id,
        ClientRequest::TurnInterrupt(params) => &params.thread_id,
        ClientRequest::ReviewStart(params) => &params.thread_id,
        _ => return None,
    })
}

/// Gives a request to the desk of its thread.
async fn at_desk(connection: &Arc<Connection>, name: &str, unanswered: Unanswered, request: ClientRequest) {
    let desk = match name.parse::<ThreadId>() {
        Ok(thread) => desk(connection, thread).await,
        Err(error) => Err(ErrorObject::invalid(format!("invalid thread id: {error}"))),
    };
    match desk {
        Ok(desk) => match desk.try_send(Task::Serve(unanswered, request)) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(task)) => refuse(connection, task, overloaded()).await,
            Err(mpsc::error::TrySendError::Closed(task)) => refuse(connection, task, not_found(name)).await,
        },
        Err(error) => connection.outbox.refuse(&unanswered.id, error).await,
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

/// The desk of a thread. A client that asks something of a loaded thread listens to it from there on.
async fn desk(connection: &Arc<Connection>, id: ThreadId) -> Result<mpsc::Sender<Task>, ErrorObject> {
    if let Some(desk) = connection.desk(id) {
        return Ok(desk);
    }
    let thread = connection.host.loaded.get(id).ok_or_else(|| not_found(&id.to_string()))?;
    if let Some(tasks) = connection.reserve_desk(id) {
        let Ok(subscription) = thread.subscribe().await else {
            connection.remove_desk(id);
            return Err(not_found(&id.to_string()));
        };
        let mut desk = new_desk(connection, thread, subscription.feed, Wishes::default());
        desk.repeat(subscription.running.as_ref(), &subscription.asked);
        open_desk(desk, tasks);
    }
    connection.desk(id).ok_or_else(|| not_found(&id.to_string()))
}

/// A desk that is not open yet.
pub(crate) fn new_desk(connection: &Arc<Connection>, thread: Thread, feed: Feed, wishes: Wishes) -> Desk {
    Desk::new(Arc::clone(connection), thread, feed, wishes)
}

/// Opens a desk at its place.
pub(crate) fn open_desk(desk: Desk, tasks: mpsc::Receiver<Task>) {
    tokio::spawn(Box::new(desk).run(tasks));
}

fn loaded_list(connection: &Connection, page: &PageParams) -> LoadedListResponse {
    let names: Vec<String> = connection.host.loaded.names().iter().map(ThreadId::to_string).collect();
    let start = match &page.cursor {
        Some(cursor) => names.partition_point(|name| name <= cursor),
        None => 0,
    };
    let limit = page.limit.map_or(usize::MAX, |limit| (limit as usize).max(1));
    let data: Vec<String> = names.iter().skip(start).take(limit).cloned().collect();
    let next_cursor = data.last().filter(|_| start + data.len() < names.len()).cloned();
    LoadedListResponse { data, next_cursor }
}
