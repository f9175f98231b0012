//! Failures of requests to models, and whether a retry may help.

use std::{error::Error, time::Duration};

use codex_wire::{error_info::CodexErrorInfo, tokens::RateLimitSnapshot};

use crate::{retry_delay::format_duration, sse::SseError};

/// The prefix of the error about an answer that broke off. Clients match it.
const DISCONNECTED: &str = "stream disconnected before completion";

/// A failure of a request to a model.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The model cannot be asked at all, for a reason known before the request.
    #[error("{message}")]
    Unavailable {
        /// The reason, and a remedy.
        message: String,
    },
    /// A scripted model has no entry left for such a request.
    #[error("the script has no answer left for this request")]
    ScriptExhausted,
    /// The provider's URL cannot be used.
    #[error("invalid provider URL {url:?}: {why}")]
    Url {
        /// The URL as configured.
        url: String,
        why: String,
    },
    /// A header cannot be sent. Its value is left out, because it may be a key.
    #[error("invalid value or name of the request header {name:?}")]
    Header {
        /// The header.
        name: String,
    },
    /// TLS could not be set up, usually because the system has no root certificates.
    #[error("could not set up TLS")]
    Tls {
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// There was no answer: the provider could not be reached, or disconnected first.
    #[error("could not get an answer from {host}")]
    Connect {
        /// The host and port.
        host: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The provider answered with a status that no other variant covers.
    #[error("{} {}: {message}", status_words(*status), status_line(*status))]
    Status {
        /// The status.
        status: u16,
        /// The provider's message.
        message: String,
        /// The time that the provider asks to wait.
        after: Option<Duration>,
    },
    /// The key or login was rejected.
    #[error("not authorized, status {}: {message}", status_line(*status))]
    Unauthorized {
        /// The status, 401 or 403.
        status: u16,
        /// The provider's message.
        message: String,
    },
    /// The provider rejected the request as invalid.
    #[error("{message}")]
    BadRequest {
        /// The provider's message.
        message: String,
    },
    /// The account's allowance is exhausted.
    #[error("{}{message}{}", limit_words(message), resets(*resets_in))]
    UsageLimit {
        /// The provider's message.
        message: String,
        /// The plan of the account.
        plan: Option<String>,
        /// The time when the allowance is restored.
        resets_in: Option<Duration>,
        /// The rate limits of the account, if the response contains them.
        rate_limits: Option<Box<RateLimitSnapshot>>,
    },
    /// The conversation no longer fits into the model's window.
    #[error("the conversation does not fit the model's context window: {message}")]
    ContextWindow {
        /// The provider's message.
        message: String,
    },
    /// The stream ended before the answer did.
    #[error("{DISCONNECTED}: stream closed before response.completed")]
    Disconnected {
        /// The cause, unless the stream ended normally.
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// The provider stopped sending.
    #[error("{DISCONNECTED}: the model sent nothing for {}", format_duration(*after))]
    Idle {
        /// The time of silence.
        after: Duration,
    },
    /// The model failed while it answered.
    #[error("{DISCONNECTED}: {message}")]
    Failed {
        /// The provider's code.
        code: String,
        /// The provider's message.
        message: String,
        /// The time that the provider asks to wait.
        after: Option<Duration>,
    },
    /// The model stopped before its answer was complete.
    #[error("{DISCONNECTED}: Incomplete response returned, reason: {reason}")]
    Incomplete {
        /// The provider's reason, such as `max_output_tokens`.
        reason: String,
    },
    /// An event could not be decoded, so the answer would have a gap.
    #[error("{DISCONNECTED}: could not read the event {event}")]
    Malformed {
        /// The type of the event, or the beginning of its data.
        event: String,
        /// The cause.
        source: serde_json::Error,
    },
    /// The stream contains something that is not an event.
    #[error("{DISCONNECTED}: could not read the stream of the model")]
    Stream(#[from] SseError),
}

/// The possible reaction to a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// None: the same request would fail the same way.
    Never,
    /// The turn may retry.
    Stream {
        /// The time that the provider asks to wait.
        after: Option<Duration>,
    },
    /// The allowance of the account is exhausted, and will be restored.
    AtReset {
        /// The wait until then.
        after: Duration,
    },
}

impl ModelError {
    /// The kind of the failure, for clients.
    #[must_use]
    pub fn info(&self) -> CodexErrorInfo {
        match self {
            // The recorded releases report `other` also for a status of 400, and for an answer that broke off too
            // often; while they retry, they report a disconnected stream.
            Self::ScriptExhausted
            | Self::Url { .. }
            | Self::Header { .. }
            | Self::Tls { .. }
            | Self::BadRequest { .. }
            | Self::Disconnected { .. }
            | Self::Idle { .. }
            | Self::Failed { .. }
            | Self::Incomplete { .. }
            | Self::Malformed { .. }
            | Self::Stream(_) => CodexErrorInfo::Other,
            Self::Connect { .. } => CodexErrorInfo::HttpConnectionFailed { http_status_code: None },
            Self::Status { status: 500, .. } => CodexErrorInfo::InternalServerError,
            Self::Status { status: 429, .. } => {
                CodexErrorInfo::ResponseTooManyFailedAttempts { http_status_code: Some(429) }
            }
            Self::Status { status, .. } => CodexErrorInfo::HttpConnectionFailed { http_status_code: Some(*status) },
            Self::Unauthorized { .. } | Self::Unavailable { .. } => CodexErrorInfo::Unauthorized,
            Self::UsageLimit { .. } => CodexErrorInfo::UsageLimitExceeded,
            Self::ContextWindow { .. } => CodexErrorInfo::ContextWindowExceeded,
        }
    }

    /// Whether the turn may retry.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            // The silent retries of the request are exhausted; the turn continues with retries that clients see.
            Self::Status { .. } | Self::Connect { .. } if self.is_worth_resending() => {
                Retry::Stream { after: self.asked_to_wait() }
            }
            Self::UsageLimit { resets_in: Some(after), .. } => Retry::AtReset { after: *after },
            Self::Unavailable { .. }
            | Self::ScriptExhausted
            | Self::Url { .. }
            | Self::Header { .. }
            | Self::Tls { .. }
            | Self::Connect { .. }
            | Self::Status { .. }
            | Self::Unauthorized { .. }
            | Self::BadRequest { .. }
            | Self::UsageLimit { resets_in: None, .. }
            | Self::ContextWindow { .. } => Retry::Never,
            Self::Incomplete { reason } if reason == "content_filter" => Retry::Never,
            Self::Failed { after, .. } => Retry::Stream { after: *after },
            Self::Disconnected { .. }
            | Self::Idle { .. }
            | Self::Incomplete { .. }
            | Self::Malformed { .. }
            | Self::Stream(_) => Retry::Stream { after: None },
        }
    }

    /// A hint, shown on its own line.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Url { .. } => Some("Check `base_url` of the model provider."),
            Self::Header { .. } => Some("Check the key and `http_headers` of the model provider."),
            Self::Tls { .. } => Some("Install the system's CA certificates, or name a bundle in SSL_CERT_FILE."),
            Self::Connect { .. } => Some("Check the network, the proxy settings and `base_url` of the model provider."),
            Self::Status { status: 300..400, .. } => {
                Some("The provider points elsewhere; set `base_url` to its new place.")
            }
            Self::Status { status: 404 | 405, .. } => Some("Check the model's name and `base_url` of the provider."),
            Self::Unauthorized { .. } => Some("Check the API key, or log in again."),
            Self::ContextWindow { .. } => Some("Start a new thread, or compact this one."),
            Self::Incomplete { reason } if reason == "max_output_tokens" => {
                Some("The answer was longer than the provider allows; ask for less at once.")
            }
            Self::Unavailable { .. }
            | Self::ScriptExhausted
            | Self::Status { .. }
            | Self::BadRequest { .. }
            | Self::UsageLimit { .. }
            | Self::Disconnected { .. }
            | Self::Idle { .. }
            | Self::Failed { .. }
            | Self::Incomplete { .. }
            | Self::Malformed { .. }
            | Self::Stream(_) => None,
        }
    }

    /// The rate limits in an error response, to be reported before the error.
    pub(crate) fn rate_limits(&self) -> Option<RateLimitSnapshot> {
        match self {
            Self::UsageLimit { rate_limits, .. } => rate_limits.as_deref().cloned(),
            _ => None,
        }
    }

    /// The same error, with details that help to find the request.
    pub(crate) fn with_details(mut self, details: &[String]) -> Self {
        if let Self::Status { message, .. }
        | Self::Unauthorized { message, .. }
        | Self::BadRequest { message }
        | Self::UsageLimit { message, .. } = &mut self
            && !details.is_empty()
        {
            *message = format!("{message} ({})", details.join(", "));
        }
        self
    }

    /// Whether the same request may be sent again immediately, before the turn learns of the failure.
    pub(crate) fn is_worth_resending(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::Status { status: 429 | 500.., .. })
    }

    /// The time that the provider asked to wait.
    pub(crate) fn asked_to_wait(&self) -> Option<Duration> {
        match self {
            Self::Status { after, .. } | Self::Failed { after, .. } => *after,
            _ => None,
        }
    }
}

/// A description of a status.
fn status_words(status: u16) -> &'static str {
    if status == 429 { "exceeded retry limit, last status:" } else { "unexpected status" }
}

/// Adds that a limit was reached, if the provider does not say so.
fn limit_words(message: &str) -> &'static str {
    if message.to_lowercase().contains("usage limit") { "" } else { "usage limit reached: " }
}

/// A status with its name, such as `404 Not Found`.
fn status_line(status: u16) -> String {
    reqwest::StatusCode::from_u16(status).map_or_else(|_| status.to_string(), |status| status.to_string())
}

fn resets(span: Option<Duration>) -> String {
    span.map_or_else(String::new, |span| format!("; it resets in {}", format_duration(span)))
}
