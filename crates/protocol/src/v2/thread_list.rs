//! Lists of threads.

use std::collections::BTreeMap;
use std::path::PathBuf;

use codex_wire::forms::nullable;
use serde::{Deserialize, Serialize};

use super::read_state::ThreadReadState;
use super::thread::Thread;
use super::turn_list::SortDirection;

/// `thread/list`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ThreadListParams {
    /// The cursor of the page to list.
    pub cursor: Option<String>,
    /// The maximum number of entries.
    pub limit: Option<u32>,
    /// The providers of the listed threads; `[]` means all, absent means the configured one.
    pub model_providers: Option<Vec<String>>,
    /// Whether archived ones are wanted, and not the others.
    pub archived: Option<bool>,
    /// Only threads of these folders.
    pub cwd: Option<OneOrMany>,
    /// Only threads that contain this text.
    pub search_term: Option<String>,
    /// Only threads of this section, or with `null` those in no section.
    #[serde(deserialize_with = "nullable")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub section_id: Option<Option<String>>,
    pub sort_key: Option<ThreadSortKey>,
    /// The direction; newest first if unset, and a section from its top.
    pub sort_direction: Option<SortDirection>,
    /// Only threads of these kinds of programs.
    pub source_kinds: Option<Vec<String>>,
}

/// A text or several.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(PathBuf),
    /// Several.
    Many(Vec<PathBuf>),
}

/// The sort key of a list of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ThreadSortKey {
    /// The start time.
    #[serde(alias = "createdAt")]
    CreatedAt,
    /// The time of the latest change.
    #[serde(alias = "updatedAt")]
    UpdatedAt,
    /// Their order in the section.
    #[serde(alias = "sectionPosition")]
    SectionPosition,
    /// The time of the latest change.
    #[serde(alias = "recencyAt", other)]
    RecencyAt,
}

/// The response of `thread/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadListResponse {
    /// The threads, newest first.
    pub data: Vec<Thread>,
    /// The cursor of the page to list.
    pub next_cursor: Option<String>,
    /// The point to return to.
    pub backwards_cursor: Option<String>,
    /// The read state of each thread, except for subagent threads.
    pub read_states: BTreeMap<String, ThreadReadState>,
}
