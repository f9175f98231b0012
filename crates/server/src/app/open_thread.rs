//! `thread/start`, `thread/resume` and `thread/fork`.

use std::sync::Arc;

use codex_log::history::ForkPoint;
use codex_log::settings::SettingsChange;
use codex_protocol::methods::{Method, call};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::notification::{
    ServerNotification, ThreadStarted, ThreadStatusChanged, ThreadTokenUsageUpdated,
};
use codex_protocol::v2::thread::{
    ThreadForkParams, ThreadOpened, ThreadOptions, ThreadResumeParams, ThreadStartParams, ThreadStatus,
};
use codex_protocol::v2::turn_list::InitialTurnsPageParams;
use codex_thread::{ExplicitOverrides, Fault, InitialHistory, StartThread, StartedThread, Subscription, Thread};
use codex_wire::collaboration::CollaborationMode;
use codex_wire::ids::ThreadId;
use codex_wire::response::ResponseItem;

use tokio::sync::mpsc;

use super::connection::Connection;
use super::disk::blocking;
use super::dispatch::{Request, Serve, ServeThread, not_found};
use super::lane::{Lane, LaneRequest};
use super::questions::Repeat;
use super::stored;
use super::stored_threads::Turns;
use super::subscriber::ThreadSubscriber;
use super::tool_client::{self, ConnectedTools};
use codex_dialects::ProtocolRelease;
use codex_dialects::event_filter::Subscriptions;
use codex_dialects::v2::project::ProjectionOptions;
use codex_dialects::v2::thread;

/// A thread to which the client has just subscribed, and the messages about it.
pub(crate) struct Opened {
    pub(crate) subscriber: ThreadSubscriber,
    pub(crate) answer: ThreadOpened,
}

/// A new thread, and the requests that already wait for it.
struct New {
    opened: Opened,
    requests: mpsc::Receiver<LaneRequest>,
    /// Whether the client receives `thread/started`.
    is_announced: bool,
}

impl Serve for call::ThreadStart {
    async fn serve(request: Request<Self>, params: ThreadStartParams) {
        let (connection, cwd) = (Arc::clone(&request.connection), params.options.cwd.clone());
        let started = start(&connection, params).await;
        begin_lane(request, started).await;
        if let Some(cwd) = cwd {
            super::config_warnings::tell_of_project(&connection, cwd).await;
        }
    }
}

impl ServeThread for call::ThreadResume {
    async fn serve(lane: &mut Lane, request: Request<Self>, params: ThreadResumeParams) {
        let connection = Arc::clone(&request.connection);
        if let Some(items) = params.history {
            let given = hand_over(&connection, items, params.options).await;
            return begin_lane(request, given).await;
        }
        if lane.is_subscribed() {
            return resume_again(lane, request, !params.exclude_turns).await;
        }
        match resume(&connection, lane.thread, params).await {
            Ok(Opened { mut subscriber, answer }) => {
                answer_and_announce(request, &mut subscriber, answer, false).await;
                lane.attach(subscriber);
            }
            Err(error) => request.answer(Err(error)).await,
        }
    }
}

impl ServeThread for call::ThreadFork {
    async fn serve(lane: &mut Lane, request: Request<Self>, params: ThreadForkParams) {
        let connection = Arc::clone(&request.connection);
        let forked = lane.thread;
        let forked = lane.while_listening(fork(&connection, forked, params)).await;
        begin_lane(request, forked).await;
    }
}

/// Answers with a new thread, and starts serving requests about it.
async fn begin_lane<M>(request: Request<M>, new: Result<New, ErrorObject>)
where
    M: Method<Response = ThreadOpened>,
{
    let New { opened: Opened { mut subscriber, answer }, requests, is_announced } = match new {
        Ok(new) => new,
        Err(error) => return request.answer(Err(error)).await,
    };
    answer_and_announce(request, &mut subscriber, answer, is_announced).await;
    run_lane(subscriber, requests);
}

