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
    /// Reads the state of a thread that began so.
    #[must_use]
    pub fn new(meta: SessionMeta, interrupted: Interrupted) -> Self {
        Self::of(ThreadState::new(meta, interrupted), Wanted::STATE)
    }

    /// Reads the state of a thread of which these lines are the newest that tell of settings and tokens, wherever they
    /// are. There are many such lines, and only the last of them counts.
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
        // Where interrupted answers are forgotten, it matters when the model was asked.
        let known = match interrupted {
            Interrupted::Kept => Wanted::TOKENS | Wanted::SETTINGS,
            Interrupted::Forgotten => Wanted::TOKENS,
        };
        Self::of(reader.finish(), Wanted::STATE.without(known))
    }

    fn of(state: ThreadState, wanted: Wanted) -> Self {
        Self { decoder: Decoder::new(wanted), state, events: Vec::new() }
    }

    /// Takes the next line.
    pub fn line(&mut self, line: &Line<'_>) {
        self.decoder.line(line, &mut self.events);
        self.apply();
    }

    /// The state that the lines give.
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
