//! Where the turns of a rollout begin.

use super::line::{ItemHead, Line};

/// Watches the lines of a rollout go by and notes where the turns of the user begin.
///
/// A turn begins with the first of the lines that lead to it: the word that a turn started, what the program tells the
/// model about the surroundings, and the message itself. The event that tells the message says that it was a turn.
#[derive(Debug, Default)]
pub(crate) struct TurnMarks {
    /// Where each turn that was not taken back begins.
    starts: Vec<u64>,
    /// Where the lines begin that may lead to a turn.
    lead: Option<u64>,
}

impl TurnMarks {
    /// Takes note of a line.
    pub(crate) fn see(&mut self, line: &Line<'_>) {
        match &*line.kind {
            "response_item" => {
                let leads = ItemHead::of(line.payload)
                    .is_some_and(|item| item.is_message_of("user") || item.is_message_of("developer"));
                if leads {
                    self.lead.get_or_insert(line.range.start);
                } else {
                    self.lead = None;
                }
            }
            "event_msg" => self.see_event(line),
            _ => {}
        }
    }

    fn see_event(&mut self, line: &Line<'_>) {
        let Some(event) = line.event() else { return };
        if event.is_user_message() {
            self.starts.push(self.lead.take().unwrap_or(line.range.start));
        } else if matches!(&*event.kind, "task_started" | "turn_started") {
            self.lead = Some(line.range.start);
        } else if event.kind == "thread_rolled_back" {
            self.starts.truncate(self.starts.len().saturating_sub(event.turns_taken_back()));
            self.lead = None;
        }
    }

    /// Where each turn begins.
    pub(crate) fn starts(&self) -> &[u64] {
        &self.starts
    }
}
