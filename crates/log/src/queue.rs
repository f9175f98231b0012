//! Input that waits for its turn: what a person has queued while the thread works.

use std::sync::Arc;

use codex_wire::input::UserInput;
use serde::{Deserialize, Serialize};

use crate::TurnId;

/// An entry of the queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueuedInput {
    /// Its id, which becomes the id of the turn that it starts.
    pub id: String,
    /// The client's id of the message. Input with a known id is not processed again.
    pub client_id: String,
    pub input: Vec<UserInput>,
}

impl QueuedInput {
    /// The turn that it starts.
    #[must_use]
    pub fn turn(&self) -> TurnId {
        TurnId::new(self.id.clone())
    }

    /// About how many bytes it takes up.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let parts = self.input.iter().map(|part| serde_json::to_string(part).map_or(0, |json| json.len()));
        self.id.len() + self.client_id.len() + parts.sum::<usize>()
    }
}

/// A change of the queue. Files contain these as lines, which other releases skip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum QueueEvent {
    /// An entry was added at the end.
    #[serde(rename = "queue_added")]
    Added { entry: QueuedInput },
    /// The input of an entry was replaced.
    #[serde(rename = "queue_updated")]
    Updated { entry: QueuedInput },
    /// An entry was removed, or its turn has started.
    #[serde(rename = "queue_removed")]
    Removed { id: String },
    /// The entries have this order.
    #[serde(rename = "queue_ordered")]
    Ordered { ids: Vec<String> },
    /// No further entry starts by itself.
    #[serde(rename = "queue_paused")]
    Paused,
    /// Entries start by themselves again.
    #[serde(rename = "queue_resumed")]
    Resumed,
    /// The whole queue.
    #[serde(rename = "queue_all")]
    All { entries: Vec<QueuedInput>, is_paused: bool },
}

/// The queue of a thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueueState {
    /// The entries, next first.
    pub entries: Vec<Arc<QueuedInput>>,
    /// Whether the entries wait until a person resumes the queue. An empty queue is never paused.
    pub is_paused: bool,
}

impl QueueState {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether an idle thread starts the next entry.
    #[must_use]
    pub fn is_due(&self) -> bool {
        !self.entries.is_empty() && !self.is_paused
    }

    /// The entry with this id.
    #[must_use]
    pub fn entry(&self, id: &str) -> Option<&Arc<QueuedInput>> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    /// All of it, for readers that begin here.
    #[must_use]
    pub fn whole(&self) -> QueueEvent {
        let entries = self.entries.iter().map(|entry| (**entry).clone()).collect();
        QueueEvent::All { entries, is_paused: self.is_paused }
    }

    /// Processes a change.
    pub(crate) fn apply(&mut self, event: &QueueEvent) {
        match event {
            QueueEvent::Added { entry } => {
                self.entries.retain(|known| known.id != entry.id);
                self.entries.push(Arc::new(entry.clone()));
            }
            QueueEvent::Updated { entry } => {
                if let Some(known) = self.entries.iter_mut().find(|known| known.id == entry.id) {
                    *known = Arc::new(entry.clone());
                }
            }
            QueueEvent::Removed { id } => self.entries.retain(|entry| entry.id != *id),
            QueueEvent::Ordered { ids } => {
                let place = |entry: &Arc<QueuedInput>| ids.iter().position(|id| *id == entry.id).unwrap_or(ids.len());
                self.entries.sort_by_key(place);
            }
            QueueEvent::Paused => self.is_paused = true,
            QueueEvent::Resumed => self.is_paused = false,
            QueueEvent::All { entries, is_paused } => {
                self.entries = entries.iter().cloned().map(Arc::new).collect();
                self.is_paused = *is_paused;
            }
        }
        self.is_paused &= !self.entries.is_empty();
    }

    /// Notes that a message was accepted: the entry with its key has started, even if the program ended before it could
    /// record that.
    pub(crate) fn said(&mut self, key: &str) {
        self.entries.retain(|entry| entry.client_id != key);
        self.is_paused &= !self.entries.is_empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str) -> QueuedInput {
        QueuedInput { id: id.into(), client_id: format!("c{id}"), input: vec![UserInput::text(id)] }
    }

    fn ids(queue: &QueueState) -> String {
        queue.entries.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn changes_are_folded_in_order() {
        let mut queue = QueueState::default();
        for id in ["1", "2", "3"] {
            queue.apply(&QueueEvent::Added { entry: entry(id) });
        }
        queue.apply(&QueueEvent::Ordered { ids: vec!["3".into(), "1".into()] });
        assert_eq!(ids(&queue), "3 1 2", "an entry that is not named goes last");
        let changed = QueuedInput { input: vec![UserInput::text("new")], ..entry("1") };
        queue.apply(&QueueEvent::Updated { entry: changed.clone() });
        assert_eq!(queue.entry("1").map(|entry| &**entry), Some(&changed));
        queue.apply(&QueueEvent::Paused);
        assert!(!queue.is_due());
        queue.said("c3");
        queue.apply(&QueueEvent::Removed { id: "3".into() });
        assert_eq!(ids(&queue), "1 2", "a message that was accepted is not accepted again");
        queue.apply(&QueueEvent::All { entries: vec![entry("9")], is_paused: true });
        queue.said("c9");
        assert!(!queue.is_paused, "an empty queue waits for nobody");
    }

    #[test]
    fn a_change_has_one_form_in_files() {
        let added = QueueEvent::Added { entry: entry("1") };
        let line = serde_json::to_value(&added).unwrap();
        assert_eq!((&line["type"], &line["entry"]["client_id"]), (&"queue_added".into(), &"c1".into()));
        assert_eq!(serde_json::from_value::<QueueEvent>(line).unwrap(), added);
    }
}
