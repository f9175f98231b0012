//! Rollouts: the files that threads are.

mod answered;
mod backward;
mod base;
mod fork;
mod history;
mod lines;
mod lost_meta;

pub use codex_log::line::{BadLine, Fault, Line};
pub use fork::{ForkError, ForkPoint, fork};
pub use history::{Beginning, History, OpenCall, Said, TurnBegin, count_turns};
pub use lines::{Entry, ReadError, RolloutLines};

pub(crate) use backward::last_line;
pub(crate) use codex_log::line::ItemHead;
pub(crate) use lines::{LONGEST_LINE, is_line};
pub(crate) use lost_meta::LostMeta;
