//! `userInfo` and `getUserAgent`.

use serde::{Deserialize, Serialize};

/// The answer of `userInfo`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UserInfoResponse {
    /// The user's email address, according to the unverified claims of the login.
    #[serde(default)]
    pub alleged_user_email: Option<String>,
}

/// The answer of `getUserAgent`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GetUserAgentResponse {
    /// The user agent that is sent to providers.
    pub user_agent: String,
}
