//! The stored data of a thread that is resumed.

use crate::line::BadLine;
use crate::state::ThreadState;

/// The data for resuming a thread.
#[derive(Debug)]
pub struct History {
    /// The folded state of its lines.
    pub state: ThreadState,
    /// Lines that were passed over, the first hundred of them.
    pub bad_lines: Vec<BadLine>,
}

/// Up to where a thread is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkPoint {
    /// All of it.
    End,
    /// The first turns, so many.
    Turns(usize),
}
