//! Sections that the user sorts threads into: `threadSection/*` and `thread/section/move`.

use codex_wire::forms::nullable;
use serde::{Deserialize, Serialize};

/// A section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadSection {
    /// Its id, which never changes.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Its appearance.
    pub appearance: Option<ThreadSectionAppearance>,
}

/// The appearance of a section.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadSectionAppearance {
    /// Its colour, a string chosen by the client.
    #[serde(default)]
    pub color: Option<String>,
    /// Its icon, a string chosen by the client.
    #[serde(default)]
    pub icon: Option<String>,
}

/// The response of `threadSection/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadSectionListResponse {
    /// The sections, oldest first.
    pub data: Vec<ThreadSection>,
    /// The cursor of the page to list.
    pub next_cursor: Option<String>,
}

/// `threadSection/create`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadSectionCreateParams {
    /// Its name for people.
    pub name: String,
    /// Its appearance.
    #[serde(default)]
    pub appearance: Option<ThreadSectionAppearance>,
}

/// `threadSection/update`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadSectionUpdateParams {
    pub section_id: String,
    /// Its new name for people.
    pub name: String,
    /// Its new appearance: a missing member is unchanged, and `null` removes it.
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<ThreadSectionAppearance>"))]
    pub appearance: Option<Option<ThreadSectionAppearance>>,
}

/// The response of `threadSection/create` and `threadSection/update`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadSectionResponse {
    /// The section.
    pub section: ThreadSection,
}

/// `threadSection/delete`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadSectionDeleteParams {
    pub section_id: String,
}

/// `thread/section/move`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("required" = ["threadId", "sectionId"])))]
#[serde(rename_all = "camelCase")]
pub struct ThreadSectionMoveParams {
    /// The thread.
    pub thread_id: String,
    /// The new section; `null` removes it from its section. Required.
    #[serde(deserialize_with = "Option::deserialize")]
    pub section_id: Option<String>,
    /// The thread of that section before which it is inserted; at the end if unset.
    #[serde(default)]
    pub before_thread_id: Option<String>,
}
