//! From a user's input to the message a model gets: pictures on disk become data URLs.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use codex_wire::response::{ContentItem, Message};
use codex_wire::skill::SkillMetadata;

use crate::log::ItemId;
use crate::skills;
use crate::thread::Recall;
use crate::turn::UserMessage;

/// The largest picture that is sent. Providers refuse larger ones.
const MAX_IMAGE_BYTES: u64 = 20 * 1024 * 1024;

/// Makes a message of what the user said; pictures are read where blocking is allowed.
pub(crate) async fn user_message(
    content: Vec<UserInput>,
    cwd: PathBuf,
    skills: Arc<[SkillMetadata]>,
    recall: Recall,
) -> UserMessage {
    let id = ItemId::new(ThreadId::fresh().to_string());
    let reads_files = content.iter().any(|item| matches!(item, UserInput::LocalImage { .. } | UserInput::Skill { .. }));
    if !reads_files {
        let said = message(&content, &cwd, &skills);
        return UserMessage { id, key: None, content, message: said, is_echoed: true };
    }
    let for_reading = content.clone();
    let read = tokio::task::spawn_blocking(move || message(&for_reading, &cwd, &skills)).await;
    let message = read.unwrap_or_else(|_| Message::user("The person's pictures could not be read"));
    let content = if recall == Recall::Full { with_pictures(content, &message) } else { content };
    UserMessage { id, key: None, content, message, is_echoed: true }
}

/// What clients are shown: pictures as they were when they were read, since a file may change or go.
fn with_pictures(content: Vec<UserInput>, message: &Message) -> Vec<UserInput> {
    let parts = message.content.iter().map(Some).chain(std::iter::repeat(None));
    let shown = content.into_iter().zip(parts).map(|(item, part)| match (item, part) {
        (UserInput::LocalImage { .. }, Some(ContentItem::InputImage { image_url })) => {
            UserInput::Image { image_url: image_url.clone() }
        }
        (item, _) => item,
    });
    shown.collect()
}

/// Makes the message. What cannot be sent is replaced by a note, so that one bad file never ends a thread.
///
/// It reads files; run it off the async threads.
pub(crate) fn message(content: &[UserInput], cwd: &Path, skills: &[SkillMetadata]) -> Message {
    let parts = content.iter().map(|item| match item {
        UserInput::Text { text } => ContentItem::InputText { text: text.as_str().into() },
        UserInput::Image { image_url } => ContentItem::InputImage { image_url: image_url.clone() },
        UserInput::LocalImage { path } => local_image(&cwd.join(path)),
        UserInput::Skill { name, path } => note(
            skills::read(skills, name, path)
                .unwrap_or_else(|| format!("The person named the skill `{name}`, which is not known here")),
        ),
        UserInput::Mention { name, path } => note(format!("The person mentioned `{name}`; see {path}")),
    });
    Message { id: None, role: "user".to_owned(), content: parts.collect() }
}

/// A picture on disk as a part of a message, or a note that says why it cannot be one.
pub(crate) fn local_image(path: &Path) -> ContentItem {
    match read_image(path) {
        Ok((kind, bytes)) => {
            ContentItem::InputImage { image_url: format!("data:{kind};base64,{}", STANDARD.encode(bytes)) }
        }
        Err(why) => note(format!("The picture {} could not be attached: {why}", path.display())),
    }
}

/// Tells why a file cannot be sent as a picture, for those who want to know before anything is said.
///
/// # Errors
/// If it cannot be read, is no picture or is too large.
pub fn check_image(path: &Path) -> Result<(), String> {
    read_image(path).map(drop)
}

fn note(text: String) -> ContentItem {
    ContentItem::InputText { text: text.into() }
}

fn read_image(path: &Path) -> Result<(&'static str, Vec<u8>), String> {
    // A pipe would block the open itself, so the kind of file is looked at before.
    let metadata = path.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(MAX_IMAGE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_IMAGE_BYTES {
        return Err(format!("it is larger than {} MiB", MAX_IMAGE_BYTES / 1024 / 1024));
    }
    let kind = image_kind(&bytes).ok_or("it is no PNG, JPEG, GIF or WebP")?;
    Ok((kind, bytes))
}

/// Tells a picture by its first bytes; a file's name is anybody's claim.
fn image_kind(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attach(name: &str, bytes: &[u8]) -> ContentItem {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), bytes).unwrap();
        message(&[UserInput::LocalImage { path: name.into() }], folder.path(), &[]).content.remove(0)
    }

    fn note_of(item: ContentItem) -> String {
        match item {
            ContentItem::InputText { text } => text.into(),
            other => panic!("expected a note, got {other:?}"),
        }
    }

    #[test]
    fn a_picture_becomes_a_data_url_whatever_its_name() {
        let item = attach("photo.txt", b"\x89PNG\r\n\x1a\nrest");
        assert_eq!(item, ContentItem::InputImage { image_url: "data:image/png;base64,iVBORw0KGgpyZXN0".to_owned() });
    }

    #[test]
    fn what_is_no_picture_becomes_a_note() {
        let note = note_of(attach("secret.png", b"-----BEGIN KEY-----"));
        assert!(note.ends_with("it is no PNG, JPEG, GIF or WebP"), "{note}");
    }

    #[test]
    fn a_missing_file_and_a_folder_become_notes() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["missing.png", "."] {
            let input = [UserInput::LocalImage { path: path.into() }];
            let note = note_of(message(&input, folder.path(), &[]).content.remove(0));
            assert!(note.contains("could not be attached"), "{note}");
        }
    }
}
