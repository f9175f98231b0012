//! Markers around images, as in the newest releases, so that a model can tell which one is meant.

use std::path::Path;

use crate::input::UserInput;
use crate::response::{ContentItem, Message};

/// Adds markers around the images of a message that was built from this input, part by part. An image on disk is named
/// by its number and its path.
#[must_use]
pub fn around_images(content: &[UserInput], message: Message, cwd: &Path) -> Message {
    let mut number = 0;
    let mut parts = Vec::new();
    for (item, part) in content.iter().zip(message.content) {
        if !matches!(part, ContentItem::InputImage { .. }) {
            parts.push(part);
            continue;
        }
        number += 1;
        let open = match item {
            UserInput::LocalImage { path } => {
                format!("<image name=[Image #{number}] path=\"{}\">", cwd.join(path).display())
            }
            _ => "<image>".to_owned(),
        };
        parts.extend([mark(open), part, mark("</image>".to_owned())]);
    }
    Message { content: parts, ..message }
}

fn mark(text: String) -> ContentItem {
    ContentItem::InputText { text: text.into() }
}
