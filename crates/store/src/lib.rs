//! Threads on disk.
//!
//! A thread is its rollout: a file of JSON lines that is only ever appended to. An index of all of them is kept beside
//! them and can be made again from them at any time. The prompt history is one more file of lines, shared by all
//! threads.
//!
//! Invariant: this crate knows lines and files, never what an agent does; it has no async code, and no cache but the
//! index.

mod claim;
mod export;
mod holder;
mod index;
mod line_buffer;
mod notes;
mod open_files;
mod prompt_history;
mod rollout;
mod rollout_file;
mod threads;

pub use export::{ExportError, ImportError, Imported, MarkdownReader, export_bundle, export_markdown};
pub use holder::Holder;
pub use index::{IndexError, ShelfError, ThreadIndex};
pub use notes::{NoteError, Notes};
pub use prompt_history::{PromptHistory, PromptHistoryError, PromptHistoryState};
pub use rollout::{Entry, ForkError, ReadError, RolloutLines, count_turns, fork, history_after_answer, read_history};
pub use rollout_file::{RolloutError, RolloutFile};
pub use threads::{PlaceError, ThreadFile, check_path};
