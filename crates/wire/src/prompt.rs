//! Prompts that the user keeps in files.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A prompt that the user keeps in a file and calls by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct CustomPrompt {
    /// The name, which is that of the file without its ending.
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
