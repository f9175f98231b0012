//! Threads on disk.
//!
//! A thread is its rollout: a file of JSON lines that is only ever appended to. The prompt history is one more such
//! file, shared by all threads.
//!
//! Invariant: this crate knows lines and files, never what an agent does; it has no async code and no caches.

mod prompt_history;
mod rollout_file;

pub use prompt_history::PromptHistory;
pub use rollout_file::{RolloutError, RolloutFile};
