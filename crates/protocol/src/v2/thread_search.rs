//! `thread/search` and `thread/searchOccurrences`: words in the messages and commands of threads.

use serde::{Deserialize, Serialize};

use super::thread::Thread;
use super::turn_list::SortDirection;

/// `thread/search`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadSearchParams {
    /// The words; the last one may be the beginning of one.
    pub search_term: String,
    /// Whether archived threads are wanted, and not the others.
    #[serde(default)]
    pub archived: Option<bool>,
    /// The cursor of the page to list.
    #[serde(default)]
    pub cursor: Option<String>,
    /// The maximum number of entries.
    #[serde(default)]
    pub limit: Option<u32>,
    /// The order of the list; the best matches first if unset.
    #[serde(default)]
    pub sort_key: Option<ThreadSearchSortKey>,
    /// Newest first if unset.
    #[serde(default)]
    pub sort_direction: Option<SortDirection>,
    /// The kinds of programs that started the threads; those that a person would resume if unset.
    #[serde(default)]
    pub source_kinds: Option<Vec<String>>,
}

/// The order of the threads that were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ThreadSearchSortKey {
    CreatedAt,
    UpdatedAt,
    RecencyAt,
}

/// The response of `thread/search`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadSearchResponse {
    /// The threads.
    pub data: Vec<ThreadSearchResult>,
    /// The cursor of the next page; absent on the last.
    pub next_cursor: Option<String>,
    /// The cursor of this page.
    pub backwards_cursor: Option<String>,
}

/// A thread that was found.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadSearchResult {
    /// The thread.
    pub thread: Thread,
    /// The text around the match.
    pub snippet: String,
}

/// `thread/searchOccurrences`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadSearchOccurrencesParams {
    /// The thread.
    pub thread_id: String,
    /// The text, in any case.
    pub search_term: String,
    /// The cursor of the page to list.
    #[serde(default)]
    pub cursor: Option<String>,
    /// The maximum number of entries.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// The response of `thread/searchOccurrences`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadSearchOccurrencesResponse {
    /// The places, oldest first.
    pub data: Vec<ThreadSearchOccurrence>,
    /// The cursor of the next page; absent on the last.
    pub next_cursor: Option<String>,
}

/// A place in a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadSearchOccurrence {
    /// The turn.
    pub turn_id: String,
    /// The cursor of a page of turns that begins with it.
    pub turn_cursor: String,
    /// The item.
    pub item_id: String,
    /// The text around the match.
    pub snippet: String,
    /// The match in the snippet.
    pub snippet_match_range: ThreadSearchTextRange,
}

/// A part of a text, in UTF-16 units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadSearchTextRange {
    pub start: u32,
    pub end: u32,
}
