//! The interface of thread stores.
//!
//! A thread is identified by its id. Its path is only for display.

mod error;
#[cfg(feature = "testing")]
pub mod laws;
mod listing;
mod log_writer;
mod metadata;
mod summary;
mod thread_store;

pub use error::{StoreError, StoreErrorKind};
pub use listing::{ListQuery, Page, SearchHit, SearchOrder, SearchQuery, SearchResults, SectionFilter, SortKey};
pub use log_writer::{Commit, LineError, LogWriter, Payload, Pending, UnsavedWriter, write_line, write_numbered_line};
pub use metadata::{Appearance, Attachment, InSection, ReadMark, RepositoryChange, Section};
pub use summary::{SourceKind, ThreadSummary};
pub use thread_store::{
    Entry, Imported, LineSource, Located, Opened, PromptHistory, PromptHistoryState, ReadFrom, ThreadMetadata,
    ThreadStore, store_place,
};
