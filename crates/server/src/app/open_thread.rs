//! Requests that open threads. They are served beside all others.

use std::path::PathBuf;
use std::sync::Arc;

use codex_log::history::ForkPoint;
use codex_log::settings::SettingsChange;
use codex_protocol::methods::{ClientRequest, Method, call};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::notification::{
    ServerNotification, ThreadStarted, ThreadStatusChanged, ThreadTokenUsageUpdated,
};
use codex_protocol::v2::pages::InitialTurnsPageParams;
use codex_protocol::v2::thread::{
    ThreadForkParams, ThreadOpened, ThreadOptions, ThreadResumeParams, ThreadStartParams, ThreadStatus,
};
use codex_thread::{Beginning, ExplicitOverrides, Fault, StartThread, StartedThread, Subscription, Thread};
use codex_wire::collaboration::CollaborationMode;
use codex_wire::ids::ThreadId;
use codex_wire::response::ResponseItem;

use tokio::sync::mpsc;

use super::connection::{Connection, Unanswered};
use super::disk::blocking;
use super::dispatch::{new_subscriber, run_subscriber};
use super::event_filter::Subscriptions;
use super::questions::Repeat;
use super::stored;
use super::stored_threads::{Turns, parse_name};
use super::subscriber::{SubscriberRequest, ThreadSubscriber};
use super::v2::thread;
use codex_dialects::ProtocolRelease;
use codex_dialects::v2::project::Wishes;

/// A thread that is open, and what the client is told of it.
pub(crate) struct Opened {
    pub(crate) subscriber: ThreadSubscriber,
    /// What waits for the subscriber.
    pub(crate) requests: mpsc::Receiver<Box<SubscriberRequest>>,
    pub(crate) answer: ThreadOpened,
    /// Whether all hear that it is there now.
    is_announced: bool,
}

/// Serves a request.
pub(crate) async fn serve(connection: Arc<Connection>, unanswered: Unanswered, request: ClientRequest) {
    match request {
        ClientRequest::ThreadStart(params) => {
            let cwd = params.options.cwd.clone();
            let opened = start(&connection, *params).await;
            finish::<call::ThreadStart>(&connection, unanswered, opened).await;
            if let Some(cwd) = cwd {
                super::config_warnings::tell_of_project(&connection, cwd).await;
            }
        }
        ClientRequest::ThreadResume(params) => match resume(&connection, (*params).clone()).await {
            Ok(Resumed::Opened(opened)) => {
                finish::<call::ThreadResume>(&connection, unanswered, Ok(*opened)).await;
            }
            Ok(Resumed::Subscribed(subscriber)) => {
                // The client listens already; its subscriber answers, in order with everything else.
                let request = Box::new(SubscriberRequest::Serve(unanswered, ClientRequest::ThreadResume(params)));
                if let Err(mpsc::error::SendError(request)) = subscriber.send(request).await
                    && let SubscriberRequest::Serve(unanswered, _) = *request
                {
                    connection.outbox.refuse(&unanswered.id, ErrorObject::internal("the thread has just ended")).await;
                }
            }
            Err(error) => connection.outbox.refuse(&unanswered.id, error).await,
        },
        ClientRequest::ThreadFork(params) => {
            let opened = fork(&connection, *params).await;
            finish::<call::ThreadFork>(&connection, unanswered, opened).await;
        }
        ClientRequest::ThreadSubscribe(params) => {
            super::subscription::serve(&connection, unanswered, *params).await;
        }
        request => super::stored_threads::serve(&connection, unanswered, request).await,
    }
}

async fn finish<M>(connection: &Arc<Connection>, unanswered: Unanswered, opened: Result<Opened, ErrorObject>)
where
    M: Method<Response = ThreadOpened>,
{
    match opened {
        Ok(Opened { mut subscriber, requests, mut answer, is_announced }) => {
            let announcement = is_announced.then(|| {
                // In the newest release the announcement says nothing of turns, and those may be many.
                let is_new = connection.release() == ProtocolRelease::V0166;
                let turns = is_new.then(|| std::mem::take(&mut answer.thread.turns));
                let thread = answer.thread.clone();
                if let Some(turns) = turns {
                    answer.thread.turns = turns;
                }
                ServerNotification::ThreadStarted(Box::new(ThreadStarted { thread }))
            });
            let cost = tokens_so_far(&subscriber, &answer).await;
            // The answer goes first, then the notifications, and then the thread can be spoken to.
            connection.outbox.answer::<M>(&unanswered.id, Ok(answer)).await;
            for announcement in announcement.into_iter().chain(cost) {
                subscriber.notify(&announcement, super::now_ms());
            }
            super::goals::tell(&mut subscriber, M::NAME == call::ThreadResume::NAME).await;
            run_subscriber(subscriber, requests);
        }
        Err(error) => connection.outbox.refuse(&unanswered.id, error).await,
    }
}

