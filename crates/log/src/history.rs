//! The stored data of a thread that is resumed.

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
}
