//! The reasons why a chat ends early.

use std::io;

use codex_client::{CallError, ConnectError};
use codex_transport::DialError;
use tokio::task::JoinError;
use tokio::time::error::Elapsed;

/// An error response of the server.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub(crate) String);

/// The reason why a chat cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("could not reach the server")]
    Dial(#[from] DialError),
    #[error("could not talk to the server")]
    Connect(#[source] ConnectError),
    #[error("the server failed to answer")]
    Call(#[source] CallError),
    #[error("the server stopped")]
    Stopped,
    #[error("a message could not be encoded or decoded")]
    Json(#[from] serde_json::Error),
    #[error("the server did not end in time")]
    Endless(#[source] Elapsed),
    #[error("the server failed")]
    Failed(#[source] JoinError),
    #[error("the connection failed")]
    Connection(#[source] io::Error),
    #[error("could not write to the terminal")]
    Terminal(#[source] io::Error),
}

impl From<ConnectError> for ChatError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Dial(error) => Self::Dial(error),
            error @ (ConnectError::Start { .. } | ConnectError::Handshake(_) | ConnectError::Spent) => {
                Self::Connect(error)
            }
        }
    }
}