/// What a thread that was there before has cost, which clients of the newest release are told at once.
async fn tokens_so_far(subscriber: &ThreadSubscriber, answer: &ThreadOpened) -> Option<ServerNotification> {
    let turn = answer.thread.turns.last().filter(|_| subscriber.connection.release() == ProtocolRelease::V0166)?;
    let tokens = subscriber.thread.subscribe().await.ok()?.tokens?;
    Some(ServerNotification::ThreadTokenUsageUpdated(ThreadTokenUsageUpdated {
        thread_id: answer.thread.id.clone(),
        turn_id: turn.id.clone(),
        token_usage: (&tokens).into(),
    }))
}

/// What is asked of whoever runs threads.
pub(crate) fn start_request(connection: &Connection, options: &ThreadOptions) -> StartThread {
    connection.host.start_request(options, connection.client())
}

/// Starts a thread and makes place for its subscriber, before anybody else can know of it.
pub(crate) async fn begin(
    connection: &Arc<Connection>,
    request: StartThread,
    raw_items: bool,
    subscriptions: Subscriptions,
) -> Result<Begun, ErrorObject> {
    let StartedThread { thread, feed, shows_raw_reasoning } =
        connection.host.start.threads.start(request).await.map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            let message = format!("{error}{cause}");
            match error.fault() {
                Fault::Host => ErrorObject::internal(message),
                Fault::Request => ErrorObject::invalid(message),
            }
        })?;
    let wishes = Wishes { raw_items, raw_reasoning: shows_raw_reasoning, goals: false };
    let requests = connection
        .reserve_subscriber(thread.id())
        .ok_or_else(|| ErrorObject::internal("the thread has a subscriber"))?;
    Ok(Begun {
        subscriber: new_subscriber(connection, thread.clone(), feed, wishes, subscriptions),
        requests,
        thread,
        shows_raw_reasoning,
    })
}

/// A subscriber that is not open yet, what waits for it, and its thread.
pub(crate) struct Begun {
    pub(crate) subscriber: ThreadSubscriber,
    pub(crate) requests: mpsc::Receiver<Box<SubscriberRequest>>,
    pub(crate) thread: Thread,
    pub(crate) shows_raw_reasoning: bool,
}

/// How a thread is resumed.
pub(crate) enum Resumed {
    /// It was opened for this client.
    Opened(Box<Opened>),
    /// The client listens to it already.
    Subscribed(mpsc::Sender<Box<SubscriberRequest>>),
}

async fn start(connection: &Arc<Connection>, params: ThreadStartParams) -> Result<Opened, ErrorObject> {
    let request = start_request(connection, &params.options);
    let Begun { subscriber, requests, thread, .. } =
        begin(connection, request, params.experimental_raw_events, Subscriptions::v2()).await?;
    let started = thread.started();
    let mut described = thread::loaded(started, &started.settings, ThreadStatus::Idle);
    if connection.release() == ProtocolRelease::V0166 {
        // Clients of that release learn it from the list.
        described.origin.git_info = None;
    }
    let answer = thread::opened(described, &started.settings, started);
    Ok(Opened { subscriber, requests, answer, is_announced: true })
}

