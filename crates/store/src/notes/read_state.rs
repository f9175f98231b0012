//! What of a thread the user has read.

use codex_log::store::ReadMark;
use codex_log::{ReadState, Unread};
use codex_wire::ids::ThreadId;

use super::{NoteError, Notes};

/// A state after a change.
fn changed(first_unread: Option<Unread>) -> ReadState {
    ReadState { first_unread, revision: ThreadId::fresh().to_string() }
}

impl Notes {
    /// What of a thread was not read. A note that cannot be read says nothing.
    #[must_use]
    pub fn read_state(&self, thread: ThreadId) -> ReadState {
        self.read_state_file(thread).read().unwrap_or_default()
    }

    /// Notes that a turn has ended with something to read.
    pub fn turn_ended(&self, thread: ThreadId, turn: &str) -> Result<ReadState, NoteError> {
        self.read_state_file(thread).change(|state: &mut ReadState| {
            let first = state.first_unread.take().unwrap_or_else(|| Unread::Turn(turn.to_owned()));
            *state = changed(Some(first));
            Ok(state.clone())
        })
    }

    /// Marks a thread, unless something has happened in it since the revision that the user has seen. Returns what holds
    /// now, and whether that is new.
    pub fn mark(&self, thread: ThreadId, seen: &str, mark: ReadMark) -> Result<(ReadState, bool), NoteError> {
        self.read_state_file(thread).change(|state: &mut ReadState| {
            if state.revision != seen {
                let present = state.revision.clone();
                return Err(NoteError::Revision { expected: seen.to_owned(), present });
            }
            let marked = match mark {
                ReadMark::Read => None,
                // What was not read begins where it did.
                ReadMark::Unread => Some(state.first_unread.clone().unwrap_or(Unread::Start)),
            };
            let is_new = marked != state.first_unread;
            if is_new {
                *state = changed(marked);
            }
            Ok((state.clone(), is_new))
        })
    }

    /// Notes that of a thread only these turns are left. Whoever forgets the first turn that was not read forgets all of
    /// them, so nothing is left to read then. Returns what holds now if that is new.
    pub fn turns_left(&self, thread: ThreadId, turns: &[&str]) -> Result<Option<ReadState>, NoteError> {
        let is_gone = |state: &ReadState| match &state.first_unread {
            Some(Unread::Turn(turn)) => !turns.contains(&turn.as_str()),
            Some(Unread::Start) | None => false,
        };
        if !is_gone(&self.read_state(thread)) {
            return Ok(None);
        }
        self.read_state_file(thread).change(|state: &mut ReadState| {
            if !is_gone(state) {
                return Ok(None);
            }
            *state = changed(None);
            Ok(Some(state.clone()))
        })
    }
}
