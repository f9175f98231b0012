//! `fuzzyFileSearch` and its sessions.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use codex_dialects::ProtocolRelease;
use codex_methods::file_search::{FileSearch, SearchSession, SearchState};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::empty::Empty;
use codex_protocol::v2::notification::ServerNotification;
use codex_protocol::v2::search::{
    FuzzyFileSearchParams, FuzzyFileSearchResponse, FuzzyFileSearchSessionCompletedNotification,
    FuzzyFileSearchSessionStartParams, FuzzyFileSearchSessionStopParams, FuzzyFileSearchSessionUpdateParams,
    FuzzyFileSearchSessionUpdatedNotification,
};
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::app::connection::{Connection, lock, overloaded};
use crate::app::disk::{self, in_place};
use crate::app::dispatch::serve;
use crate::app::stored_threads::tell;

/// The maximum number of sessions of a client; each has its own thread.
const MOST_SESSIONS: usize = 16;

/// The running searches of a client.
#[derive(Debug, Default)]
pub(super) struct Searches {
    next: AtomicU64,
    /// Single searches by number.
    running: Mutex<HashMap<u64, Running>>,
    sessions: Mutex<HashMap<String, Place<SearchSession>>>,
}

/// A value that occupies a slot of the server.
#[derive(Debug)]
struct Place<T> {
    of: T,
    _permit: OwnedSemaphorePermit,
}

/// A single search: the token that the client gave it, and the flag that cancels it.
type Running = (Option<String>, Arc<AtomicBool>);

impl Searches {
    /// Ends the sessions, which can receive no more queries.
    pub(super) fn end_sessions(&self) {
        lock(&self.sessions).clear();
    }

    /// Cancels all searches.
    pub(super) fn end(&self) {
        self.end_sessions();
        for (_, flag) in lock(&self.running).values() {
            flag.store(true, Ordering::Relaxed);
        }
    }

    /// Starts a single search and cancels the previous one with the same token.
    fn begin(&self, token: Option<String>) -> (u64, Arc<AtomicBool>) {
        let (number, flag) = (self.next.fetch_add(1, Ordering::Relaxed), Arc::new(AtomicBool::new(false)));
        let mut running = lock(&self.running);
        if token.is_some() {
            for (_, flag) in running.values().filter(|(other, _)| *other == token) {
                flag.store(true, Ordering::Relaxed);
            }
        }
        running.insert(number, (token, Arc::clone(&flag)));
        (number, flag)
    }
}

serve! {
    sure {
        FuzzyFileSearchSessionStop => stop,
    }
    plain {
        FuzzyFileSearchSessionStart => start,
        FuzzyFileSearchSessionUpdate => update,
    }
    waits {
        FuzzyFileSearch => search,
    }
}

fn file_search(connection: &Connection, roots: Vec<PathBuf>) -> FileSearch {
    FileSearch::new(&connection.host.start.cwd, roots, connection.release() == ProtocolRelease::V0166)
}

async fn search(
    connection: &Arc<Connection>,
    params: FuzzyFileSearchParams,
) -> Result<FuzzyFileSearchResponse, ErrorObject> {
    let FuzzyFileSearchParams { query, mut roots, cwd, cancellation_token } = params;
    if roots.is_empty() {
        roots.extend(cwd);
    }
    let search = file_search(connection, roots);
    let searches = &connection.resources.searches;
    let (number, flag) = searches.begin(cancellation_token);
    let ended = Arc::clone(&flag);
    let places = &connection.host.places.searches;
    let found = in_place(places, disk::USUAL, move || Ok(search.run(&query, &flag))).await;
    // A search that was cancelled in the meantime is not started.
    ended.store(true, Ordering::Relaxed);
    lock(&searches.running).remove(&number);
    Ok(FuzzyFileSearchResponse { files: found? })
}

fn start(connection: &Arc<Connection>, params: FuzzyFileSearchSessionStartParams) -> Result<Empty, ErrorObject> {
    let FuzzyFileSearchSessionStartParams { session_id, roots } = params;
    if session_id.is_empty() {
        return Err(ErrorObject::invalid("sessionId must not be empty"));
    }
    let sessions = &connection.resources.searches.sessions;
    if lock(sessions).len() >= MOST_SESSIONS && !lock(sessions).contains_key(&session_id) {
        return Err(ErrorObject::invalid(format!("at most {MOST_SESSIONS} search sessions may be open")));
    }
    let places = Arc::clone(&connection.host.places.sessions);
    let place = places.try_acquire_owned().map_err(|_| overloaded())?;
    let (sender, receiver) = watch::channel(SearchState::default());
    let started = file_search(connection, roots).start(move |change| sender.send_modify(change));
    let session = started.map_err(ErrorObject::internal_from)?;
    // An existing session with the same id ends here.
    lock(sessions).insert(session_id.clone(), Place { of: session, _permit: place });
    tokio::spawn(pass_on(Arc::clone(connection), session_id, receiver));
    Ok(Empty {})
}

/// Sends the results of a session to the client, until the session ends.
async fn pass_on(connection: Arc<Connection>, session_id: String, mut receiver: watch::Receiver<SearchState>) {
    let mut told = 0;
    while receiver.changed().await.is_ok() {
        let (updated, is_complete) = {
            let state = receiver.borrow_and_update();
            let is_new = state.updates > told;
            told = state.updates;
            (is_new.then(|| (state.query.clone(), state.files.clone())), state.is_complete)
        };
        if let Some((query, files)) = updated {
            let session_id = session_id.clone();
            let updated = FuzzyFileSearchSessionUpdatedNotification { session_id, query, files };
            tell(&connection, ServerNotification::FuzzyFileSearchSessionUpdated(updated)).await;
        }
        if is_complete {
            let completed = FuzzyFileSearchSessionCompletedNotification { session_id: session_id.clone() };
            tell(&connection, ServerNotification::FuzzyFileSearchSessionCompleted(completed)).await;
        }
    }
}

fn update(connection: &Arc<Connection>, params: FuzzyFileSearchSessionUpdateParams) -> Result<Empty, ErrorObject> {
    let FuzzyFileSearchSessionUpdateParams { session_id, query } = params;
    match lock(&connection.resources.searches.sessions).get(&session_id) {
        Some(session) => {
            session.of.update(query);
            Ok(Empty {})
        }
        None => Err(ErrorObject::invalid(format!("fuzzy file search session not found: {session_id}"))),
    }
}

fn stop(connection: &Arc<Connection>, params: FuzzyFileSearchSessionStopParams) -> Empty {
    // Stopping a session that has already ended succeeds.
    let ended = lock(&connection.resources.searches.sessions).remove(&params.session_id);
    drop(ended);
    Empty {}
}
