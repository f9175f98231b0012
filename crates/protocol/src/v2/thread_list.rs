//! Lists of threads.

use std::collections::BTreeMap;
use std::path::PathBuf;

use codex_wire::forms::nullable;
use serde::{Deserialize, Serialize};

use super::read_state::ThreadReadState;
use super::thread::Thread;
use super::turn_list::SortDirection;

/// `thread/list`.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ThreadListParams {
    /// Where to go on.
    pub cursor: Option<String>,
    /// How many at most.
    pub limit: Option<u32>,
    /// Providers whose threads are wanted; `[]` means all, nothing means the configured one.
    pub model_providers: Option<Vec<String>>,
    /// Whether archived ones are wanted, and not the others.
    pub archived: Option<bool>,
    /// Only threads of these folders.
    pub cwd: Option<OneOrMany>,
    /// Only threads that hold this text.
    pub search_term: Option<String>,
    /// Only threads of this section, or with `null` those in none.
    #[serde(deserialize_with = "nullable")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub section_id: Option<Option<String>>,
    /// What they are sorted by.
    pub sort_key: Option<ThreadSortKey>,
    /// In which direction; newest first if unset, and a section from its top.
    pub sort_direction: Option<SortDirection>,
    /// Only threads of these kinds of programs.
    pub source_kinds: Option<Vec<String>>,
}

/// A text or several.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(PathBuf),
    /// Several.
    Many(Vec<PathBuf>),
}

/// What threads are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ThreadSortKey {
    /// When they began.
    #[serde(alias = "createdAt")]
    CreatedAt,
    /// When something happened last.
    #[serde(alias = "updatedAt")]
    UpdatedAt,
    /// Where the user has put them in their section.
    #[serde(alias = "sectionPosition")]
    SectionPosition,
    /// When something happened last.
    #[serde(alias = "recencyAt", other)]
    RecencyAt,
}

/// What `thread/list` answers.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadListResponse {
    /// The threads, newest first.
    pub data: Vec<Thread>,
    /// Where to go on.
    pub next_cursor: Option<String>,
    /// Where to go back.
    pub backwards_cursor: Option<String>,
    /// What of each thread was not read; nothing is said of threads that are read with another.
    pub read_states: BTreeMap<String, ThreadReadState>,
}
