//! Metadata that clients store about threads, loaded or not.

mod attachments;
mod metadata;
mod read_states;
mod sections;

use codex_log::store::{StoreError, StoreErrorKind, ThreadSummary};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::notification::ServerNotification;
use codex_wire::ids::ThreadId;

pub(crate) use self::read_states::{read_state, read_states, turns_left};
use super::dispatch::serve;
use super::host::Host;

/// The default and the maximum number of entries of a page.
const PAGE: usize = 25;
const LARGEST_PAGE: usize = 100;

/// An answer, and the notifications that all clients receive after it.
pub(crate) type WithNotification<T> = Result<(T, Option<ServerNotification>), ErrorObject>;

serve! {
    waits {
        ThreadAttachmentOwnerList => attachments::owners,
        ThreadSectionList => sections::list,
        ThreadSectionCreate => sections::create,
        ThreadSectionUpdate => sections::update,
        ThreadSectionDelete => sections::delete,
    }
    stored {
        ThreadMetadataUpdate => metadata::update,
        ThreadAttachmentList => attachments::list,
        ThreadSectionMove => sections::move_thread,
    }
    stored_tells {
        ThreadReadStateUpdate => read_states::mark,
        ThreadAttachmentAdd => attachments::add,
        ThreadAttachmentRemove => attachments::remove,
    }
}

/// The reason why metadata could not be written.
pub(crate) fn refusal(error: StoreError) -> ErrorObject {
    if error.kind() == StoreErrorKind::Refused {
        return ErrorObject::from_display(error);
    }
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    ErrorObject::internal(format!("{error}{cause}"))
}

/// A saved thread, including one that has just started.
fn summary(host: &Host, id: ThreadId) -> Result<ThreadSummary, ErrorObject> {
    let found = host.store.find(id).map_err(ErrorObject::internal_from)?;
    found.ok_or_else(|| ErrorObject::invalid(format!("no rollout found for thread id {id}")))
}

/// A page of entries that are sorted by name. A cursor is the name of the last entry of the previous page, which may
/// have been removed since.
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
