//! Turns and items of a thread, page by page.

use codex_wire::collaboration::CollaborationMode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::item::TimedItem;
use super::turn::{ItemsView, Turn};

/// In which order a page goes through what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum SortDirection {
    /// Oldest first.
    Asc,
    /// Newest first.
    Desc,
}

/// `thread/turns/list`.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadTurnsListParams {
    /// The thread.
    pub thread_id: String,
    /// Where the last page ended.
    #[serde(default)]
    pub cursor: Option<String>,
    /// Which turns.
    #[serde(flatten)]
    pub page: InitialTurnsPageParams,
}

/// What `thread/turns/list` answers.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadTurnsListResponse {
    /// The turns.
    pub data: Vec<Turn>,
    /// Where the next page begins; none after the last.
    pub next_cursor: Option<String>,
    /// Where a page in the other direction begins, the first turn of this one included.
    pub backwards_cursor: Option<String>,
}

/// Which turns are wanted, in `thread/turns/list` and with the answer to `thread/resume`.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InitialTurnsPageParams {
    /// How much of each turn's items is wanted; a summary if unset.
    #[serde(default)]
    pub items_view: Option<ItemsView>,
    /// How many turns at most.
    #[serde(default)]
    pub limit: Option<u32>,
    /// Newest first if unset.
    #[serde(default)]
    pub sort_direction: Option<SortDirection>,
}

/// What the answer to `thread/resume` has besides.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResumedParts {
    /// How the user and the agent work together.
    pub collaboration_mode: CollaborationMode,
    /// The turns that the client wants at once.
    pub initial_turns_page: Option<ThreadTurnsListResponse>,
    /// Where a page of turns begins that goes back from the last.
    pub turns_backwards_cursor: Option<String>,
    /// Where a page of items begins that goes back from the last.
    pub items_backwards_cursor: Option<String>,
}

/// `thread/items/list`.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadItemsListParams {
    /// The thread.
    pub thread_id: String,
    /// Items of this turn only.
    #[serde(default)]
    pub turn_id: Option<String>,
    /// Where the last page ended.
    #[serde(default)]
    pub cursor: Option<ThreadItemsListCursor>,
    /// How many items at most.
    #[serde(default)]
    pub limit: Option<u32>,
    /// Oldest first if unset.
    #[serde(default)]
    pub sort_direction: Option<SortDirection>,
}

/// Where a page of items begins.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ThreadItemsListCursor {
    /// Where the last page ended.
    Cursor(String),
    /// Beside an item of the turn that is named.
    Anchor(ThreadItemsListAnchor),
}

/// An item beside which a page begins.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ThreadItemsListAnchor {
    /// An item.
    Item {
        /// Which one.
        item_id: String,
    },
}

/// What `thread/items/list` answers.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadItemsListResponse {
    /// The items.
    pub data: Vec<ThreadItemEntry>,
    /// Where the next page begins; none after the last.
    pub next_cursor: Option<String>,
    /// Where a page in the other direction begins, the first item of this one included.
    pub backwards_cursor: Option<String>,
}

/// An item and its turn.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadItemEntry {
    /// The turn it belongs to.
    pub turn_id: String,
    /// The item.
    pub item: TimedItem,
    /// When it began.
    pub started_at_ms: Option<i64>,
    /// When it ended.
    pub completed_at_ms: Option<i64>,
}

/// `thread/inject_items`.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadInjectItemsParams {
    /// The thread.
    pub thread_id: String,
    /// What the model finds in the conversation from here on, as it would go into a request.
    pub items: Vec<Value>,
}
