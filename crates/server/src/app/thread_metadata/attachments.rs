//! Attachments of threads.

use std::sync::Arc;

use codex_log::store::Attachment;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::attachment::{
    ThreadAttachment, ThreadAttachmentAddOutcome, ThreadAttachmentAddParams, ThreadAttachmentAddResponse,
    ThreadAttachmentListParams, ThreadAttachmentListResponse, ThreadAttachmentOperation, ThreadAttachmentOwner,
    ThreadAttachmentOwnerListParams, ThreadAttachmentOwnerListResponse, ThreadAttachmentRemoveParams,
    ThreadAttachmentUpdatedNotification,
};
use codex_protocol::v2::empty::Empty;
use codex_protocol::v2::notification::ServerNotification;

use super::{WithNotification, page, refusal, summary};
use crate::app::connection::Connection;
use crate::app::disk::blocking;
use crate::app::stored_threads::parse_name;

/// Adds an attachment, unless it exists already.
pub(super) async fn add(
    connection: &Connection,
    params: ThreadAttachmentAddParams,
) -> WithNotification<ThreadAttachmentAddResponse> {
    let ThreadAttachmentAddParams { thread_id, attachment_type, identity_key, payload } = params;
    let id = parse_name(&thread_id)?;
    let host = Arc::clone(&connection.host);
    blocking(move || {
        summary(&host, id)?;
        let done = host.store.attach(id, &attachment_type, &identity_key, payload);
        let (attachment, is_new) = done.map_err(refusal)?;
        let changed = is_new.then(|| changed(thread_id, &attachment, ThreadAttachmentOperation::Created));
        let outcome = if is_new { ThreadAttachmentAddOutcome::Created } else { ThreadAttachmentAddOutcome::Existing };
        Ok((ThreadAttachmentAddResponse { attachment: shown(attachment), outcome }, changed))
    })
    .await
}

/// Removes an attachment. A missing one counts as removed.
pub(super) async fn remove(connection: &Connection, params: ThreadAttachmentRemoveParams) -> WithNotification<Empty> {
    let ThreadAttachmentRemoveParams { thread_id, attachment_type, identity_key } = params;
    let id = parse_name(&thread_id)?;
    let host = Arc::clone(&connection.host);
    blocking(move || {
        summary(&host, id)?;
        let removed = host.store.detach(id, &attachment_type, &identity_key).map_err(refusal)?;
        let changed = removed.map(|removed| changed(thread_id, &removed, ThreadAttachmentOperation::Deleted));
        Ok((Empty {}, changed))
    })
    .await
}

/// Lists the attachments of a thread.
pub(super) async fn list(
    connection: &Connection,
    params: ThreadAttachmentListParams,
) -> Result<ThreadAttachmentListResponse, ErrorObject> {
    let ThreadAttachmentListParams { thread_id, cursor, limit } = params;
    let id = parse_name(&thread_id)?;
    let host = Arc::clone(&connection.host);
    blocking(move || {
        summary(&host, id)?;
        let mut all = host.store.attachments(id).map_err(refusal)?;
        // Clocks of several processes may differ, and cursors need one order.
        all.sort_by(|one, other| one.id.cmp(&other.id));
        let (data, next_cursor) = page(all, |attachment| attachment.id.as_str(), cursor.as_deref(), limit)?;
        Ok(ThreadAttachmentListResponse { data: data.into_iter().map(shown).collect(), next_cursor })
    })
    .await
}

/// Lists the threads with an attachment.
pub(super) async fn owners(
    connection: &Connection,
    params: ThreadAttachmentOwnerListParams,
) -> Result<ThreadAttachmentOwnerListResponse, ErrorObject> {
    let ThreadAttachmentOwnerListParams { attachment_type, identity_key, archived, cursor, limit } = params;
    let host = Arc::clone(&connection.host);
    blocking(move || {
        let threads = host.store.attached_to(&attachment_type, &identity_key).map_err(refusal)?;
        let mut owners = Vec::new();
        for id in threads {
            // A thread whose file was removed by hand has no attachments.
            let found = host.store.find(id).map_err(ErrorObject::internal_from)?;
            let found = found.filter(|found| archived.is_none_or(|archived| found.archived == archived));
            owners.extend(
                found.map(|found| ThreadAttachmentOwner { thread_id: found.id.to_string(), archived: found.archived }),
            );
        }
        let (data, next_cursor) = page(owners, |owner| owner.thread_id.as_str(), cursor.as_deref(), limit)?;
        Ok(ThreadAttachmentOwnerListResponse { data, next_cursor })
    })
    .await
}

fn shown(attachment: Attachment) -> ThreadAttachment {
    let Attachment { id, kind, key, payload, created_at } = attachment;
    ThreadAttachment { id, attachment_type: kind, identity_key: key, payload, created_at }
}

fn changed(thread_id: String, attachment: &Attachment, operation: ThreadAttachmentOperation) -> ServerNotification {
    ServerNotification::ThreadAttachmentUpdated(ThreadAttachmentUpdatedNotification {
        thread_id,
        attachment_id: attachment.id.clone(),
        attachment_type: attachment.kind.clone(),
        identity_key: attachment.key.clone(),
        operation,
    })
}
