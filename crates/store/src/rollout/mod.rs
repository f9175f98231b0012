//! Rollouts: the files of threads.

mod answered;
mod backward;
mod base;
mod fork;
mod lines;
mod lost_meta;
mod read_history;

/// The type of the line that identifies a thread.
pub const FIRST_LINE: &str = "session_meta";

pub use answered::{ends_with_answer, history_after_answer};
pub use base::{Base, Mark, MarkedLine, MarkedLines, find_base};
pub use fork::{ForkError, fork, fork_end};
pub use lines::{ReadError, RolloutLines};
pub use read_history::{HistoryReader, MetaReader, count_turns, read_history};

pub(crate) use backward::last_line;

pub(crate) use lines::{LONGEST_LINE, ends_line, is_line};
pub(crate) use lost_meta::LostMeta;
pub(crate) use read_history::read_meta;
