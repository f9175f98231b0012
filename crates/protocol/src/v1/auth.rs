//! `getAuthStatus`, `loginApiKey` and the notifications about changes of the login.

use serde::{Deserialize, Serialize};

use crate::v2::{account::AuthMode, hidden::Hidden};

/// The parameters of `getAuthStatus`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GetAuthStatusParams {
    /// Whether the token itself is wanted.
    #[serde(default, alias = "include_token")]
    pub include_token: Option<bool>,
    /// Whether tokens are renewed first.
    #[serde(default, alias = "refresh_token")]
    pub refresh_token: Option<bool>,
}

/// The answer of `getAuthStatus`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GetAuthStatusResponse {
    /// The kind of login.
    #[serde(default)]
    pub auth_method: Option<AuthMode>,
    /// The token, if it was requested.
    #[serde(default)]
    pub auth_token: Option<Hidden<String>>,
    /// Whether the provider requires a login.
    #[serde(default)]
    pub requires_openai_auth: Option<bool>,
}

/// The parameters of `loginApiKey`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoginApiKeyParams {
    /// The key.
    #[serde(alias = "api_key")]
    pub api_key: Hidden<String>,
}

/// The answer of `loginChatGpt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoginChatGptResponse {
    /// The name by which the login can be given up.
    pub login_id: String,
    /// The address of the login page.
    pub auth_url: String,
}

/// The parameters of `cancelLoginChatGpt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CancelLoginChatGptParams {
    /// The name that beginning the login has given.
    #[serde(alias = "login_id")]
    pub login_id: String,
}

/// `loginChatGptComplete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoginChatGptCompleteNotification {
    pub login_id: String,
    /// Whether the user is logged in now.
    pub success: bool,
    /// The reason for the failure.
    #[serde(default)]
    pub error: Option<String>,
}

/// `authStatusChange`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuthStatusChangeNotification {
    /// The current kind of login.
    #[serde(default)]
    pub auth_method: Option<AuthMode>,
}
