//! The purpose of a shell command, for clients that show "read main.rs" instead of the command.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

tagged! {
    /// One step of a shell command.
    pub enum ParsedCommand by "type" {
        /// Shows a file.
        "read" => Read(ReadCommand),
        /// Lists a folder.
        "list_files" => ListFiles(ListFilesCommand),
        /// Searches for a text.
        "search" => Search(SearchCommand),
        /// Anything else.
        "unknown" => Unknown(UnknownCommand),
    }
}

/// A command that shows a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ReadCommand {
    /// The command.
    pub cmd: String,
    /// The name of the file.
    pub name: String,
    /// Its path; missing in 0.42.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

/// A command that lists a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ListFilesCommand {
    /// The command.
    pub cmd: String,
    /// The folder, unless it is the working directory.
    #[serde(default)]
    pub path: Option<String>,
}

/// A command that searches for a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct SearchCommand {
    /// The command.
    pub cmd: String,
    /// The search text.
    #[serde(default)]
    pub query: Option<String>,
    /// The searched path.
    #[serde(default)]
    pub path: Option<String>,
}

/// Any other command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct UnknownCommand {
    /// The command.
    pub cmd: String,
}
