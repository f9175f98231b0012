//! Requests about threads on disk, loaded or not.

use std::sync::Arc;

use codex_log::settings::Settings;
use codex_log::store::{
    ListQuery, SectionFilter, SortKey, SourceKind, StoreError, StoreErrorKind, ThreadStore, ThreadSummary,
};
use codex_protocol::methods::call;
use codex_protocol::rpc::{ErrorObject, Notification};
use codex_protocol::v2::empty::Empty;
use codex_protocol::v2::notification::{ServerNotification, ThreadNameUpdated, ThreadNamed, ThreadStatusChanged};
use codex_protocol::v2::read_state::ThreadReadResponse;
use codex_protocol::v2::thread::{
    ActiveFlag, LoadedListResponse, PageParams, Thread as ShownThread, ThreadNameSetParams, ThreadParams,
    ThreadReadParams, ThreadResponse, ThreadStatus,
};
use codex_protocol::v2::thread_list::{OneOrMany, ThreadListParams, ThreadListResponse, ThreadSortKey};
use codex_protocol::v2::turn::{Turn, TurnStatus};
use codex_protocol::v2::turn_list::SortDirection;
use codex_thread::Thread;
use codex_wire::ids::ThreadId;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::connection::Connection;
use super::disk::{self, blocking};
use super::dispatch::{Request, ServeThread, serve};
use super::host::Host;
use super::lane::Lane;
use super::outbox::add_line;
use super::stored;
use super::thread_metadata::{self, WithNotification};
use super::turn_list;
use codex_dialects::ProtocolRelease;
use codex_dialects::v2::thread;

/// The number of threads of a page when the client names none.
const PAGE: usize = 25;
/// The maximum number of threads of a page.
const LARGEST_PAGE: usize = 100;

serve! {
    plain { ThreadLoadedList => list_loaded, }
    waits { ThreadList => list, }
    stored {
        ThreadRead => read,
        ThreadTurnsList => turn_list::list_turns,
        ThreadItemsList => turn_list::list_items,
    }
    stored_tells {
        ThreadUnarchive => unarchive,
        ThreadDelete => delete,
        ThreadNameSet => rename,
    }
}

impl ServeThread for call::ThreadArchive {
    async fn serve(lane: &mut Lane, request: Request<Self>, params: ThreadParams) {
        let (connection, id) = (Arc::clone(&request.connection), lane.thread);
        let was_loaded = connection.host.start.threads.get(id).is_some();
        let done = lane.while_listening(archive(&connection, id)).await;
        let is_done = done.is_ok();
        request.answer(done).await;
        let thread_id = params.thread_id;
        if was_loaded {
            let unloaded = ThreadStatusChanged { thread_id: thread_id.clone(), status: ThreadStatus::NotLoaded };
            tell_all(&connection, &ServerNotification::ThreadStatusChanged(unloaded)).await;
        }
        if is_done {
            tell_all(&connection, &ServerNotification::ThreadArchived(ThreadNamed { thread_id })).await;
        }
    }
}

