//! What events take up in memory.

use codex_wire::change::FileChange;
use codex_wire::input::UserInput;

use crate::{Body, Delta, Event, Item, Outcome};

/// What an event costs besides the texts in it.
pub(crate) const EVENT_BYTES: usize = 256;

impl Event {
    /// About how many bytes it takes up.
    #[must_use]
    pub fn weight(&self) -> usize {
        let texts = match &self.body {
            Body::ItemDelta { delta, .. } => delta_weight(delta),
            Body::ItemStarted(item) | Body::ItemCompleted(item) => item_weight(item),
            Body::Recorded(record) => record.json.json_bytes(),
            Body::DiffChanged(diff) => diff.len(),
            Body::GoalChanged(goal) => goal.objective.len(),
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

fn item_weight(item: &Item) -> usize {
    match item {
        Item::UserMessage { content, .. } => content.iter().map(input_weight).sum(),
        Item::AgentMessage { text, .. } => text.len(),
        Item::Reasoning { summary, raw, .. } => summary.iter().chain(raw).map(String::len).sum(),
        Item::Command(command) => command.end.as_ref().map_or(0, |end| 2 * end.aggregated.len() + end.formatted.len()),
        Item::Patch(patch) => patch.changes.values().map(change_weight).sum(),
        Item::WebSearch { query, .. } => query.len(),
    }
}

fn input_weight(input: &UserInput) -> usize {
    match input {
        UserInput::Text { text, .. } => text.len(),
        UserInput::Image { image_url } => image_url.len(),
        _ => 0,
    }
}

fn change_weight(change: &FileChange) -> usize {
    match change {
        FileChange::Add { content } | FileChange::Delete { content } => content.len(),
        FileChange::Update { unified_diff, .. } => unified_diff.len(),
    }
}
