//! Attachments: values that clients store with threads, identified by type and key.

use chrono::{DateTime, Utc};
use codex_log::store::Attachment;
use codex_wire::ids::ThreadId;
use serde_json::Value;

use super::{Document, Documents, MetadataError, StoredMetadata, check_length, check_text};

/// The maximum number of attachments of a thread.
const MOST: usize = 256;

/// The maximum sizes of types, keys and values, and of all attachments of one thread, in bytes.
const MOST_TYPE_BYTES: usize = 128;
const MOST_KEY_BYTES: usize = 1024;
const MOST_PAYLOAD_BYTES: usize = 64 << 10;
const MOST_THREAD_BYTES: usize = 4 << 20;

fn bytes(attachment: &Attachment) -> usize {
    attachment.kind.len() + attachment.key.len() + attachment.payload.to_string().len()
}

impl<D: Documents> StoredMetadata<D> {
    /// The attachments of a thread, oldest first.
    pub fn attachments(&self, thread: ThreadId) -> Result<Vec<Attachment>, MetadataError> {
        self.documents.read(Document::Attachments(thread))
    }

    /// Attaches a value to a thread. An existing one with that type and key stays. Returns the current one, and whether
    /// it is new.
    pub fn attach(
        &self,
        thread: ThreadId,
        kind: &str,
        key: &str,
        payload: Value,
    ) -> Result<(Attachment, bool), MetadataError> {
        check_text("attachmentType", kind, MOST_TYPE_BYTES)?;
        check_text("identityKey", key, MOST_KEY_BYTES)?;
        check_length("payload", payload.to_string().len(), MOST_PAYLOAD_BYTES)?;
        self.documents.change(Document::Attachments(thread), |attached: &mut Vec<Attachment>| {
            if let Some(known) = attached.iter().find(|known| known.is(kind, key)) {
                return Ok((known.clone(), false));
            }
            let attachment = Attachment {
                id: ThreadId::fresh().to_string(),
                kind: kind.to_owned(),
                key: key.to_owned(),
                payload: payload.clone(),
                created_at: DateTime::<Utc>::from(codex_wire::time::now()).timestamp(),
            };
            if attached.len() >= MOST {
                return Err(MetadataError::TooMany { what: "attachments of a thread", most: MOST });
            }
            let bytes = attached.iter().map(bytes).sum::<usize>() + bytes(&attachment);
            check_length("what is attached to the thread", bytes, MOST_THREAD_BYTES)?;
            attached.push(attachment.clone());
            Ok((attachment, true))
        })
    }

    /// Removes an attachment from a thread, and returns it if it was there.
    pub fn detach(&self, thread: ThreadId, kind: &str, key: &str) -> Result<Option<Attachment>, MetadataError> {
        if !self.attachments(thread)?.iter().any(|known| known.is(kind, key)) {
            return Ok(None);
        }
        self.documents.change(Document::Attachments(thread), |attached: &mut Vec<Attachment>| {
            let place = attached.iter().position(|known| known.is(kind, key));
            Ok(place.map(|place| attached.remove(place)))
        })
    }

    /// The threads with an attachment of a given type and key, oldest first. Unreadable files count as empty.
    pub fn attached_to(&self, kind: &str, key: &str) -> Result<Vec<ThreadId>, MetadataError> {
        let mut threads = self.documents.maybe_attached(key)?;
        threads.sort_unstable();
        threads.dedup();
        threads.retain(|thread| {
            let attached = self.attachments(*thread).unwrap_or_default();
            attached.iter().any(|attachment| attachment.is(kind, key))
        });
        Ok(threads)
    }
}
