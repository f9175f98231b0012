//! Questions about many threads, and their answers.

use std::path::PathBuf;

use super::summary::{SourceKind, ThreadSummary};

/// Which threads a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Archived threads instead of active ones.
    pub archived: bool,
    /// Only those of these providers; of all if there are none.
    pub providers: Vec<String>,
    /// The provider of threads that record none.
    pub default_provider: Option<String>,
    /// Only those that work in one of these folders; in all if there are none.
    pub cwds: Vec<PathBuf>,
    /// Only those of these sources; of all if there are none.
    pub sources: Vec<SourceKind>,
    /// Only those with this text in their name or in what was said first.
    pub text: Option<String>,
    /// Only those in a section, or in none.
    pub section: SectionFilter,
    /// Those in which nothing was said too.
    pub silent: bool,
    pub sort: SortKey,
    /// The oldest first instead of the newest.
    pub ascending: bool,
    /// Where the page before this one ended.
    pub cursor: Option<String>,
    /// How many threads a page has at most.
    pub limit: usize,
}

/// The sort key of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SortKey {
    /// When they began.
    #[default]
    Created,
    /// When they were written last.
    Updated,
    /// Where the user has put them in their section. Of a list that is not of one section nothing is shown.
    Place,
}

/// A page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The threads.
    pub threads: Vec<ThreadSummary>,
    /// Where the next page begins; none on the last.
    pub next_cursor: Option<String>,
    /// Where a list in the other direction begins, with the first entry of this page; none if there is nothing on it.
    pub backwards_cursor: Option<String>,
}

/// Which threads a list shows, by their sections.
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

/// The results of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchResults {
    /// The threads, the best first.
    pub hits: Vec<SearchHit>,
    /// Whether all threads had been read. If not, more may be found later.
    pub complete: bool,
}

/// A thread that a search has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// The thread.
    pub thread: ThreadSummary,
    /// A few words around those that were found.
    pub snippet: String,
}
