//! Ids that outlive one message.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use uuid::{NoContext, Timestamp, Uuid};

/// A unique id, a UUID of version 7. Before 1970 it has no time, because there is none to write.
#[must_use]
pub fn fresh_uuid() -> Uuid {
    uuid_at(SystemTime::now())
}

fn uuid_at(time: SystemTime) -> Uuid {
    match time.duration_since(UNIX_EPOCH) {
        Ok(_) => Uuid::now_v7(),
        Err(_) => Uuid::new_v7(Timestamp::from_unix(NoContext, 0, 0)),
    }
}

/// The id of a thread, a UUID of version 7 so that ids sort by age. Older texts call it "conversation id".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ThreadId(Uuid);

impl ThreadId {
    /// Creates a unique id.
    #[must_use]
    pub fn fresh() -> Self {
        Self(fresh_uuid())
    }

    /// The id of a thread whose id is not known.
    #[must_use]
    pub fn unknown() -> Self {
        Self(Uuid::nil())
    }
}

impl From<Uuid> for ThreadId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl From<ThreadId> for Uuid {
    fn from(thread: ThreadId) -> Self {
        thread.0
    }
}

impl std::fmt::Display for ThreadId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for ThreadId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// The id of a JSON-RPC request, chosen by its sender.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub enum RequestId {
    /// A number.
    Integer(i64),
    /// A text.
    String(String),
}

impl RequestId {
    /// The number, which some clients send back as a string of digits.
    #[must_use]
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            Self::String(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
            Self::String(_) => None,
        }
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(f),
            Self::String(text) => text.fmt(f),
        }
    }
}

#[cfg(feature = "arbitrary")]
impl proptest::arbitrary::Arbitrary for ThreadId {
    type Parameters = ();
    type Strategy = proptest::strategy::BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        use proptest::strategy::Strategy as _;
        proptest::prelude::any::<u128>().prop_map(|bits| Self(Uuid::from_u128(bits))).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock before 1970 ended the program with the first thread.
    #[test]
    fn ids_are_unique_whatever_the_clock_says() {
        let before = UNIX_EPOCH - std::time::Duration::from_secs(1);
        let ids = [uuid_at(before), uuid_at(before), uuid_at(UNIX_EPOCH), uuid_at(SystemTime::now())];
        for (at, id) in ids.iter().enumerate() {
            assert_eq!(id.get_version_num(), 7);
            assert!(!ids[..at].contains(id), "{id}");
        }
    }
}
