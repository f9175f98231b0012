//! Notifications about the goal and the queue of a thread.

use codex_log::queue::QueueEvent;
use codex_log::{Body, Event};
use codex_protocol::v2::goal::{ThreadGoal, ThreadGoalUpdated};
use codex_protocol::v2::notification::{ServerNotification, ThreadNamed};

/// The notification of an event about the goal or the queue.
pub(super) fn told(thread: &str, event: &Event) -> Option<ServerNotification> {
    let thread_id = thread.to_owned();
    Some(match &event.body {
        Body::GoalChanged(goal) => {
            let goal = ThreadGoal::new(thread_id.clone(), goal);
            let turn_id = event.turn.as_ref().map(|turn| turn.as_str().to_owned());
            ServerNotification::ThreadGoalUpdated(Box::new(ThreadGoalUpdated { thread_id, turn_id, goal }))
        }
        Body::GoalCleared => ServerNotification::ThreadGoalCleared(ThreadNamed { thread_id }),
        // Logged again after a compaction, the queue has not changed.
        Body::Queue(told) if matches!(**told, QueueEvent::All { .. }) => return None,
        Body::Queue(_) => ServerNotification::ThreadQueueChanged(ThreadNamed { thread_id }),
        _ => return None,
    })
}
