//! The log as a listener of a conversation is told it in notifications of the second version.
//!
//! 0.77 makes these from the events of the queue. So a command that was declined has failed to run, and a patch is there
//! from the moment in which it may be applied.

use std::borrow::Cow;
use std::sync::Arc;

use codex_log::{Body, CommandItem, CommandStatus, Event, Item, PatchStatus};

/// The event that such notifications are made from; none if there are none.
#[must_use]
pub fn forwarded(event: &Event) -> Option<Cow<'_, Event>> {
    let body = match &event.body {
        Body::ItemStarted(Item::Patch(patch)) if patch.status == PatchStatus::AwaitingApproval => return None,
        Body::ItemCompleted(Item::Patch(patch)) if patch.status == PatchStatus::Declined => return None,
        Body::Answered { item: Some(item @ Item::Patch(_)), answer, .. } if answer.allows() => {
            Body::ItemStarted(item.clone())
        }
        Body::ItemCompleted(Item::Command(command)) if command.status == CommandStatus::Declined => {
            let failed = CommandItem { status: CommandStatus::Failed, ..(**command).clone() };
            Body::ItemCompleted(Item::Command(Arc::new(failed)))
        }
        _ => return Some(Cow::Borrowed(event)),
    };
    let Event { thread, seq, at_ms, turn, .. } = event;
    Some(Cow::Owned(Event { thread: *thread, seq: *seq, at_ms: *at_ms, turn: turn.clone(), body }))
}
