//! Partial items that a crashed program left behind.

use codex_wire::ids::ThreadId;

use super::Draft;
use super::lines::DraftLine;
use crate::decode::{Decoder, Wanted};
use crate::line::Line;
use crate::{Body, Event, Seq, TurnId};

/// The items of draft lines whose end the log does not contain.
#[derive(Debug)]
pub struct Partial {
    drafts: Vec<Draft>,
    decoder: Decoder,
    events: Vec<Event>,
}

impl Partial {
    /// Decodes lines, up to the first one that is truncated or invalid.
    #[must_use]
    pub fn read(lines: &[u8]) -> Self {
        let mut drafts: Vec<Draft> = Vec::new();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let whole = line.strip_suffix(b"\n").and_then(|line| serde_json::from_slice(line).ok());
            match whole {
                Some(DraftLine::Begun { turn, position, item }) => {
                    let Some(item) = item.item() else { break };
                    drafts.retain(|draft| draft.item.id() != item.id());
                    drafts.push(Draft::new(item, Some(TurnId::new(turn)), position));
                }
                Some(DraftLine::Run { item, kind, index, text }) => {
                    let draft = drafts.iter_mut().rfind(|draft| draft.item.id().as_str() == item);
                    let Some(draft) = draft else { break };
                    draft.add(kind, index, text.as_bytes());
                }
                Some(DraftLine::Closed { closed }) => drafts.retain(|draft| draft.item.id().as_str() != closed),
                None => break,
            }
        }
        drafts.retain(|draft| draft.bytes > 0);
        let decoder = Decoder::new(Wanted::TURNS | Wanted::SHOWN | Wanted::CALLS);
        Self { drafts, decoder, events: Vec::new() }
    }

    /// The length of the log when the first of them started; `None` if there are none. Their ends are in later lines.
    #[must_use]
    pub fn position(&self) -> Option<u64> {
        self.drafts.iter().map(|draft| draft.position).min()
    }

    /// Processes the next line of the log.
    pub fn take(&mut self, line: &Line<'_>) {
        self.decoder.line(line, &mut self.events);
        self.settle();
    }

    /// The items of the turn that is still open after the last line, unless a line ends them, as events of that turn.
    #[must_use]
    pub fn broken_off(mut self, thread: ThreadId, at_ms: i64) -> Vec<Event> {
        self.decoder.end(&mut self.events);
        self.settle();
        let event = |draft: Draft| {
            let body = Body::ItemInterrupted(draft.item.broken_off(&draft.runs));
            Event { thread, seq: Seq::default(), at_ms, turn: draft.turn, body }
        };
        self.drafts.into_iter().map(event).collect()
    }

    fn settle(&mut self) {
        for event in self.events.drain(..) {
            let is_over = |draft: &Draft| match &event.body {
                Body::TurnStarted { .. } | Body::TurnEnded(_) => true,
                Body::ItemCompleted(item) | Body::ItemInterrupted(item) => item.id() == draft.item.id(),
                _ => false,
            };
            self.drafts.retain(|draft| event.seq.position() <= draft.position || !is_over(draft));
        }
    }
}
