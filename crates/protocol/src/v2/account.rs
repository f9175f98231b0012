//! `account/*`: the current login, logging in and out, and the rate limits of the account.

use std::collections::BTreeMap;

use codex_wire::tokens;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{hidden::Hidden, lenient::or_default};

spelled! {
    /// The kind of login.
    pub open enum AuthMode {
        /// With an API key.
        "apikey" => ApiKey,
        /// With `ChatGPT`.
        "chatgpt" => Chatgpt,
        /// With tokens that a client renews.
        "chatgptAuthTokens" => ChatgptAuthTokens,
    }
}

tagged! {
    /// The account in use.
    pub enum Account by "type" {
        /// An API key.
        "apiKey" => ApiKey,
        /// A login with `ChatGPT`.
        "chatgpt" => Chatgpt(ChatgptAccount),
    }
}

/// An account of `ChatGPT`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ChatgptAccount {
    /// The user's address.
    #[serde(default)]
    pub email: Option<String>,
    /// The subscription, such as `plus`.
    pub plan_type: String,
}

/// The parameters of `account/read`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GetAccountParams {
    /// Whether tokens are renewed first.
    #[serde(default, deserialize_with = "or_default")]
    pub refresh_token: bool,
}

/// The answer of `account/read`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GetAccountResponse {
    /// The account, if the user is logged in.
    #[serde(default)]
    pub account: Option<Account>,
    /// Whether the provider requires a login.
    pub requires_openai_auth: bool,
}

tagged! {
    /// The parameters of `account/login/start`.
    pub enum LoginAccountParams by "type" {
        /// With a key.
        "apiKey" => ApiKey(ApiKeyLogin),
        /// In a browser.
        "chatgpt" => Chatgpt,
        /// With a code that the user enters on another device.
        "chatgptDeviceCode" => ChatgptDeviceCode,
        /// With tokens that the client supplies and renews.
        "chatgptAuthTokens" => ChatgptAuthTokens(AuthTokensLogin),
        /// With a key of Amazon Bedrock.
        "amazonBedrock" => AmazonBedrock(BedrockLogin),
        /// With a key pair of Amazon.
        "amazonBedrockAccessKeys" => AmazonBedrockAccessKeys(BedrockKeysLogin),
    }
}

/// A login with a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ApiKeyLogin {
    /// The key.
    #[serde(alias = "api_key")]
    pub api_key: Hidden<String>,
}

/// A login with tokens of `ChatGPT` that the client supplies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct AuthTokensLogin {
    /// The access token, which every request carries.
    pub access_token: Hidden<String>,
    /// The workspace.
    pub chatgpt_account_id: String,
    /// The subscription.
    #[serde(default)]
    pub chatgpt_plan_type: Option<String>,
}

/// A login with a key of Amazon Bedrock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct BedrockLogin {
    /// The key.
    pub api_key: Hidden<String>,
    /// The region.
    pub region: String,
}

/// A login with a pair of keys of Amazon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct BedrockKeysLogin {
    /// The public half.
    pub access_key_id: Hidden<String>,
    /// The private half.
    pub secret_access_key: Hidden<String>,
    /// The session token of a temporary pair.
    #[serde(default)]
    pub session_token: Option<Hidden<String>>,
    /// The region.
    pub region: String,
}

tagged! {
    /// The answer of `account/login/start`.
    pub enum LoginAccountResponse by "type" {
        /// The key is stored.
        "apiKey" => ApiKey,
        /// The browser has to be sent somewhere.
        "chatgpt" => Chatgpt(BrowserLogin),
        /// A code has to be typed in.
        "chatgptDeviceCode" => ChatgptDeviceCode(DeviceCodeLogin),
        /// The tokens are taken.
        "chatgptAuthTokens" => ChatgptAuthTokens,
        /// The key is stored.
        "amazonBedrock" => AmazonBedrock,
    }
}

/// A login that continues in a browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct BrowserLogin {
    /// The id for cancelling the login.
    pub login_id: String,
    /// The address to open.
    pub auth_url: String,
}

/// A login that waits for a code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct DeviceCodeLogin {
    /// The id for cancelling the login.
    pub login_id: String,
    /// The address to open.
    pub verification_url: String,
    /// The code to enter there.
    pub user_code: String,
}

/// The parameters of `account/login/cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CancelLoginAccountParams {
    pub login_id: String,
}

