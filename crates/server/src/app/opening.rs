//! Requests that open threads or look at those on disk. They are served beside all others.

use std::sync::Arc;

use codex_engine::{Setup, Thread};
use codex_wire::methods::{ClientRequest, call};
use codex_wire::rpc::ErrorObject;
use codex_wire::v2::notification::{ServerNotification, ThreadStarted};
use codex_wire::v2::thread::{ThreadOpened, ThreadOptions, ThreadStartParams, ThreadStatus};

use super::connection::{Connection, Unanswered};
use super::desk::Desk;
use super::dispatch::{new_desk, open_desk};
use super::v2::project::Wishes;
use super::v2::thread;

/// Serves a request.
pub(crate) async fn serve(connection: Arc<Connection>, unanswered: Unanswered, request: ClientRequest) {
    let (outbox, id) = (&connection.outbox, &unanswered.id);
    match request {
        ClientRequest::ThreadStart(params) => match start(&connection, *params).await {
            Ok((mut desk, answer)) => {
                let news = ThreadStarted { thread: answer.thread.clone() };
                // The thread can be spoken to as soon as the client knows its name, and not before.
                outbox.answer::<call::ThreadStart>(id, Ok(answer)).await;
                desk.notify(&ServerNotification::ThreadStarted(Box::new(news)), super::now_ms());
                open_desk(desk);
            }
            Err(error) => outbox.refuse(id, error).await,
        },
        _ => outbox.refuse(id, ErrorObject::invalid("unsupported method")).await,
    }
}

/// What a thread is made of, found out on a thread that may block.
async fn setup(connection: &Arc<Connection>, options: ThreadOptions) -> Result<Setup, ErrorObject> {
    let connection = Arc::clone(connection);
    let made = tokio::task::spawn_blocking(move || {
        let client = connection.client().filter(|client| client.vintage == super::Vintage::V0166);
        connection.host.setup(&options, client.map(|client| client.name.as_str()))
    });
    made.await.map_err(|error| ErrorObject::internal(error.to_string()))?
}

async fn start(connection: &Arc<Connection>, params: ThreadStartParams) -> Result<(Desk, ThreadOpened), ErrorObject> {
    let setup = setup(connection, params.options).await?;
    let wishes = Wishes { raw_items: params.experimental_raw_events, raw_reasoning: setup.config.reasoning.raw };
    let (thread, feed) = Thread::start(setup).await.map_err(|error| ErrorObject::invalid(error.to_string()))?;
    let started = thread.started();
    let described = thread::loaded(thread.id(), started, &started.settings, ThreadStatus::Idle);
    let answer = thread::opened(described, &started.settings);
    connection.host.loaded.add(thread.clone());
    Ok((new_desk(connection, thread, feed, wishes), answer))
}