fn list_loaded(connection: &Arc<Connection>, page: PageParams) -> Result<LoadedListResponse, ErrorObject> {
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

/// Parses a thread id.
pub(crate) fn parse_name(name: &str) -> Result<ThreadId, ErrorObject> {
    name.parse().map_err(|error| ErrorObject::invalid(format!("invalid thread id: {error}")))
}

/// Sends the client a notification that is not part of a thread's log.
pub(crate) async fn tell(connection: &Connection, notification: ServerNotification) {
    let (method, params) = (notification.method(), &notification);
    if connection.client().is_some_and(|client| client.is_unwanted(method)) {
        return;
    }
    let (mut bytes, emitted_at_ms, form) = (Vec::new(), super::now_ms(), connection.json_form());
    if form.is_plain() {
        add_line(&mut bytes, &Notification { method, params, emitted_at_ms });
    } else {
        add_line(&mut bytes, &Notification { method, params: form.notification(params), emitted_at_ms });
    }
    let room = connection.outbox.room(bytes.len()).await;
    connection.outbox.send_notification(bytes, room);
}

/// Sends all clients a notification. Only the client that caused it is waited for.
pub(crate) async fn tell_all(connection: &Arc<Connection>, notification: &ServerNotification) {
    for other in connection.host.connections() {
        if !Arc::ptr_eq(&other, connection) && other.client().is_some_and(|client| !client.is_relayed) {
            let notification = notification.clone();
            tokio::spawn(async move { tell(&other, notification).await });
        }
    }
    tell(connection, notification.clone()).await;
}

async fn list(connection: &Arc<Connection>, params: ThreadListParams) -> Result<ThreadListResponse, ErrorObject> {
    let is_of_section = matches!(params.section_id, Some(Some(_)));
    if params.sort_key == Some(ThreadSortKey::SectionPosition) && !is_of_section {
        return Err(ErrorObject::invalid("sortKey section_position needs the sectionId of one section"));
    }
    let (host, release) = (Arc::clone(&connection.host), connection.release());
    blocking(move || {
        let provider = host.config()?.provider.id.clone();
        let query = query(params, &provider);
        let page = host.store.list(&query).map_err(|error| match error.kind() {
            StoreErrorKind::Refused => ErrorObject::from_display(error),
            StoreErrorKind::Metadata => thread_metadata::refusal(error),
            _ => ErrorObject::internal_from(error),
        })?;
        let read_states = thread_metadata::read_states(&*host.store, &page.threads, release);
        let data = page.threads.into_iter().map(|summary| shown(&host, summary, &provider)).collect();
        let (next_cursor, backwards_cursor) = (page.next_cursor, page.backwards_cursor);
        Ok(ThreadListResponse { data, next_cursor, backwards_cursor, read_states })
    })
    .await
}

/// A thread of a list.
pub(crate) fn shown(host: &Host, summary: ThreadSummary, default_provider: &str) -> ShownThread {
    let loaded = host.start.threads.get(summary.id);
    let status = if loaded.is_some() { ThreadStatus::Idle } else { ThreadStatus::NotLoaded };
    let model = loaded.map(|loaded| loaded.started().settings.model.clone());
    ShownThread { model, ..thread::stored(summary, default_provider, status) }
}

/// The sources of the listed threads; by default, those of threads that a person would resume.
pub(crate) fn sources(kinds: Option<&[String]>) -> Vec<SourceKind> {
    match kinds.filter(|kinds| !kinds.is_empty()) {
        Some(kinds) => kinds.iter().filter_map(|kind| source_kind(kind)).collect(),
        None => vec![SourceKind::Cli, SourceKind::VsCode],
    }
}

/// The query of a list.
pub(crate) fn query(params: ThreadListParams, provider: &str) -> ListQuery {
    let limit = params.limit.map_or(PAGE, |limit| usize::try_from(limit).unwrap_or(LARGEST_PAGE));
    ListQuery {
        archived: params.archived.unwrap_or(false),
        providers: params.model_providers.unwrap_or_else(|| vec![provider.to_owned()]),
        default_provider: Some(provider.to_owned()),
        cwds: match params.cwd {
            None => Vec::new(),
            Some(OneOrMany::One(cwd)) => vec![cwd],
            Some(OneOrMany::Many(cwds)) => cwds,
        },
        sources: sources(params.source_kinds.as_deref()),
        text: params.search_term,
        silent: false,
        sort: match params.sort_key {
            None | Some(ThreadSortKey::CreatedAt) => SortKey::Created,
            Some(ThreadSortKey::UpdatedAt | ThreadSortKey::RecencyAt) => SortKey::Updated,
            Some(ThreadSortKey::SectionPosition) => SortKey::Place,
        },
        // A list begins with the newest thread, a section with the thread at its top.
        ascending: match params.sort_direction {
            Some(direction) => direction == SortDirection::Asc,
            None => params.sort_key == Some(ThreadSortKey::SectionPosition),
        },
        section: match params.section_id {
            None => SectionFilter::Any,
            Some(None) => SectionFilter::Outside,
            Some(Some(section)) => SectionFilter::In(section),
        },
        cursor: params.cursor,
        limit: limit.clamp(1, LARGEST_PAGE),
    }
}

fn source_kind(word: &str) -> Option<SourceKind> {
    Some(match word {
        "cli" => SourceKind::Cli,
        "vscode" => SourceKind::VsCode,
        "exec" => SourceKind::Exec,
        "appServer" => SourceKind::AppServer,
        "subAgent" => SourceKind::SubAgent,
        "subAgentReview" => SourceKind::SubAgentReview,
        "subAgentCompact" => SourceKind::SubAgentCompact,
        "subAgentThreadSpawn" => SourceKind::SubAgentThreadSpawn,
        "subAgentOther" => SourceKind::SubAgentOther,
        "unknown" => SourceKind::Unknown,
        _ => return None,
    })
}

async fn read(connection: &Arc<Connection>, params: ThreadReadParams) -> Result<ThreadReadResponse, ErrorObject> {
    let id = parse_name(&params.thread_id)?;
    let thread = read_thread(connection, id, params.include_turns).await?;
    Ok(ThreadReadResponse { thread, read_state: thread_metadata::read_state(connection, id).await })
}

/// A thread, loaded or not, with its turns if the client wants them.
pub(crate) async fn read_thread(
    connection: &Arc<Connection>,
    id: ThreadId,
    include_turns: bool,
) -> Result<ShownThread, ErrorObject> {
    if let Some(loaded) = connection.host.start.threads.get(id) {
        let settings = loaded.configure(codex_log::settings::SettingsChange::default()).await;
        let settings = settings.map_err(|_| super::dispatch::not_found(&id.to_string()))?;
        return describe(connection, &loaded, &settings, Turns::wanted(include_turns)).await;
    }
    let (host, release) = (Arc::clone(&connection.host), connection.release());
    blocking(move || {
        let found = host.store.find(id).map_err(ErrorObject::internal_from)?;
        let found = found.ok_or_else(|| super::dispatch::not_found(&id.to_string()))?;
        let turns = if include_turns {
            stored::turns(&*host.store, id, release).map_err(ErrorObject::from_display)?
        } else {
            Vec::new()
        };
        let provider = host.config()?.provider.id.clone();
        Ok(ShownThread { turns, ..thread::stored(found, &provider, ThreadStatus::NotLoaded) })
    })
    .await
}

/// The turns of a thread that is described.
pub(crate) enum Turns {
    /// The client does not want them.
    Unwanted,
    /// They have to be read.
    Wanted,
    /// They are being read.
    Coming(JoinHandle<Vec<Turn>>),
}

impl Turns {
    /// Turns that a client may want.
    pub(crate) fn wanted(is_wanted: bool) -> Self {
        if is_wanted { Self::Wanted } else { Self::Unwanted }
    }

    /// Starts to read the turns of a thread.
    pub(crate) fn read(store: Arc<dyn ThreadStore>, thread: ThreadId, release: ProtocolRelease) -> Self {
        Self::Coming(tokio::task::spawn_blocking(move || stored::turns(&*store, thread, release).unwrap_or_default()))
    }
}

/// A loaded thread, with its turns if the client wants them.
pub(crate) async fn describe(
    connection: &Arc<Connection>,
    loaded: &Thread,
    settings: &Settings,
    turns: Turns,
) -> Result<ShownThread, ErrorObject> {
    let subscription = loaded.subscribe().await.map_err(|_| super::dispatch::not_found(&loaded.id().to_string()))?;
    let status = match &subscription.running {
        None => ThreadStatus::Idle,
        Some(_) if subscription.asked.is_empty() => ThreadStatus::Active { active_flags: Vec::new() },
        Some(_) => ThreadStatus::Active { active_flags: vec![ActiveFlag::WaitingOnApproval] },
    };
    let mut shown = thread::loaded(loaded.started(), settings, status);
    let (host, release) = (Arc::clone(&connection.host), connection.release());
    let id = loaded.id();
    let known = blocking(move || {
        // An unsaved thread is not found and has no turns on disk.
        let summary = host.store.find(id).ok().flatten();
        let read = matches!(turns, Turns::Wanted).then(|| stored::turns(&*host.store, id, release).unwrap_or_default());
        Ok((summary, read, turns))
    });
    let (summary, read, turns) = known.await?;
    if let Some(summary) = summary {
        thread::describe(&mut shown, &summary);
    }
    shown.turns = match turns {
        Turns::Unwanted => Vec::new(),
        Turns::Wanted => read.unwrap_or_default(),
        Turns::Coming(coming) => timeout(disk::USUAL, coming).await.ok().and_then(Result::ok).unwrap_or_default(),
    };
    if let (Some(running), Some(last)) = (&subscription.running, shown.turns.last_mut())
        && last.id == running.as_str()
    {
        last.status = TurnStatus::InProgress;
    }
    Ok(shown)
}

/// Unloads a thread and those that it has started, so that their files can be moved.
async fn unload(connection: &Connection, id: ThreadId) {
    if let Some(thread) = connection.host.start.threads.release(id) {
        thread.close().await;
    }
    let host = Arc::clone(&connection.host);
    // A store that cannot list them cannot move them either, and says so.
    let agents = blocking(move || host.store.descendants(id).map_err(ErrorObject::internal_from)).await;
    for agent in agents.unwrap_or_default() {
        if let Some(thread) = connection.host.start.threads.release(agent) {
            thread.close().await;
        }
    }
}

/// The reason why a request about a stored thread failed.
fn refusal(thread: ThreadId, error: &StoreError) -> ErrorObject {
    match error.kind() {
        StoreErrorKind::Missing => missing(thread),
        StoreErrorKind::Locked | StoreErrorKind::Refused => ErrorObject::from_display(error),
        _ => ErrorObject::internal_from(error),
    }
}

fn missing(thread: ThreadId) -> ErrorObject {
    ErrorObject::invalid(format!("no rollout found for thread id {thread}"))
}

/// Archives a thread.
pub(crate) async fn archive(connection: &Arc<Connection>, id: ThreadId) -> Result<Empty, ErrorObject> {
    unload(connection, id).await;
    let host = Arc::clone(&connection.host);
    blocking(move || {
        // Archiving an archived thread is an error: other releases report it, and clients expect it.
        match host.store.find(id).map_err(ErrorObject::internal_from)? {
            Some(found) if found.archived => Err(missing(id)),
            _ => host.store.archive(id).map(|_| Empty {}).map_err(|error| refusal(id, &error)),
        }
    })
    .await
}

async fn unarchive(connection: &Arc<Connection>, params: ThreadParams) -> WithNotification<ThreadResponse> {
    let id = parse_name(&params.thread_id)?;
    let host = Arc::clone(&connection.host);
    blocking(move || {
        let summary = host.store.unarchive(id).map_err(|error| refusal(id, &error))?;
        let provider = host.config()?.provider.id.clone();
        let thread = thread::stored(summary, &provider, ThreadStatus::NotLoaded);
        let told = ServerNotification::ThreadUnarchived(ThreadNamed { thread_id: params.thread_id });
        Ok((ThreadResponse { thread }, Some(told)))
    })
    .await
}

async fn delete(connection: &Arc<Connection>, params: ThreadParams) -> WithNotification<Empty> {
    let id = parse_name(&params.thread_id)?;
    unload(connection, id).await;
    let host = Arc::clone(&connection.host);
    blocking(move || host.store.delete(id).map_err(|error| refusal(id, &error))).await?;
    Ok((Empty {}, Some(ServerNotification::ThreadDeleted(ThreadNamed { thread_id: params.thread_id }))))
}

async fn rename(connection: &Arc<Connection>, params: ThreadNameSetParams) -> WithNotification<Empty> {
    let ThreadNameSetParams { thread_id, name } = params;
    let id = parse_name(&thread_id)?;
    if name.trim().is_empty() {
        return Err(ErrorObject::invalid("name must not be empty"));
    }
    let (host, new) = (Arc::clone(&connection.host), name.clone());
    blocking(move || host.store.rename(id, &new).map_err(|error| refusal(id, &error))).await?;
    let updated = ThreadNameUpdated { thread_id, thread_name: Some(name) };
    Ok((Empty {}, Some(ServerNotification::ThreadNameUpdated(updated))))
}
