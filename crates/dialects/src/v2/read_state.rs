//! The read state of a thread.

use codex_log::{ReadState, Unread};
use codex_protocol::v2::notification::ServerNotification;
use codex_protocol::v2::read_state::{ThreadReadState, ThreadReadStateChangedNotification, ThreadUnreadPosition};

/// The unread part of a thread.
#[must_use]
pub fn read_state(state: &ReadState) -> ThreadReadState {
    let first_unread = state.first_unread.as_ref().map(|first| match first {
        Unread::Start => ThreadUnreadPosition::ThreadStart,
        Unread::Turn(turn) => ThreadUnreadPosition::Turn { turn_id: turn.clone() },
    });
    ThreadReadState { first_unread, revision: state.revision.clone() }
}

/// The notification of a change.
#[must_use]
pub fn read_state_changed(thread_id: String, state: &ReadState) -> ServerNotification {
    let read_state = read_state(state);
    ServerNotification::ThreadReadStateChanged(ThreadReadStateChangedNotification { thread_id, read_state })
}
