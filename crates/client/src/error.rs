//! The ways in which a call or a connection fails.

use std::time::Duration;

use codex_transport::DialError;

/// The reason why a call has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallError {
    /// The server has refused it.
    #[error("{method}: {message} (code {code})")]
    Refused { method: String, code: i64, message: String },
    #[error("{method}: no answer within {deadline:?}")]
    Late { method: String, deadline: Duration },
    #[error("{method}: the connection is closed")]
    Closed { method: String },
    /// The answer is not of the type of the method; the server may be of another release.
    #[error("{method}: cannot read the answer: {why}")]
    Unreadable { method: String, why: String },
    /// The parameters cannot be written as JSON.
    #[error("{method}: cannot write the parameters: {why}")]
    Unwritable { method: String, why: String },
}

/// The reason why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("cannot start {program}")]
    Start { program: String, source: std::io::Error },
    #[error("the handshake has failed: {0}")]
    Handshake(#[from] CallError),
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The two halves were used already.
    #[error("the other end of the pipe is gone")]
    Spent,
}

impl ConnectError {
    /// Whether another attempt would fail in the same way.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Spent | Self::Dial(DialError::NoSocket { .. } | DialError::NoToken { .. }) => true,
            Self::Start { .. } | Self::Handshake(_) => false,
            Self::Dial(
                DialError::Connect { .. }
                | DialError::Foreign { .. }
                | DialError::Unproved { .. }
                | DialError::Refused { .. }
                | DialError::Late { .. },
            ) => false,
        }
    }
}
