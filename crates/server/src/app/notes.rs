//! What clients note about threads, loaded or not. It is served before the next line is read, so that a client which does
//! not wait for answers finds its own notes.

use std::collections::BTreeMap;
use std::sync::Arc;

use codex_protocol::methods::{ClientRequest, call};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::metadata::{ThreadMetadataGitInfoUpdateParams, ThreadMetadataUpdateParams};
use codex_protocol::v2::notification::ServerNotification;
use codex_protocol::v2::read_state::{
    ThreadReadState, ThreadReadStateChangedNotification, ThreadReadStateOperation, ThreadReadStateUpdateParams,
    ThreadReadStateUpdateResponse,
};
use codex_protocol::v2::thread::ThreadResponse;
use codex_store::{NoteError, Notes, ReadMark, RepositoryChange, ThreadSummary};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::SessionSource;

use super::beside::Passed;
use super::connection::{Connection, Unanswered};
use super::host::Host;
use super::shelf::{blocking, parse_name, read_thread, tell_all};
use super::v2::thread;
use super::vintage::Vintage;

/// Serves the requests of this group.
pub(crate) async fn serve(connection: &Arc<Connection>, unanswered: Unanswered, request: ClientRequest) -> Passed {
    let (outbox, id) = (&connection.outbox, &unanswered.id);
    match request {
        ClientRequest::ThreadReadStateUpdate(params) => {
            let thread_id = params.thread_id.clone();
            match mark(connection, *params).await {
                Ok((read_state, is_new)) => {
                    let answer = ThreadReadStateUpdateResponse { read_state: read_state.clone() };
                    outbox.answer::<call::ThreadReadStateUpdate>(id, Ok(answer)).await;
                    if is_new {
                        tell_of(connection, thread_id, read_state).await;
                    }
                }
                Err(error) => outbox.refuse(id, error).await,
            }
            None
        }
        ClientRequest::ThreadMetadataUpdate(params) => {
            outbox.answer::<call::ThreadMetadataUpdate>(id, change_metadata(connection, *params).await).await;
            None
        }
        other => Some((unanswered, other)),
    }
}

/// Why a note could not be made, with its cause.
fn refusal(error: NoteError) -> ErrorObject {
    if error.is_mistake() {
        return ErrorObject::from_display(error);
    }
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    ErrorObject::internal(format!("{error}{cause}"))
}

/// A thread that is kept, also if it has begun a moment ago.
fn summary(host: &Host, id: ThreadId) -> Result<ThreadSummary, ErrorObject> {
    if let Some(loaded) = host.loaded.get(id) {
        host.index.note(&loaded.started().rollout).map_err(ErrorObject::internal_from)?;
    }
    let found = host.index.find(id).map_err(ErrorObject::internal_from)?;
    found.ok_or_else(|| ErrorObject::invalid(format!("no rollout found for thread id {id}")))
}

/// Whether a person reads a thread by itself. What an agent did for another is read there.
fn is_read_by_itself(summary: &ThreadSummary) -> bool {
    summary.parent.is_none() && !matches!(summary.source, Some(SessionSource::SubAgent(_)))
}

/// What was not read of the threads of a list. Clients of older releases are told nothing.
pub(crate) fn read_states(
    notes: &Notes,
    threads: &[ThreadSummary],
    vintage: Vintage,
) -> BTreeMap<String, ThreadReadState> {
    let shown = threads.iter().filter(|summary| vintage == Vintage::V0166 && is_read_by_itself(summary));
    shown.map(|summary| (summary.id.to_string(), thread::read_state(&notes.read_state(summary.id)))).collect()
}

/// What was not read of a thread, where the client is told and it is kept.
pub(crate) async fn read_state(connection: &Connection, id: ThreadId) -> Option<ThreadReadState> {
    if connection.vintage() != Vintage::V0166 {
        return None;
    }
    let host = Arc::clone(&connection.host);
    let found = blocking(move || {
        let found = summary(&host, id).ok().filter(is_read_by_itself);
        Ok(found.map(|_| thread::read_state(&host.index.notes().read_state(id))))
    });
    found.await.ok().flatten()
}

async fn mark(
    connection: &Connection,
    params: ThreadReadStateUpdateParams,
) -> Result<(ThreadReadState, bool), ErrorObject> {
    let id = parse_name(&params.thread_id)?;
    let mark = match params.operation {
        ThreadReadStateOperation::Read => ReadMark::Read,
        ThreadReadStateOperation::Unread => ReadMark::Unread,
    };
    let host = Arc::clone(&connection.host);
    blocking(move || {
        if !is_read_by_itself(&summary(&host, id)?) {
            return Err(ErrorObject::invalid(format!("thread {id} is read with the thread that started it")));
        }
        let (state, is_new) = host.index.notes().mark(id, &params.expected_revision, mark).map_err(refusal)?;
        Ok((thread::read_state(&state), is_new))
    })
    .await
}

async fn change_metadata(
    connection: &Arc<Connection>,
    params: ThreadMetadataUpdateParams,
) -> Result<ThreadResponse, ErrorObject> {
    let id = parse_name(&params.thread_id)?;
    let host = Arc::clone(&connection.host);
    blocking(move || {
        let summary = summary(&host, id)?;
        let Some(ThreadMetadataGitInfoUpdateParams { sha, branch, origin_url }) = params.git_info else {
            return Ok(());
        };
        let change = RepositoryChange { commit: sha, branch, url: origin_url };
        host.index.notes().change_repository(&summary, change).map_err(refusal)
    })
    .await?;
    Ok(ThreadResponse { thread: read_thread(connection, id, false).await? })
}

/// Notes that only some turns of a thread are left, and tells if that has left nothing to read.
pub(crate) async fn turns_left(connection: &Arc<Connection>, id: ThreadId, left: Option<Vec<String>>) {
    let Some(left) = left else { return };
    let notes = connection.host.index.notes();
    let noted = blocking(move || {
        let left: Vec<&str> = left.iter().map(String::as_str).collect();
        notes.turns_left(id, &left).map_err(refusal)
    });
    // The turns are gone whatever becomes of the note.
    if let Ok(Some(state)) = noted.await {
        tell_of(connection, id.to_string(), thread::read_state(&state)).await;
    }
}

async fn tell_of(connection: &Arc<Connection>, thread_id: String, read_state: ThreadReadState) {
    let changed = ThreadReadStateChangedNotification { thread_id, read_state };
    tell_all(connection, &ServerNotification::ThreadReadStateChanged(changed)).await;
}