/// Answers, then sends the messages that follow. Only then are requests about the thread served.
async fn answer_and_announce<M>(
    request: Request<M>,
    subscriber: &mut ThreadSubscriber,
    mut answer: ThreadOpened,
    is_announced: bool,
) where
    M: Method<Response = ThreadOpened>,
{
    let announcement = is_announced.then(|| {
        // In the newest release the notification contains no turns, of which there may be many.
        let is_new = subscriber.connection.release() == ProtocolRelease::V0166;
        let turns = is_new.then(|| std::mem::take(&mut answer.thread.turns));
        let thread = answer.thread.clone();
        if let Some(turns) = turns {
            answer.thread.turns = turns;
        }
        ServerNotification::ThreadStarted(Box::new(ThreadStarted { thread }))
    });
    let cost = tokens_so_far(subscriber, &answer).await;
    request.answer(Ok(answer)).await;
    for told in announcement.into_iter().chain(cost) {
        subscriber.notify(&told, super::now_ms());
    }
    super::goals::tell(subscriber, M::NAME == call::ThreadResume::NAME).await;
}

/// Answers a client that is already subscribed to the thread.
async fn resume_again(lane: &mut Lane, request: Request<call::ThreadResume>, wants_turns: bool) {
    let subscriber = match lane.subscriber().await {
        Ok(subscriber) => subscriber,
        Err(error) => return request.answer(Err(error)).await,
    };
    let answer = describe(&request.connection, &subscriber.thread, Turns::wanted(wants_turns)).await;
    request.answer(answer).await;
    super::goals::tell(subscriber, true).await;
    subscriber.ask_again(Repeat::Yes).await;
}

/// The token usage of an existing thread, which clients of the newest release get at once.
async fn tokens_so_far(subscriber: &ThreadSubscriber, answer: &ThreadOpened) -> Option<ServerNotification> {
    let turn = answer.thread.turns.last().filter(|_| subscriber.connection.release() == ProtocolRelease::V0166)?;
    let tokens = subscriber.thread.subscribe().await.ok()?.tokens?;
    Some(ServerNotification::ThreadTokenUsageUpdated(ThreadTokenUsageUpdated {
        thread_id: answer.thread.id.clone(),
        turn_id: turn.id.clone(),
        token_usage: (&tokens).into(),
    }))
}

/// The request to the host.
pub(crate) fn start_request(connection: &Arc<Connection>, options: &ThreadOptions) -> StartThread {
    let mut request = connection.host.start_request(options, connection.client());
    request.additions.tool_client = Some(ConnectedTools::of(connection));
    request
}

/// Starts a thread and subscribes the client to it.
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
    let wishes = ProjectionOptions { raw_items, raw_reasoning: shows_raw_reasoning, goals: false };
    let subscriber = ThreadSubscriber::new(Arc::clone(connection), thread, feed, wishes, subscriptions);
    Ok(Begun { subscriber, shows_raw_reasoning })
}

pub(crate) struct Begun {
    pub(crate) subscriber: ThreadSubscriber,
    pub(crate) shows_raw_reasoning: bool,
}

impl Begun {
    /// Reserves the lane of a new thread before any other task can know of it.
    pub(crate) fn reserve_lane(&self) -> Result<mpsc::Receiver<LaneRequest>, ErrorObject> {
        let subscriber = &self.subscriber;
        let requests = subscriber.connection.reserve_lane(subscriber.thread.id());
        requests.ok_or_else(|| ErrorObject::internal("the thread has a subscriber"))
    }
}

/// Starts serving requests about a new thread.
pub(crate) fn run_lane(subscriber: ThreadSubscriber, requests: mpsc::Receiver<LaneRequest>) {
    let (connection, thread) = (Arc::clone(&subscriber.connection), subscriber.thread.id());
    drop(tokio::spawn(Lane::new(connection, thread, requests, Some(subscriber)).run()));
}

async fn start(connection: &Arc<Connection>, params: ThreadStartParams) -> Result<New, ErrorObject> {
    let mut request = start_request(connection, &params.options);
    request.additions.dynamic_tools = params.dynamic_tools.unwrap_or_default();
    tool_client::check(&request.additions.dynamic_tools)?;
    let begun = begin(connection, request, params.experimental_raw_events, Subscriptions::v2()).await?;
    let requests = begun.reserve_lane()?;
    let started = begun.subscriber.thread.started();
    let mut described = thread::loaded(started, &started.settings, ThreadStatus::Idle);
    if connection.release() == ProtocolRelease::V0166 {
        // Clients of that release learn it from `thread/list`.
        described.origin.git_info = None;
    }
    let answer = thread::opened(described, &started.settings, started);
    Ok(New { opened: Opened { subscriber: begun.subscriber, answer }, requests, is_announced: true })
}

