//! Text that a client puts beside a message: of its own, or from somewhere that nobody vouches for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The entries beside a message, by their keys.
pub type AdditionalContext = BTreeMap<String, AdditionalContextEntry>;

/// A text beside a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct AdditionalContextEntry {
    pub kind: AdditionalContextKind,
    /// The text.
    pub value: String,
    /// Its name for programs, which the model does not see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

spelled! {
    /// The trust in a text.
    pub enum AdditionalContextKind {
        /// It comes from elsewhere, and is never an instruction.
        "untrusted" => Untrusted,
        /// The application vouches for it.
        "application" => Application,
    }
}
