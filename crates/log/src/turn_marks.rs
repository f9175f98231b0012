//! The starts of the turns of a rollout.

use crate::line::{EventHead, ItemHead, Line};

/// Finds the starts of turns among the lines of a rollout.
///
/// A turn starts with the line that records its start. In files without such lines, it starts with the first of the
/// lines that lead to it: the environment context, and the message itself. The event of the message shows that it was a
/// turn.
#[derive(Debug, Default)]
pub struct TurnMarks {
    /// The turns that were not rolled back.
    turns: Vec<TurnMark>,
    /// The first of the lines that may lead to a turn.
    lead: Option<u64>,
    /// Whether a turn with a recorded start is running.
    runs: bool,
}

/// A turn.
#[derive(Debug)]
struct TurnMark {
    /// The offset of its first line.
    start: u64,
    /// Its name, where the file gives it.
    id: Option<String>,
    /// Whether it has input of the user.
    is_said: bool,
}

impl TurnMarks {
    /// Takes note of a line.
    pub fn see(&mut self, line: &Line<'_>) {
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
            let lead = self.lead.take().unwrap_or(line.range.start);
            if !self.runs {
                self.begin(lead, &event);
            }
            if let Some(turn) = self.turns.last_mut() {
                turn.is_said = true;
            }
            return;
        }
        match &*event.kind {
            "task_started" | "turn_started" => {
                self.begin(line.range.start, &event);
                self.runs = true;
            }
            "task_complete" | "turn_complete" | "turn_aborted" => self.runs = false,
            "thread_rolled_back" => self.take_back(&event),
            _ => {}
        }
    }

    fn begin(&mut self, start: u64, event: &EventHead<'_>) {
        let id = event.turn_id.as_ref().map(|id| id.0.clone().into_owned());
        self.turns.push(TurnMark { start, id, is_said: false });
        self.lead = None;
    }

    /// Removes the last turns: from the one that is named, or this many with input of the user.
    fn take_back(&mut self, event: &EventHead<'_>) {
        let is_named =
            |turn: &TurnMark| turn.id.is_some() && turn.id.as_deref() == event.turn_id.as_ref().map(|id| &*id.0);
        let named = self.turns.iter().rposition(is_named);
        let said = self.turns.iter().enumerate().rev().filter(|(_, turn)| turn.is_said).map(|(place, _)| place);
        let counted = match event.turns_taken_back() {
            0 => self.turns.len(),
            turns => said.take(turns).last().unwrap_or(self.turns.len()),
        };
        self.turns.truncate(named.unwrap_or(counted));
        (self.lead, self.runs) = (None, false);
    }

    /// The offset of each turn.
    pub fn starts(&self) -> impl Iterator<Item = u64> {
        self.turns.iter().map(|turn| turn.start)
    }
}
