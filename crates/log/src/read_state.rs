//! The read state of a thread.

use serde::{Deserialize, Serialize};

/// The revision of a thread about which nothing was noted.
const UNTOUCHED: &str = "00000000-0000-0000-0000-000000000000";

/// The unread part of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadState {
    /// Where it begins; none if everything was read.
    pub first_unread: Option<Unread>,
    /// Changes whenever something is added or marked, so that nobody marks as read what they have not seen.
    pub revision: String,
}

/// Where begins what was not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unread {
    /// At the beginning, because the user has said so.
    Start,
    /// At a turn that has ended since.
    Turn(String),
}

impl Default for ReadState {
    fn default() -> Self {
        Self { first_unread: None, revision: UNTOUCHED.to_owned() }
    }
}
