//! The data of a thread that is resumed or copied.

use codex_wire::ids::ThreadId;

use crate::line::BadLine;
use crate::state::ThreadState;

/// The data for resuming a thread.
#[derive(Debug)]
pub struct History {
    pub state: ThreadState,
    /// Lines that were skipped, at most the first hundred.
    pub bad_lines: Vec<BadLine>,
}

/// The part of a thread that is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkPoint {
    /// All of it.
    End,
    /// This many turns from the start.
    Turns(usize),
    /// Everything before the end of a line, see [`LogWriter::position`](crate::store::LogWriter::position).
    Position(u64),
}

/// The history of a loaded thread for a copy of it. Both share the items of the conversation.
#[derive(Debug, Clone)]
pub struct SharedHistory {
    pub state: ThreadState,
    /// The end of its last line.
    pub position: u64,
    /// The thread whose requests to the model begin like those of this one.
    pub cache_key: ThreadId,
}