pub(crate) async fn resume(connection: &Arc<Connection>, params: ThreadResumeParams) -> Result<Resumed, ErrorObject> {
    let ThreadResumeParams { thread_id, path, history, exclude_turns, initial_turns_page, options } = params;
    if let Some(items) = history {
        return hand_over(connection, items, options).await.map(|opened| Resumed::Opened(Box::new(opened)));
    }
    let id = find(connection, &thread_id, path).await?;
    let _turn = connection.host.start.threads.turn_to_open(id).await;
    if let Some(subscriber) = connection.subscriber(id) {
        return Ok(Resumed::Subscribed(subscriber));
    }
    if let Some(thread) = connection.host.start.threads.get(id) {
        return join(connection, thread, exclude_turns).await.map(|opened| Resumed::Opened(Box::new(opened)));
    }
    let explicit = explicit(&options);
    let request = start_request(connection, &options);
    // Both the conversation and the turns are in the file; they are read side by side.
    let is_new = connection.release() == ProtocolRelease::V0166;
    let reads_turns = !exclude_turns || (is_new && initial_turns_page.is_some());
    let turns = if reads_turns {
        Turns::read(Arc::clone(&connection.host.store), id, connection.release())
    } else {
        Turns::Unwanted
    };
    let request = StartThread { beginning: Beginning::Resumed { thread: id, explicit }, ..request };
    let Begun { subscriber, requests, thread, .. } = begin(connection, request, false, Subscriptions::v2()).await?;
    let mut answer = describe(connection, &thread, turns).await?;
    if is_new {
        let (thread_id, status) = (thread.id().to_string(), ThreadStatus::Idle);
        let loaded = ServerNotification::ThreadStatusChanged(ThreadStatusChanged { thread_id, status });
        super::stored_threads::tell(connection, loaded).await;
        let mode = thread.started().settings.collaboration_mode();
        complete(&mut answer, mode, initial_turns_page, exclude_turns)?;
    }
    Ok(Resumed::Opened(Box::new(Opened { subscriber, requests, answer, is_announced: false })))
}

/// Adds what clients of the newest release are told of a thread that was there before.
fn complete(
    answer: &mut ThreadOpened,
    mode: CollaborationMode,
    page: Option<InitialTurnsPageParams>,
    exclude_turns: bool,
) -> Result<(), ErrorObject> {
    answer.resumed = Some(Box::new(super::pages::resumed(&answer.thread.turns, page, mode)?));
    if exclude_turns {
        answer.thread.turns.clear();
    }
    Ok(())
}

/// Listens to a thread that is loaded already.
async fn join(connection: &Arc<Connection>, thread: Thread, exclude_turns: bool) -> Result<Opened, ErrorObject> {
    let gone = |_| super::dispatch::not_found(&thread.id().to_string());
    let requests = connection
        .reserve_subscriber(thread.id())
        .ok_or_else(|| ErrorObject::internal("the thread has a subscriber"))?;
    let Subscription { feed, running, asked, standing, .. } = thread.subscribe().await.map_err(gone)?;
    let mut subscriber = new_subscriber(connection, thread.clone(), feed, Wishes::default(), Subscriptions::v2());
    subscriber.take_in(&standing, false);
    subscriber.repeat(running.as_ref(), &asked, Repeat::No);
    let answer = describe(connection, &thread, Turns::wanted(!exclude_turns)).await?;
    Ok(Opened { subscriber, requests, answer, is_announced: false })
}

/// Reads the items of a conversation that a client brings along.
pub(crate) fn read_history(items: Vec<serde_json::Value>) -> Result<Vec<ResponseItem>, ErrorObject> {
    if items.is_empty() {
        return Err(ErrorObject::invalid("history must not be empty"));
    }
    read_items(items)
}

/// Starts a thread with a conversation that the client brings along.
async fn hand_over(
    connection: &Arc<Connection>,
    items: Vec<serde_json::Value>,
    options: ThreadOptions,
) -> Result<Opened, ErrorObject> {
    let items = read_history(items)?;
    let request = start_request(connection, &options);
    let request = StartThread { beginning: Beginning::Given(items), ..request };
    let Begun { subscriber, requests, thread, .. } = begin(connection, request, false, Subscriptions::v2()).await?;
    let answer = describe(connection, &thread, Turns::Wanted).await?;
    Ok(Opened { subscriber, requests, answer, is_announced: false })
}

/// Reads items of a conversation that a client brings along.
pub(crate) fn read_items(items: Vec<serde_json::Value>) -> Result<Vec<ResponseItem>, ErrorObject> {
    let read = |(place, item)| {
        let wrong = |error| ErrorObject::invalid(format!("Invalid request: item {place}: {error}"));
        serde_json::from_value(item).map_err(wrong)
    };
    items.into_iter().enumerate().map(read).collect()
}

