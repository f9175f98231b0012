//! Threads on disk.
//!
//! A thread is its rollout: a file of JSON lines that is only ever appended to. An index of all of them is kept beside
//! them and can be made again from them at any time. The prompt history is one more file of lines, shared by all
//! threads; custom prompts are files of the user.
//!
//! Invariant: this crate knows lines and files, never what an agent does; it has no async code, and no cache but the
//! index.

mod claim;
mod custom_prompts;
mod export;
mod front_matter;
mod holder;
mod index;
mod line_buffer;
mod notes;
mod open_files;
mod prompt_history;
mod rollout;
mod rollout_file;
mod skills;
mod threads;

pub use custom_prompts::custom_prompts;
pub use export::{ExportError, ImportError, Imported, export_bundle, export_markdown, markdown};
pub use holder::Holder;
pub use index::{
    IndexError, ListQuery, Page, SearchHit, SearchResults, SectionFilter, ShelfError, SortKey, SourceKind, ThreadIndex,
};
pub use notes::{Appearance, Attachment, InSection, NoteError, Notes, ReadMark, RepositoryChange, Section};
pub use prompt_history::{PromptHistory, PromptHistoryError, PromptHistoryState};
pub use rollout::{
    BadLine, Beginning, Entry, Fault, ForkError, ForkPoint, History, Line, OpenCall, ReadError, RolloutLines, Said,
    TurnBegin, count_turns, fork,
};
pub use rollout_file::{RolloutError, RolloutFile};
pub use skills::{MOST_SKILL_BYTES, Skills, find_skills};
pub use threads::{PlaceError, ThreadFile, ThreadSummary, check_path};
