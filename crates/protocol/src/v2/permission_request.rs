//! `item/permissions/requestApproval`: wider permissions for commands.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Permissions that are requested or granted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RequestPermissionProfile {
    /// Access to files.
    #[serde(default)]
    pub file_system: Option<AdditionalFileSystemPermissions>,
    /// Access to the network.
    #[serde(default)]
    pub network: Option<AdditionalNetworkPermissions>,
}

/// Access to files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AdditionalFileSystemPermissions {
    /// Folders to read. Commands can read everything but secrets, so none are requested.
    #[serde(default)]
    pub read: Option<Vec<PathBuf>>,
    /// Folders to write.
    #[serde(default)]
    pub write: Option<Vec<PathBuf>>,
    /// The same as entries with a path and an access mode.
    #[serde(default)]
    pub entries: Option<Vec<Value>>,
}

/// Access to the network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdditionalNetworkPermissions {
    /// Whether commands may use it.
    #[serde(default)]
    pub enabled: Option<bool>,
}

/// `item/permissions/requestApproval`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionsRequestApprovalParams {
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
    /// The id of the model's call.
    pub item_id: String,
    /// The time of the request.
    pub started_at_ms: i64,
    /// The environment; always `local` here.
    pub environment_id: Option<Cow<'static, str>>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The reason that the model gives.
    pub reason: Option<String>,
    /// The requested permissions.
    pub permissions: RequestPermissionProfile,
}

/// The response to `item/permissions/requestApproval`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionsRequestApprovalResponse {
    /// The granted permissions. More than was requested has no effect.
    pub permissions: RequestPermissionProfile,
    /// The time for which they are granted.
    #[serde(default)]
    pub scope: PermissionGrantScope,
}

/// The time for which permissions are granted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum PermissionGrantScope {
    /// Until the turn ends.
    #[default]
    Turn,
    /// As long as the thread is loaded.
    Session,
}
