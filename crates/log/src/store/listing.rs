//! Queries about many threads, and their results.

use std::path::PathBuf;

use super::summary::{SourceKind, ThreadSummary};

/// The filter and order of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Archived threads instead of active ones.
    pub archived: bool,
    /// Only those of these providers; all if empty.
    pub providers: Vec<String>,
    /// The provider of threads that record none.
    pub default_provider: Option<String>,
    /// Only those in one of these folders; all if empty.
    pub cwds: Vec<PathBuf>,
    /// Only those of these sources; all if empty.
    pub sources: Vec<SourceKind>,
    /// Only those with this text in their name or first message.
    pub text: Option<String>,
    /// Only those in a section, or in none.
    pub section: SectionFilter,
    /// Also threads without input.
    pub silent: bool,
    pub sort: SortKey,
    /// The oldest first instead of the newest.
    pub ascending: bool,
    /// The end of the previous page.
    pub cursor: Option<String>,
    /// The maximum number of threads of a page.
    pub limit: usize,
}

/// The sort key of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SortKey {
    /// Time of creation.
    #[default]
    Created,
    /// Time of the last write.
    Updated,
    /// The order that the user chose within a section. A list that is not of one section is empty.
    Place,
}

/// A page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    pub threads: Vec<ThreadSummary>,
    /// The cursor of the next page; `None` on the last.
    pub next_cursor: Option<String>,
    /// The cursor of a list in the other direction, starting with the first entry of this page; `None` if the page is
    /// empty.
    pub backwards_cursor: Option<String>,
}

/// A filter by section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SectionFilter {
    /// All.
    #[default]
    Any,
    /// Those in no section.
    Outside,
    /// Those in this section.
    In(String),
}

/// The words, filter and order of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchQuery {
    /// The words, all of which a thread has to contain; the last one may be the beginning of one.
    pub words: String,
    /// Only archived threads, or only active ones; `None` for both.
    pub archived: Option<bool>,
    /// Only those of these sources; all if empty.
    pub sources: Vec<SourceKind>,
    pub order: SearchOrder,
    /// The maximum number of threads.
    pub limit: usize,
}

/// The order of the threads that a search finds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SearchOrder {
    /// The best matches first.
    #[default]
    Best,
    /// By time of creation.
    Created { ascending: bool },
    /// By time of the last write.
    Updated { ascending: bool },
}

/// The results of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchResults {
    /// The threads, in the order of the query.
    pub hits: Vec<SearchHit>,
    /// Whether all threads were indexed. If not, a later search may find more.
    pub complete: bool,
}

/// A thread that a search has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    pub thread: ThreadSummary,
    /// An excerpt around the match.
    pub snippet: String,
}