spelled! {
    /// The result of cancelling a login.
    pub enum CancelLoginAccountStatus {
        /// It is cancelled.
        "canceled" => Canceled,
        /// There is no such login.
        "notFound" => NotFound,
    }
}

/// The answer of `account/login/cancel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CancelLoginAccountResponse {
    pub status: CancelLoginAccountStatus,
}

/// `account/login/completed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AccountLoginCompletedNotification {
    /// The id of the login; absent if it completed immediately.
    #[serde(default)]
    pub login_id: Option<String>,
    /// Whether the user is logged in now.
    pub success: bool,
    /// The reason for the failure.
    #[serde(default)]
    pub error: Option<String>,
}

/// `account/updated`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AccountUpdatedNotification {
    /// The current kind of login.
    #[serde(default)]
    pub auth_mode: Option<AuthMode>,
    /// The subscription.
    #[serde(default)]
    pub plan_type: Option<String>,
}

/// The answer of `account/rateLimits/read`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GetAccountRateLimitsResponse {
    /// The rate limits of the account.
    pub rate_limits: RateLimitSnapshot,
    /// The same for each limit there is.
    #[serde(default)]
    pub rate_limits_by_limit_id: Option<BTreeMap<String, RateLimitSnapshot>>,
    /// The account.
    #[serde(default)]
    pub account_id: Option<String>,
}

/// `account/rateLimits/updated`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AccountRateLimitsUpdatedNotification {
    /// The rate limits of the account.
    pub rate_limits: RateLimitSnapshot,
}

/// The rate limits of the account.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "v2_RateLimitSnapshot"))]
#[serde(default, rename_all = "camelCase")]
pub struct RateLimitSnapshot {
    /// The name of the limit.
    pub limit_id: Option<String>,
    /// Its name for people.
    pub limit_name: Option<String>,
    /// The short window.
    pub primary: Option<RateLimitWindow>,
    /// The long window.
    pub secondary: Option<RateLimitWindow>,
    /// Prepaid credits.
    pub credits: Option<CreditsSnapshot>,
    /// The plan of the account.
    pub plan_type: Option<String>,
    /// The limit that was reached.
    pub rate_limit_reached_type: Option<String>,
    /// A limit of this user alone.
    pub individual_limit: Option<Value>,
    /// The model that the limit is about.
    pub normal_model_slug: Option<String>,
    /// Whether a limit on spending was reached.
    pub spend_control_reached: Option<bool>,
}

/// One rate-limit window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "v2_RateLimitWindow"))]
#[serde(rename_all = "camelCase")]
pub struct RateLimitWindow {
    /// The used part in percent.
    pub used_percent: i32,
    /// The length of the window.
    #[serde(default)]
    pub window_duration_mins: Option<i64>,
    /// The time of the reset in Unix seconds.
    #[serde(default)]
    pub resets_at: Option<i64>,
}

/// Prepaid credits of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "v2_CreditsSnapshot"))]
#[serde(rename_all = "camelCase")]
pub struct CreditsSnapshot {
    /// Whether there are any.
    pub has_credits: bool,
    /// Whether they never run out.
    pub unlimited: bool,
    /// The remaining amount, as the provider writes it.
    #[serde(default)]
    pub balance: Option<String>,
}

impl From<tokens::RateLimitSnapshot> for RateLimitSnapshot {
    fn from(limits: tokens::RateLimitSnapshot) -> Self {
        Self {
            limit_id: Some("codex".to_owned()),
            primary: limits.primary.map(Into::into),
            secondary: limits.secondary.map(Into::into),
            credits: limits.credits.map(Into::into),
            plan_type: limits.plan_type,
            ..Self::default()
        }
    }
}

impl From<tokens::RateLimitWindow> for RateLimitWindow {
    fn from(window: tokens::RateLimitWindow) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "it is between 0 and 100")]
        let used_percent = window.used_percent.round().clamp(0.0, 100.0) as i32;
        Self { used_percent, window_duration_mins: window.window_minutes, resets_at: window.resets_at }
    }
}

impl From<tokens::CreditsSnapshot> for CreditsSnapshot {
    fn from(credits: tokens::CreditsSnapshot) -> Self {
        Self { has_credits: credits.has_credits, unlimited: credits.unlimited, balance: credits.balance }
    }
}
