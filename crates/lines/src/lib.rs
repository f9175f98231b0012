//! Messages as lines: bounded reading, and a bounded queue of everything that one side of a connection sends; and
//! bounded buffers for output without lines.
//!
//! Invariant: memory is bounded in both directions, and nothing here knows the contents of a message.

mod captured;
mod outbox;
mod reader;

pub use captured::{BoundedBuffer, Captured};
pub use outbox::{Outbox, Room, Writer, add_line, encoded};
pub use reader::{Line, LineReader, MAX_LINE_BYTES};
