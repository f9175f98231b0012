//! The v2 notifications for a listener of a v1 conversation.
//!
//! 0.77 derives these from the events of the queue. So a declined command is a failed one, and a patch exists from the
//! moment when it may be applied.

use std::borrow::Cow;

use codex_log::{Body, Event, Item, Status};

/// The event from which such notifications are derived; `None` if there are none.
#[must_use]
pub fn forwarded(event: &Event) -> Option<Cow<'_, Event>> {
    let body = match &event.body {
        Body::ItemStarted(item) if is_patch(item, Status::AwaitingApproval) => return None,
        Body::ItemCompleted(item) if is_patch(item, Status::Declined) => return None,
        Body::Answered { item: Some(item), answer, .. } if item.patch().is_some() && answer.allows() => {
            Body::ItemStarted(item.clone())
        }
        Body::ItemCompleted(item) if item.status() == Some(Status::Declined) => {
            Body::ItemCompleted(item.with_status(Status::Failed))
        }
        _ => return Some(Cow::Borrowed(event)),
    };
    let Event { thread, seq, at_ms, turn, .. } = event;
    Some(Cow::Owned(Event { thread: *thread, seq: *seq, at_ms: *at_ms, turn: turn.clone(), body }))
}

fn is_patch(item: &Item, status: Status) -> bool {
    item.patch().is_some_and(|patch| patch.status == status)
}
