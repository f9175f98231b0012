//! The kind of failure that ended or delayed a turn, for clients that act on it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kind of an error. Written in snake case as in events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(extend("x-open" = true)))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub enum CodexErrorInfo {
    /// The input no longer fits into the model's window.
    ContextWindowExceeded,
    /// The budget of the thread is exhausted.
    SessionBudgetExceeded,
    /// The account's allowance is exhausted.
    UsageLimitExceeded,
    /// The provider could not be reached.
    HttpConnectionFailed {
        /// The status it answered with, if any.
        #[serde(default)]
        http_status_code: Option<u16>,
    },
    /// The provider answered, but not with a stream.
    ResponseStreamConnectionFailed {
        /// The status it answered with, if any.
        #[serde(default)]
        http_status_code: Option<u16>,
    },
    /// The provider failed.
    InternalServerError,
    /// The key or login was rejected.
    Unauthorized,
    /// The request was rejected as invalid.
    BadRequest,
    /// The sandbox could not be set up.
    SandboxError,
    /// The stream ended before the answer did.
    ResponseStreamDisconnected {
        /// The status of the answer, if any.
        #[serde(default)]
        http_status_code: Option<u16>,
    },
    /// Every retry failed.
    ResponseTooManyFailedAttempts {
        /// The last status, if any.
        #[serde(default)]
        http_status_code: Option<u16>,
    },
    /// Anything else.
    Other,
    /// A kind that this release does not know, kept unchanged.
    #[serde(untagged)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown(#[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_other(\"kind\")"))] Value),
}
