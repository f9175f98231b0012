//! What those who keep threads are asked, and what they answer.

mod listing;
mod metadata;
mod summary;

pub use listing::{ListQuery, Page, SearchHit, SearchResults, SectionFilter, SortKey};
pub use metadata::{Appearance, Attachment, InSection, ReadMark, RepositoryChange, Section};
pub use summary::{SourceKind, ThreadSummary};
