//! The state of a thread from its lines.

use codex_wire::rollout::SessionMeta;

use super::{Interrupted, ThreadState};
use crate::Event;
use crate::decode::{Decoder, Wanted};
use crate::line::Line;

/// Reads the state of a thread from its lines.
#[derive(Debug)]
pub struct StateReader {
    decoder: Decoder,
    state: ThreadState,
    /// Decoded events that are not folded yet.
    events: Vec<Event>,
}

impl StateReader {
    /// Creates a reader for a thread with this start.
    #[must_use]
    pub fn new(meta: SessionMeta, interrupted: Interrupted) -> Self {
        Self::of(ThreadState::new(meta, interrupted), Wanted::STATE)
    }

    /// Creates a reader that starts with these lines, the latest ones with settings and token counts. There are many
    /// such lines, and only the last of each counts.
    #[must_use]
    pub fn knowing<'a>(
        meta: SessionMeta,
        interrupted: Interrupted,
        newest: impl IntoIterator<Item = &'a Line<'a>>,
    ) -> Self {
        let mut reader = Self::new(meta, interrupted);
        for line in newest {
            reader.line(line);
        }
        // If interrupted answers are removed, the position where the model was asked matters.
        let known = match interrupted {
            Interrupted::Kept => Wanted::TOKENS | Wanted::SETTINGS,
            Interrupted::Forgotten => Wanted::TOKENS,
        };
        Self::of(reader.finish(), Wanted::STATE.without(known))
    }

    fn of(state: ThreadState, wanted: Wanted) -> Self {
        Self { decoder: Decoder::new(wanted), state, events: Vec::new() }
    }

    /// Processes the next line.
    pub fn line(&mut self, line: &Line<'_>) {
        self.decoder.line(line, &mut self.events);
        self.apply();
    }

    /// The resulting state.
    #[must_use]
    pub fn finish(mut self) -> ThreadState {
        self.decoder.end(&mut self.events);
        self.apply();
        self.state
    }

    fn apply(&mut self) {
        for event in self.events.drain(..) {
            self.state.apply(&event);
        }
    }
}
