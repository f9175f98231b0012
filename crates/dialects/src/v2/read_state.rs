//! What of a thread the user has read.

use codex_log::{ReadState, Unread};
use codex_protocol::v2::notification::ServerNotification;
use codex_protocol::v2::read_state::{ThreadReadState, ThreadReadStateChangedNotification, ThreadUnreadPosition};

/// What of a thread was not read.
#[must_use]
pub fn read_state(state: &ReadState) -> ThreadReadState {
    let first_unread = state.first_unread.as_ref().map(|first| match first {
        Unread::Start => ThreadUnreadPosition::ThreadStart,
        Unread::Turn(turn) => ThreadUnreadPosition::Turn { turn_id: turn.clone() },
    });
    ThreadReadState { first_unread, revision: state.revision.clone() }
}

/// What is told when that changes.
#[must_use]
pub fn read_state_changed(thread_id: String, state: &ReadState) -> ServerNotification {
    let read_state = read_state(state);
    ServerNotification::ThreadReadStateChanged(ThreadReadStateChangedNotification { thread_id, read_state })
}
