//! Whole results of which a model was shown only a part, in files that it can read.

use std::path::{Path, PathBuf};

use codex_tools::lifecycle::ToolOutput;
use codex_wire::response::ContentItem;
use serde_json::Value;

use crate::{names, private_file};

/// The number of results that are kept.
const MOST_FILES: usize = 32;
/// The number of letters of the digest that name a file.
const NAME: usize = 16;

/// Keeps a result in the background, and returns the path of its file. It needs a runtime.
pub(crate) fn keep(folder: &Path, answer: &Value) -> PathBuf {
    let text = answer.to_string();
    let path = folder.join(format!("{}.json", &names::digest(&[&text])[..NAME]));
    let (folder, file) = (folder.to_owned(), path.clone());
    tokio::task::spawn_blocking(move || {
        // The model was told of a file that it will not find, which it can say.
        let _: std::io::Result<()> = private_file::replace(&file, text.as_bytes());
        private_file::keep_newest(&folder, MOST_FILES);
    });
    path
}

/// Adds to an output that the whole of it is in a file.
pub(crate) fn with_path(output: ToolOutput, path: &Path) -> ToolOutput {
    let note = format!("[the whole result is in {}]", path.display());
    match output {
        ToolOutput::Text(text) => ToolOutput::Text(format!("{text}\n{note}")),
        ToolOutput::Parts(mut parts) => {
            parts.push(ContentItem::InputText { text: note.into() });
            ToolOutput::Parts(parts)
        }
    }
}