/// Resumes a thread to which the client is not subscribed yet.
pub(crate) async fn resume(
    connection: &Arc<Connection>,
    id: ThreadId,
    params: ThreadResumeParams,
) -> Result<Opened, ErrorObject> {
    let ThreadResumeParams { path, exclude_turns, initial_turns_page, options, .. } = params;
    if path.is_none() {
        find(connection, id).await?;
    }
    let _turn = connection.host.start.threads.turn_to_open(id).await;
    if let Some(thread) = connection.host.start.threads.get(id) {
        return join(connection, thread, exclude_turns).await;
    }
    let explicit = explicit(&options);
    let request = start_request(connection, &options);
    // Both the conversation and the turns are in the file; they are read concurrently.
    let is_new = connection.release() == ProtocolRelease::V0166;
    let reads_turns = !exclude_turns || (is_new && initial_turns_page.is_some());
    let turns = if reads_turns {
        Turns::read(Arc::clone(&connection.host.store), id, connection.release())
    } else {
        Turns::Unwanted
    };
    let request = StartThread { initial_history: InitialHistory::Resumed { thread: id, explicit }, ..request };
    let Begun { subscriber, .. } = begin(connection, request, false, Subscriptions::v2()).await?;
    let thread = &subscriber.thread;
    let mut answer = describe(connection, thread, turns).await?;
    if is_new {
        let (thread_id, status) = (thread.id().to_string(), ThreadStatus::Idle);
        let loaded = ServerNotification::ThreadStatusChanged(ThreadStatusChanged { thread_id, status });
        super::stored_threads::tell(connection, loaded).await;
        let mode = thread.started().settings.collaboration_mode();
        complete(&mut answer, mode, initial_turns_page, exclude_turns)?;
    }
    Ok(Opened { subscriber, answer })
}

/// Adds the notifications about an existing thread for clients of the newest release.
fn complete(
    answer: &mut ThreadOpened,
    mode: CollaborationMode,
    page: Option<InitialTurnsPageParams>,
    exclude_turns: bool,
) -> Result<(), ErrorObject> {
    answer.resumed = Some(Box::new(codex_methods::pages::resumed(&answer.thread.turns, page, mode)?));
    if exclude_turns {
        answer.thread.turns.clear();
    }
    Ok(())
}

/// Subscribes to a loaded thread.
async fn join(connection: &Arc<Connection>, thread: Thread, exclude_turns: bool) -> Result<Opened, ErrorObject> {
    let gone = |_| not_found(&thread.id().to_string());
    let Subscription { feed, running, asked, open_items, .. } = thread.subscribe().await.map_err(gone)?;
    tool_client::offer(connection, &thread).await;
    let answer = describe(connection, &thread, Turns::wanted(!exclude_turns));
    let wishes = ProjectionOptions::default();
    let mut subscriber =
        ThreadSubscriber::new(Arc::clone(connection), thread.clone(), feed, wishes, Subscriptions::v2());
    subscriber.take_in(&open_items, false);
    subscriber.repeat(running.as_ref(), &asked, Repeat::No);
    Ok(Opened { answer: answer.await?, subscriber })
}

/// Reads the items of a conversation that a client supplies.
pub(crate) fn read_history(items: Vec<serde_json::Value>) -> Result<Vec<ResponseItem>, ErrorObject> {
    if items.is_empty() {
        return Err(ErrorObject::invalid("history must not be empty"));
    }
    read_items(items)
}

