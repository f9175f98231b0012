//! Threads on disk: the store that keeps them as files, [`FileStore`].
//!
//! A thread is its rollout: a file of JSON lines that is only ever appended to. An index of all of them is kept next to
//! them and can be rebuilt at any time. The prompt history is another file of lines, shared by all threads.
//!
//! Invariant: this crate knows lines and files, never the agent's behaviour; it has no async code, and no cache except
//! the index and the paths of threads.

mod claim;
mod drafts;
mod errors;
mod export;
mod file_part;
mod file_store;
mod handover;
mod holder;
mod index;
mod line_buffer;
pub mod locate;
mod open_files;
mod partial_file;
mod prompt_file;
mod rollout;
mod rollout_file;
mod thread_metadata;
mod threads;

pub use drafts::{Drafts, Scratch};
pub use export::{BundleReader, BundleThread, BundleWriter, ExportError, ImportError, NewIds, export_bundle};
pub use file_store::FileStore;
pub use holder::Holder;
pub use index::{IndexError, Members, StoredThreadError, TextReader, ThreadIndex};
pub use prompt_file::{PromptFile, PromptHistoryError};
pub use rollout::{
    Base, FIRST_LINE, ForkError, HistoryReader, Mark, MarkedLine, MarkedLines, MetaReader, ReadError, RolloutLines,
    count_turns, ends_with_answer, find_base, fork, fork_end, history_after_answer, read_history,
};
pub use rollout_file::{RolloutError, RolloutFile};
pub use thread_metadata::{Document, Documents, MetadataError, MetadataFolder, Sections, StoredMetadata};
pub use threads::{PlaceError, SummaryReader, ThreadFile, check_path};
