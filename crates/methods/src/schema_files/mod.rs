//! The protocol as JSON Schema and TypeScript, one file per message.

mod json;
mod typescript;

pub use json::{BUNDLE_NAME, files as json_files};
pub use typescript::{bundle as typescript_bundle, files as typescript_files};

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The path relative to the folder of all files.
    pub path: String,
    pub text: String,
}
