//! Turns and items of a thread, page by page.

use codex_wire::collaboration::CollaborationMode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::item::TimedItem;
use super::turn::{ItemsView, Turn};

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum SortDirection {
    /// Oldest first.
    Asc,
    /// Newest first.
    Desc,
}

/// `thread/turns/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadTurnsListParams {
    /// The thread.
    pub thread_id: String,
    /// The cursor of the previous page.
    #[serde(default)]
    pub cursor: Option<String>,
    #[serde(flatten)]
    pub page: InitialTurnsPageParams,
}

/// The response of `thread/turns/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadTurnsListResponse {
    /// The turns.
    pub data: Vec<Turn>,
    /// The cursor of the next page; absent on the last.
    pub next_cursor: Option<String>,
    /// The cursor of a page in the other direction, which includes the first turn of this one.
    pub backwards_cursor: Option<String>,
}

/// The turns to list, in `thread/turns/list` and in the response to `thread/resume`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InitialTurnsPageParams {
    /// The requested part of each turn's items; a summary if unset.
    #[serde(default)]
    pub items_view: Option<ItemsView>,
    /// The maximum number of turns.
    #[serde(default)]
    pub limit: Option<u32>,
    /// Newest first if unset.
    #[serde(default)]
    pub sort_direction: Option<SortDirection>,
}

/// Additional members of the response to `thread/resume`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResumedParts {
    /// The collaboration mode.
    pub collaboration_mode: CollaborationMode,
    /// The turns that the client wants at once.
    pub initial_turns_page: Option<ThreadTurnsListResponse>,
    /// The cursor of a page of turns in reverse order.
    pub turns_backwards_cursor: Option<String>,
    /// The cursor of a page of items in reverse order.
    pub items_backwards_cursor: Option<String>,
}

/// `thread/items/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadItemsListParams {
    /// The thread.
    pub thread_id: String,
    /// Items of this turn only.
    #[serde(default)]
    pub turn_id: Option<String>,
    /// The cursor of the previous page.
    #[serde(default)]
    pub cursor: Option<ThreadItemsListCursor>,
    /// The maximum number of items.
    #[serde(default)]
    pub limit: Option<u32>,
    /// Oldest first if unset.
    #[serde(default)]
    pub sort_direction: Option<SortDirection>,
}

/// The cursor of a page of items.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ThreadItemsListCursor {
    /// The cursor of the previous page.
    Cursor(String),
    /// An item with the turn that it belongs to.
    Anchor(ThreadItemsListAnchor),
}

/// The item next to the start of a page.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ThreadItemsListAnchor {
    /// An item.
    Item { item_id: String },
}

/// The response of `thread/items/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadItemsListResponse {
    /// The items.
    pub data: Vec<ThreadItemEntry>,
    /// The cursor of the next page; absent on the last.
    pub next_cursor: Option<String>,
    /// The cursor of a page in the other direction, which includes the first item of this one.
    pub backwards_cursor: Option<String>,
}

/// An item and its turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadItemEntry {
    /// The turn it belongs to.
    pub turn_id: String,
    /// The item.
    pub item: TimedItem,
    /// The start time.
    pub started_at_ms: Option<i64>,
    pub completed_at_ms: Option<i64>,
}

/// `thread/inject_items`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadInjectItemsParams {
    /// The thread.
    pub thread_id: String,
    /// Items to add to the conversation, in the form of a model request.
    pub items: Vec<Value>,
}
