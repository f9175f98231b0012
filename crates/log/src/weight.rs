//! The memory that events occupy.

use crate::queue::{QueueEvent, QueuedInput};
use crate::{Body, Delta, Event, Outcome};

/// The memory of an event without its texts.
pub(crate) const EVENT_BYTES: usize = 256;

impl Event {
    /// About how many bytes it takes up.
    #[must_use]
    pub fn weight(&self) -> usize {
        let texts = match &self.body {
            Body::ItemDelta { delta, .. } => delta_weight(delta),
            Body::ItemStarted(item) | Body::ItemCompleted(item) | Body::ItemInterrupted(item) => item.weight(),
            Body::Recorded(record) => record.json.json_bytes(),
            Body::DiffChanged(diff) => diff.len(),
            Body::GoalChanged(goal) => goal.objective.len(),
            Body::Queue(told) => match &**told {
                QueueEvent::Added { entry } | QueueEvent::Updated { entry } => entry.bytes(),
                QueueEvent::All { entries, .. } => entries.iter().map(QueuedInput::bytes).sum(),
                QueueEvent::Removed { .. } | QueueEvent::Ordered { .. } | QueueEvent::Paused | QueueEvent::Resumed => 0,
            },
            Body::TurnEnded(Outcome::Completed { last_message: Some(text), .. }) => text.len(),
            _ => 0,
        };
        EVENT_BYTES + texts
    }
}

fn delta_weight(delta: &Delta) -> usize {
    match delta {
        Delta::Text(text) | Delta::Summary { text, .. } | Delta::Raw { text, .. } => text.len(),
        Delta::Output { bytes, .. } => bytes.len(),
        Delta::SummaryPart { .. } => 0,
    }
}
