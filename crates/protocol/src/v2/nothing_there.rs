//! Things that clients of 0.166 ask for and this program has none of: apps, plugins, settings of other agents, memories. The
//! answers are those of a program where there is nothing yet, so that such a client goes on.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The answer of `app/list`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AppsListResponse {
    /// No apps.
    pub data: Vec<Value>,
    /// No further page.
    pub next_cursor: Option<String>,
}

/// The answer of `plugin/list` and `plugin/installed`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PluginListResponse {
    /// No marketplaces.
    pub marketplaces: Vec<Value>,
    /// None that could not be loaded.
    pub marketplace_load_errors: Vec<Value>,
    /// No plugins.
    pub featured_plugin_ids: Vec<String>,
}

/// The answer of `marketplace/upgrade`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MarketplaceUpgradeResponse {
    /// No marketplaces.
    pub selected_marketplaces: Vec<String>,
    /// No folders.
    pub upgraded_roots: Vec<String>,
    /// No errors.
    pub errors: Vec<Value>,
}

/// `marketplace/upgrade`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MarketplaceUpgradeParams {
    /// The marketplace; all of them if unset.
    #[serde(default)]
    pub marketplace_name: Option<String>,
}

/// The answer of `externalAgentConfig/detect`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExternalAgentConfigDetectResponse {
    /// Nothing to take over.
    pub items: Vec<Value>,
    /// No connectors.
    pub connectors: Vec<Value>,
}

/// Whether memories are made from a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ThreadMemoryMode {
    Enabled,
    Disabled,
}

/// `thread/memoryMode/set`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadMemoryModeSetParams {
    /// The thread.
    pub thread_id: String,
    /// The mode.
    pub mode: ThreadMemoryMode,
}