/// Starts a thread with a conversation that the client supplies.
async fn hand_over(
    connection: &Arc<Connection>,
    items: Vec<serde_json::Value>,
    options: ThreadOptions,
) -> Result<New, ErrorObject> {
    let items = read_history(items)?;
    let request = start_request(connection, &options);
    let request = StartThread { initial_history: InitialHistory::Given(items), ..request };
    let begun = begin(connection, request, false, Subscriptions::v2()).await?;
    let requests = begun.reserve_lane()?;
    let answer = describe(connection, &begun.subscriber.thread, Turns::Wanted).await?;
    Ok(New { opened: Opened { subscriber: begun.subscriber, answer }, requests, is_announced: false })
}

/// Reads items of a conversation that a client supplies.
pub(crate) fn read_items(items: Vec<serde_json::Value>) -> Result<Vec<ResponseItem>, ErrorObject> {
    let read = |(place, item)| {
        let wrong = |error| ErrorObject::invalid(format!("Invalid request: item {place}: {error}"));
        serde_json::from_value(item).map_err(wrong)
    };
    items.into_iter().enumerate().map(read).collect()
}

async fn fork(connection: &Arc<Connection>, id: ThreadId, params: ThreadForkParams) -> Result<New, ErrorObject> {
    let ThreadForkParams { path, last_turn_id, exclude_turns, options, .. } = params;
    if path.is_none() {
        find(connection, id).await?;
    }
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
    let request = StartThread { initial_history: InitialHistory::Forked { thread: id, point, explicit }, ..request };
    let begun = begin(connection, request, false, Subscriptions::v2()).await?;
    let requests = begun.reserve_lane()?;
    let mut answer = describe(connection, &begun.subscriber.thread, Turns::wanted(!exclude_turns)).await?;
    if connection.release() == ProtocolRelease::V0166 {
        // The copy has no input yet.
        answer.thread.preview.clear();
    }
    Ok(New { opened: Opened { subscriber: begun.subscriber, answer }, requests, is_announced: true })
}

/// Starts a thread with the settings of the subscriber's thread, and notifies the client.
pub(crate) async fn start_sibling(subscriber: &ThreadSubscriber) -> Result<Thread, ErrorObject> {
    let connection = &subscriber.connection;
    let gone = |_| not_found(&subscriber.thread.id().to_string());
    let settings = subscriber.thread.configure(SettingsChange::default()).await.map_err(gone)?;
    let options = ThreadOptions {
        model: Some(settings.model.clone()),
        model_provider: Some(subscriber.thread.started().provider.clone()),
        cwd: Some(settings.cwd.clone()),
        ..ThreadOptions::default()
    };
    let request = start_request(connection, &options);
    let begun = begin(connection, request, false, Subscriptions::v2()).await?;
    let requests = begun.reserve_lane()?;
    let mut sibling = begun.subscriber;
    let thread = sibling.thread.clone();
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
    run_lane(sibling, requests);
    Ok(thread)
}

/// The settings that a client has given explicitly.
pub(crate) fn explicit(options: &ThreadOptions) -> ExplicitOverrides {
    let names = |key: &str| options.config.as_ref().is_some_and(|config| config.contains_key(key));
    ExplicitOverrides {
        cwd: options.cwd.is_some(),
        model: options.model.is_some() || names("model"),
        approval_policy: options.approval_policy.is_some() || names("approval_policy"),
        sandbox_policy: options.sandbox.is_some() || names("sandbox_mode"),
    }
}

/// Checks that a thread exists.
pub(crate) async fn find(connection: &Arc<Connection>, id: ThreadId) -> Result<(), ErrorObject> {
    let host = Arc::clone(&connection.host);
    if host.start.threads.get(id).is_some() {
        return Ok(());
    }
    let found = blocking(move || host.store.find(id).map_err(ErrorObject::internal_from)).await?;
    found.map(drop).ok_or_else(|| ErrorObject::invalid(format!("no rollout found for thread id {id}")))
}

/// The description of an existing thread for a client.
pub(crate) async fn describe(
    connection: &Arc<Connection>,
    thread: &Thread,
    turns: Turns,
) -> Result<ThreadOpened, ErrorObject> {
    let settings = thread.configure(SettingsChange::default()).await;
    let settings = settings.map_err(|_| not_found(&thread.id().to_string()))?;
    let described = super::stored_threads::describe(connection, thread, &settings, turns).await?;
    Ok(thread::opened(described, &settings, thread.started()))
}
