//! The read state of a thread.

use codex_log::store::ReadMark;
use codex_log::{ReadState, Unread};
use codex_wire::ids::ThreadId;

use super::{Document, Documents, MetadataError, StoredMetadata};

/// A new state.
fn changed(first_unread: Option<Unread>) -> ReadState {
    ReadState { first_unread, revision: ThreadId::fresh().to_string() }
}

impl<D: Documents> StoredMetadata<D> {
    /// The unread part of a thread. An unreadable file counts as empty.
    #[must_use]
    pub fn read_state(&self, thread: ThreadId) -> ReadState {
        self.documents.read(Document::ReadState(thread)).unwrap_or_default()
    }

    /// Records that a turn has ended with something unread.
    pub fn turn_ended(&self, thread: ThreadId, turn: &str) -> Result<ReadState, MetadataError> {
        self.documents.change(Document::ReadState(thread), |state: &mut ReadState| {
            let first = state.first_unread.take().unwrap_or_else(|| Unread::Turn(turn.to_owned()));
            *state = changed(Some(first));
            Ok(state.clone())
        })
    }

    /// Marks a thread, unless something has happened in it since the revision that the user has seen. Returns the
    /// current state, and whether it is new.
    pub fn mark(&self, thread: ThreadId, seen: &str, mark: ReadMark) -> Result<(ReadState, bool), MetadataError> {
        self.documents.change(Document::ReadState(thread), |state: &mut ReadState| {
            if state.revision != seen {
                let present = state.revision.clone();
                return Err(MetadataError::Revision { expected: seen.to_owned(), present });
            }
            let marked = match mark {
                ReadMark::Read => None,
                // The unread part starts where it did.
                ReadMark::Unread => Some(state.first_unread.clone().unwrap_or(Unread::Start)),
            };
            let is_new = marked != state.first_unread;
            if is_new {
                *state = changed(marked);
            }
            Ok((state.clone(), is_new))
        })
    }

    /// Records that only these turns of a thread are left. Dropping the first unread turn drops all unread ones, so
    /// nothing is unread then. Returns the current state if it is new.
    pub fn turns_left(&self, thread: ThreadId, turns: &[&str]) -> Result<Option<ReadState>, MetadataError> {
        let is_gone = |state: &ReadState| match &state.first_unread {
            Some(Unread::Turn(turn)) => !turns.contains(&turn.as_str()),
            Some(Unread::Start) | None => false,
        };
        if !is_gone(&self.read_state(thread)) {
            return Ok(None);
        }
        self.documents.change(Document::ReadState(thread), |state: &mut ReadState| {
            if !is_gone(state) {
                return Ok(None);
            }
            *state = changed(None);
            Ok(Some(state.clone()))
        })
    }
}
