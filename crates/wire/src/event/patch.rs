//! Patches: approval, start and end.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::change::FileChange;

/// Requests approval of file changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ApplyPatchApprovalRequestEvent {
    /// The call that wants to change them.
    pub call_id: String,
    /// The turn; absent in 0.42.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// The changes, by file.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few_named()"))]
    pub changes: BTreeMap<PathBuf, FileChange>,
    /// The reason for the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The folder to which an approval would grant write access for the rest of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_root: Option<PathBuf>,
}

/// A patch is about to be applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct PatchApplyBeginEvent {
    /// The call that changes the files.
    pub call_id: String,
    /// The turn; absent in 0.42.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// Whether no approval was needed.
    pub auto_approved: bool,
    /// The changes, by file.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few_named()"))]
    pub changes: BTreeMap<PathBuf, FileChange>,
}

/// A patch was applied, or has failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct PatchApplyEndEvent {
    /// The call that changed the files.
    pub call_id: String,
    /// The turn; absent in 0.42.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// The tool's report.
    pub stdout: String,
    /// The tool's error messages.
    pub stderr: String,
    /// Whether the files were changed.
    pub success: bool,
    /// The changes, by file; empty in messages of old releases.
    #[serde(default)]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few_named()"))]
    pub changes: BTreeMap<PathBuf, FileChange>,
}
