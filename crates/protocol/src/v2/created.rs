//! `item/created` and `item/delta`: the items of a turn for clients of this dialect.
//!
//! No release has sent these; clients were written from a description of them. An item is created with its first delta,
//! or complete if it has no deltas.

use std::borrow::Cow;

use codex_wire::text::Text;
use serde::{Deserialize, Serialize};

use super::notification::TurnPlanStep;

/// `item/created`: an item, with its content so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ItemCreated {
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
    /// The item.
    pub item: CreatedItem,
}

/// An item of the dialect. Commands, patches and searches are events of the queue.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CreatedItem {
    /// A message of the model.
    Assistant {
        /// Its name.
        id: String,
        /// The text.
        #[serde(flatten)]
        text: CreatedText,
    },
    /// Reasoning of the model.
    Reasoning {
        /// Its name.
        id: String,
        /// Always `reasoning`, for clients that distinguish items by it.
        purpose: Cow<'static, str>,
        /// The text.
        #[serde(flatten)]
        text: CreatedText,
    },
    /// The plan of the model, complete each time it changes.
    Plan {
        /// Its name.
        id: String,
        /// The reason for the change.
        explanation: Option<String>,
        /// Its steps.
        plan: Vec<TurnPlanStep>,
    },
    /// A picture the model looks at.
    Image {
        /// Its name.
        id: String,
        /// The file.
        path: std::path::PathBuf,
    },
}

/// The text of an item.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CreatedText {
    /// A piece of it.
    #[serde(rename = "textDelta")]
    Piece(Text),
    /// All of it.
    #[serde(rename = "text")]
    Whole(Text),
}

/// `item/delta`: more content of a created item.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CreatedItemDelta {
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
    /// The item.
    pub item_id: String,
    pub delta: Text,
    /// The same content as a part of the item, for clients that expect it there.
    pub item: CreatedItem,
}
