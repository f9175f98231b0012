//! The reasons why a chat ends early.

use std::io;

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
    #[error("the server did not answer {0} in time")]
    Late(String),
    #[error("the server sent a line of {bytes} bytes")]
    TooLong { bytes: u64 },
    #[error("the server sent more than {most} bytes before it answered")]
    Flood { most: usize },
    #[error("the server is gone")]
    Gone(#[source] io::Error),
    #[error("the server stopped")]
    Stopped,
    #[error("the server sent a line that is not a message")]
    NoMessage(#[source] serde_json::Error),
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
