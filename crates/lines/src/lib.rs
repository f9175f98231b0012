//! Messages as lines: bounded reading, and a bounded queue of everything that one side of a connection sends.
//!
//! Invariant: memory is bounded in both directions, and nothing here knows the contents of a message.

mod outbox;
mod reader;

pub use outbox::{Outbox, Room, Writer, add_line, encoded};
pub use reader::{Line, LineReader, MAX_LINE_BYTES};
