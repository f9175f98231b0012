//! Prompts that the user stores in files.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A prompt that the user stores in a file and calls by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct CustomPrompt {
    /// The name: that of the file without its extension.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// The text, without the front matter.
    pub content: String,
    #[serde(default)]
    pub description: Option<String>,
    /// A hint for the arguments.
    #[serde(default)]
    pub argument_hint: Option<String>,
}
