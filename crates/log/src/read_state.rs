//! The read state of a thread.

use serde::{Deserialize, Serialize};

/// The revision of a thread without a read state.
const UNTOUCHED: &str = "00000000-0000-0000-0000-000000000000";

/// The unread part of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadState {
    /// The position where it begins; `None` if everything was read.
    pub first_unread: Option<Unread>,
    /// Changes whenever an entry is added or marked, so that nobody marks entries as read that they have not seen.
    pub revision: String,
}

/// The start of the unread part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unread {
    /// The beginning, because the user marked the thread as unread.
    Start,
    /// A turn that has ended since.
    Turn(String),
}

impl Default for ReadState {
    fn default() -> Self {
        Self { first_unread: None, revision: UNTOUCHED.to_owned() }
    }
}
