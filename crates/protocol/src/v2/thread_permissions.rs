//! `thread/permissions/*`: the rules and approvals that the commands of a thread are judged by.

use std::path::PathBuf;

use codex_wire::permissions::{CommandRule, SessionGrant};
use codex_wire::policy::AskForApproval;
use serde::{Deserialize, Serialize};

use super::policy::Sandbox;

/// The response of `thread/permissions/read`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadPermissionsReadResponse {
    /// When a person is asked.
    pub approval_policy: AskForApproval,
    /// The files and the network that commands may access.
    pub sandbox: Sandbox,
    /// The user's rules, in the order of their files.
    pub rules: Vec<CommandRule>,
    /// The approvals for the rest of this session, oldest first.
    pub grants: Vec<SessionGrant>,
}

/// `thread/permissions/check`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadPermissionsCheckParams {
    /// The thread.
    pub thread_id: String,
    /// The command line, as the model would have it run by the shell of the thread.
    pub command: String,
}

/// `thread/permissions/revoke`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadPermissionsRevokeParams {
    /// The thread.
    pub thread_id: String,
    /// The id of the approval.
    pub grant_id: String,
}

/// The response of `thread/permissions/revoke`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadPermissionsRevokeResponse {
    /// Whether there was such an approval.
    pub revoked: bool,
}

/// `thread/permissions/rule/delete`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadPermissionsRuleDeleteParams {
    /// A thread, which no longer follows the rule; others follow it until they are loaded again.
    pub thread_id: String,
    /// The file of the rule.
    pub file: PathBuf,
    /// The line of the rule.
    pub line: u32,
    /// The text of the rule. If it is not there any more, nothing is deleted.
    pub text: String,
}
