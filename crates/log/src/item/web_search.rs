//! A web search that the provider made.

use serde::{Deserialize, Serialize};

use super::ItemId;

/// A web search that the provider made.
#[derive(Debug, Clone, PartialEq)]
pub struct WebSearch {
    pub id: ItemId,
    /// The search text.
    pub query: String,
}

impl WebSearch {
    pub(super) fn stored_form(&self) -> StoredForm<'_> {
        StoredForm { id: self.id.as_str(), query: &self.query }
    }
}

#[derive(Serialize)]
pub(crate) struct StoredForm<'a> {
    id: &'a str,
    query: &'a str,
}

#[derive(Deserialize)]
pub struct Stored {
    id: String,
    #[serde(default)]
    query: String,
}

impl From<Stored> for WebSearch {
    fn from(stored: Stored) -> Self {
        Self { id: ItemId::new(stored.id), query: stored.query }
    }
}
