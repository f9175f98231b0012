//! What clients note about threads, loaded or not. It is served before the next line is read, so that a client which does
//! not wait for answers finds its own changes.

mod attachments;
mod metadata;
mod read_states;
mod sections;

use std::sync::Arc;

use codex_log::store::{StoreError, StoreErrorKind, ThreadSummary};
use codex_protocol::methods::{ClientRequest, Method, call};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::notification::ServerNotification;
use codex_wire::ids::{RequestId, ThreadId};

pub(crate) use self::read_states::{read_state, read_states, turns_left};
use super::connection::{Connection, Unanswered};
use super::host::Host;
use super::server_methods::Passed;
use super::stored_threads::tell_all;

/// How many entries a page has when the client does not say, and at most.
const PAGE: usize = 25;
const LARGEST_PAGE: usize = 100;

/// An answer, and what all clients are told after it.
pub(crate) type WithNotification<T> = Result<(T, Option<ServerNotification>), ErrorObject>;

/// Serves the requests of this group.
pub(crate) async fn serve(connection: &Arc<Connection>, unanswered: Unanswered, request: ClientRequest) -> Passed {
    let (outbox, id) = (&connection.outbox, &unanswered.id);
    match request {
        ClientRequest::ThreadReadStateUpdate(params) => {
            finish::<call::ThreadReadStateUpdate>(connection, id, read_states::mark(connection, *params).await).await;
        }
        ClientRequest::ThreadMetadataUpdate(params) => {
            outbox.answer::<call::ThreadMetadataUpdate>(id, metadata::update(connection, *params).await).await;
        }
        ClientRequest::ThreadAttachmentAdd(params) => {
            finish::<call::ThreadAttachmentAdd>(connection, id, attachments::add(connection, *params).await).await;
        }
        ClientRequest::ThreadAttachmentList(params) => {
            outbox.answer::<call::ThreadAttachmentList>(id, attachments::list(connection, *params).await).await;
        }
        ClientRequest::ThreadAttachmentRemove(params) => {
            finish::<call::ThreadAttachmentRemove>(connection, id, attachments::remove(connection, *params).await)
                .await;
        }
        ClientRequest::ThreadAttachmentOwnerList(params) => {
            let connection = Arc::clone(connection);
            tokio::spawn(async move {
                let owners = attachments::owners(&connection, *params).await;
                connection.outbox.answer::<call::ThreadAttachmentOwnerList>(&unanswered.id, owners).await;
            });
        }
        other => return sections_of(connection, unanswered, other).await,
    }
    None
}

async fn sections_of(connection: &Connection, unanswered: Unanswered, request: ClientRequest) -> Passed {
    let (outbox, id) = (&connection.outbox, &unanswered.id);
    match request {
        ClientRequest::ThreadSectionList(params) => {
            outbox.answer::<call::ThreadSectionList>(id, sections::list(connection, *params).await).await;
        }
        ClientRequest::ThreadSectionCreate(params) => {
            outbox.answer::<call::ThreadSectionCreate>(id, sections::create(connection, *params).await).await;
        }
        ClientRequest::ThreadSectionUpdate(params) => {
            outbox.answer::<call::ThreadSectionUpdate>(id, sections::update(connection, *params).await).await;
        }
        ClientRequest::ThreadSectionDelete(params) => {
            outbox.answer::<call::ThreadSectionDelete>(id, sections::delete(connection, *params).await).await;
        }
        ClientRequest::ThreadSectionMove(params) => {
            outbox.answer::<call::ThreadSectionMove>(id, sections::move_thread(connection, *params).await).await;
        }
        other => return Some((unanswered, other)),
    }
    None
}

/// Answers, and then tells all clients what came of it.
pub(crate) async fn finish<M: Method>(
    connection: &Arc<Connection>,
    id: &RequestId,
    done: WithNotification<M::Response>,
) {
    match done {
        Ok((answer, changed)) => {
            connection.outbox.answer::<M>(id, Ok(answer)).await;
            if let Some(changed) = changed {
                tell_all(connection, &changed).await;
            }
        }
        Err(error) => connection.outbox.refuse(id, error).await,
    }
}

/// Why a note could not be made, with its cause.
pub(crate) fn refusal(error: StoreError) -> ErrorObject {
    if error.kind() == StoreErrorKind::Refused {
        return ErrorObject::from_display(error);
    }
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    ErrorObject::internal(format!("{error}{cause}"))
}

/// A thread that is kept, also if it has begun a moment ago.
fn summary(host: &Host, id: ThreadId) -> Result<ThreadSummary, ErrorObject> {
    let found = host.store.find(id).map_err(ErrorObject::internal_from)?;
    found.ok_or_else(|| ErrorObject::invalid(format!("no rollout found for thread id {id}")))
}

/// A page of entries that are sorted by their names. A cursor is the name of the last entry of the page before, which may
/// be gone by now.
fn page<T>(
    all: Vec<T>,
    name: impl Fn(&T) -> &str,
    cursor: Option<&str>,
    limit: Option<u32>,
) -> Result<(Vec<T>, Option<String>), ErrorObject> {
    if let Some(cursor) = cursor.filter(|cursor| cursor.parse::<ThreadId>().is_err()) {
        return Err(ErrorObject::invalid(format!("invalid cursor: {cursor}")));
    }
    let limit = limit.map_or(PAGE, |limit| (limit as usize).clamp(1, LARGEST_PAGE));
    let rest = all.into_iter().filter(|entry| cursor.is_none_or(|cursor| name(entry) > cursor));
    let mut entries: Vec<T> = rest.take(limit + 1).collect();
    let has_more = entries.len() > limit;
    entries.truncate(limit);
    let next = entries.last().filter(|_| has_more).map(|last| name(last).to_owned());
    Ok((entries, next))
}
