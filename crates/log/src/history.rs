//! What a store gives of a thread that goes on.

use crate::line::BadLine;
use crate::state::ThreadState;

/// What a thread needs to go on.
#[derive(Debug)]
pub struct History {
    /// What its lines come to.
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