async fn fork(connection: &Arc<Connection>, params: ThreadForkParams) -> Result<Opened, ErrorObject> {
    let ThreadForkParams { thread_id, path, last_turn_id, exclude_turns, options } = params;
    let id = find(connection, &thread_id, path).await?;
    let point = match last_turn_id {
        None => ForkPoint::End,
        Some(turn) => {
            let (host, release) = (Arc::clone(&connection.host), connection.release());
            let turns = blocking(move || stored::turns(&*host.store, id, release).map_err(ErrorObject::from_display));
            let turns = turns.await?;
            let place = turns.iter().position(|it| it.id == turn);
            let place = place.ok_or_else(|| ErrorObject::invalid(format!("turn not found: {turn}")))?;
            ForkPoint::Turns(place + 1)
        }
    };
    let explicit = explicit(&options);
    let request = start_request(connection, &options);
    let request = StartThread { beginning: Beginning::Forked { thread: id, point, explicit }, ..request };
    let Begun { subscriber, requests, thread, .. } = begin(connection, request, false, Subscriptions::v2()).await?;
    let mut answer = describe(connection, &thread, Turns::wanted(!exclude_turns)).await?;
    if connection.release() == ProtocolRelease::V0166 {
        // Nothing was said in the copy itself yet.
        answer.thread.preview.clear();
    }
    Ok(Opened { subscriber, requests, answer, is_announced: true })
}

/// Starts a thread that works as the subscriber's thread does, and tells the client of it.
pub(crate) async fn start_sibling(subscriber: &ThreadSubscriber) -> Result<Thread, ErrorObject> {
    let connection = &subscriber.connection;
    let gone = |_| super::dispatch::not_found(&subscriber.thread.id().to_string());
    let settings = subscriber.thread.configure(SettingsChange::default()).await.map_err(gone)?;
    let options = ThreadOptions {
        model: Some(settings.model.clone()),
        model_provider: Some(subscriber.thread.started().provider.clone()),
        cwd: Some(settings.cwd.clone()),
        ..ThreadOptions::default()
    };
    let request = start_request(connection, &options);
    let Begun { subscriber: mut sibling, requests, thread, .. } =
        begin(connection, request, false, Subscriptions::v2()).await?;
    let change = SettingsChange {
        approval_policy: Some(settings.approval_policy),
        reviewer: Some(settings.reviewer.clone()),
        sandbox_policy: Some(settings.sandbox_policy.clone()),
        effort: Some(settings.effort.clone()),
        summary: Some(settings.summary.clone()),
        ..SettingsChange::default()
    };
    let settings = thread.configure(change).await.map_err(gone)?;
    let described = thread::loaded(thread.started(), &settings, ThreadStatus::Idle);
    let announcement = ServerNotification::ThreadStarted(Box::new(ThreadStarted { thread: described }));
    sibling.notify(&announcement, super::now_ms());
    run_subscriber(sibling, requests);
    Ok(thread)
}

/// Which settings a client has given in so many words.
pub(crate) fn explicit(options: &ThreadOptions) -> ExplicitOverrides {
    let names = |key: &str| options.config.as_ref().is_some_and(|config| config.contains_key(key));
    ExplicitOverrides {
        cwd: options.cwd.is_some(),
        model: options.model.is_some() || names("model"),
        approval_policy: options.approval_policy.is_some() || names("approval_policy"),
        sandbox_policy: options.sandbox.is_some() || names("sandbox_mode"),
    }
}

/// The thread a client means. A path goes before a name.
pub(crate) async fn find(
    connection: &Arc<Connection>,
    name: &str,
    path: Option<PathBuf>,
) -> Result<ThreadId, ErrorObject> {
    let host = Arc::clone(&connection.host);
    if let Some(path) = path {
        let located = blocking(move || host.store.locate(&path).map_err(ErrorObject::from_display));
        return located.await.map(|located| located.thread);
    }
    let id = parse_name(name)?;
    if host.start.threads.get(id).is_some() {
        return Ok(id);
    }
    let found = blocking(move || host.store.find(id).map_err(ErrorObject::internal_from)).await?;
    found.ok_or_else(|| ErrorObject::invalid(format!("no rollout found for thread id {id}")))?;
    Ok(id)
}

/// What a client is told of a thread that was there before.
pub(crate) async fn describe(
    connection: &Arc<Connection>,
    thread: &Thread,
    turns: Turns,
) -> Result<ThreadOpened, ErrorObject> {
    let settings = thread.configure(SettingsChange::default()).await;
    let settings = settings.map_err(|_| super::dispatch::not_found(&thread.id().to_string()))?;
    let described = super::stored_threads::describe(connection, thread, &settings, turns).await?;
    Ok(thread::opened(described, &settings, thread.started()))
}
