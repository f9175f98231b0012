//! The prompt history that all sessions of a user share.

use serde::{Deserialize, Serialize};

/// A prompt in an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct HistoryEntry {
    /// The thread it was typed in.
    #[serde(alias = "session_id")]
    pub conversation_id: String,
    /// The time in Unix seconds.
    pub ts: u64,
    /// The prompt.
    pub text: String,
}

/// A prompt as a line of `history.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct HistoryLine {
    /// The thread it was typed in.
    #[serde(alias = "conversation_id")]
    pub session_id: String,
    /// The time in Unix seconds.
    pub ts: u64,
    /// The prompt.
    pub text: String,
}

impl From<HistoryLine> for HistoryEntry {
    fn from(HistoryLine { session_id, ts, text }: HistoryLine) -> Self {
        Self { conversation_id: session_id, ts, text }
    }
}
