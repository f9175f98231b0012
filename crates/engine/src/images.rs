//! From a user's input to the message that the model receives.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use codex_log::ItemId;
use codex_tools::images::{MAX_BYTES_TOGETHER, local_image, note, read_blocking};
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use codex_wire::marks;
use codex_wire::response::{ContentItem, Message};
use codex_wire::skill::SkillMetadata;

use crate::skills;
use crate::turn::UserMessage;
use codex_thread::HistoryMode;

/// Builds the message of a user's input; images are read where blocking is allowed.
pub(crate) async fn user_message(
    content: Vec<UserInput>,
    cwd: PathBuf,
    skills: Arc<[SkillMetadata]>,
    show: ImageDetail,
) -> UserMessage {
    let id = ItemId::new(ThreadId::fresh().to_string());
    let reads_files = content.iter().any(|item| matches!(item, UserInput::LocalImage { .. } | UserInput::Skill { .. }));
    if !reads_files {
        let said = message(&content, &cwd, &skills);
        let said = if show.marks { marks::around_images(&content, said, &cwd) } else { said };
        return UserMessage { id, key: None, content, message: said, is_echoed: true, context: Vec::new() };
    }
    let (for_reading, folder) = (content.clone(), cwd.clone());
    let read = read_blocking(move || message(&for_reading, &folder, &skills)).await;
    let message = read.unwrap_or_else(|| unread(&content));
    let shown =
        if show.history == HistoryMode::Full { with_pictures(content.clone(), &message) } else { content.clone() };
    let message = if show.marks { marks::around_images(&content, message, &cwd) } else { message };
    UserMessage { id, key: None, content: shown, message, is_echoed: true, context: Vec::new() }
}

/// The form of images in a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageDetail {
    /// The history mode of the clients.
    pub(crate) history: HistoryMode,
    /// Whether each image is between markers with its name, so that the model can tell which one is meant.
    pub(crate) marks: bool,
}

/// The input as clients see it, with images as they were read, because a file may change or disappear.
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

/// Builds the message. A file that cannot be sent is replaced by a note, so that it never ends a thread.
///
/// This function reads files; call it off the async threads.
pub(crate) fn message(content: &[UserInput], cwd: &Path, skills: &[SkillMetadata]) -> Message {
    let mut left = MAX_BYTES_TOGETHER;
    let parts = content.iter().map(|item| match item {
        UserInput::Text { text, .. } => ContentItem::InputText { text: text.as_str().into() },
        UserInput::Image { image_url } => ContentItem::InputImage { image_url: image_url.clone() },
        UserInput::LocalImage { path } => local_image(&cwd.join(path), &mut left),
        UserInput::Skill { name, path } => note(
            skills::read(skills, name, path)
                .unwrap_or_else(|| format!("The person named the skill `{name}`, which is not known here")),
        ),
        UserInput::Mention { name, path } => note(format!("The person mentioned `{name}`; see {path}")),
    });
    Message { id: None, role: "user".to_owned(), content: parts.collect() }
}

/// The message when its files could not be read in time.
fn unread(content: &[UserInput]) -> Message {
    let parts = content.iter().map(|item| match item {
        UserInput::Text { text, .. } => ContentItem::InputText { text: text.as_str().into() },
        UserInput::Image { image_url } => ContentItem::InputImage { image_url: image_url.clone() },
        UserInput::LocalImage { path } | UserInput::Skill { path, .. } => {
            note(format!("The file {} could not be read in time", path.display()))
        }
        UserInput::Mention { name, path } => note(format!("The person mentioned `{name}`; see {path}")),
    });
    Message { id: None, role: "user".to_owned(), content: parts.collect() }
}

#[cfg(test)]
mod tests {
    use codex_tools::images::check_pictures;

    use super::*;

    fn note_of(item: ContentItem) -> String {
        match item {
            ContentItem::InputText { text } => text.into(),
            other => panic!("expected a note, got {other:?}"),
        }
    }

    #[tokio::test]
    async fn pictures_stand_between_marks_where_they_are_to() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.png"), b"\x89PNG\r\n\x1a\n").unwrap();
        let content = || {
            vec![
                UserInput::text("look"),
                UserInput::Image { image_url: "data:image/png;base64,AA".to_owned() },
                UserInput::LocalImage { path: "none.png".into() },
                UserInput::LocalImage { path: "a.png".into() },
            ]
        };
        let said = async |history, marks, content| {
            let show = ImageDetail { history, marks };
            let said = user_message(content, folder.path().to_owned(), Arc::new([]), show).await;
            let part = |part: &ContentItem| match part {
                ContentItem::InputText { text } => text.replace(&folder.path().display().to_string(), "TEMP"),
                other => serde_json::to_value(other).unwrap()["image_url"].to_string(),
            };
            (said.message.content.iter().map(part).collect::<Vec<_>>().join("\n"), said.content)
        };
        let (plain, _) = said(HistoryMode::Full, false, content()).await;
        assert!(!plain.contains("<image"), "{plain}");
        let (marked, shown) = said(HistoryMode::Full, true, content()).await;
        expect_test::expect![[r#"
            look
            <image>
            "data:image/png;base64,AA"
            </image>
            The picture TEMP/none.png could not be attached: No such file or directory (os error 2)
            <image name=[Image #2] path="TEMP/a.png">
            "data:image/png;base64,iVBORw0KGgo="
            </image>"#]]
        .assert_eq(&marked);
        assert!(matches!(&shown[3], UserInput::Image { .. }), "clients see the picture as it was read: {shown:?}");
        let (marked, _) = said(HistoryMode::Full, true, content().drain(..2).collect()).await;
        assert_eq!(marked, "look\n<image>\n\"data:image/png;base64,AA\"\n</image>");
    }

    #[test]
    fn the_pictures_of_one_message_are_bounded_together() {
        let folder = tempfile::tempdir().unwrap();
        let mut picture = b"\x89PNG\r\n\x1a\n".to_vec();
        picture.resize(19 << 20, 0);
        std::fs::write(folder.path().join("large.png"), &picture).unwrap();
        let input = vec![UserInput::LocalImage { path: "large.png".into() }; 40];
        let refused = check_pictures(&input, folder.path()).unwrap_err();
        assert_eq!(refused, "the pictures of one message may have 64 MiB together");
        assert_eq!(check_pictures(&input[..3], folder.path()), Ok(()));
        let sent = message(&input, folder.path(), &[]).content;
        let pictures = sent.iter().filter(|part| matches!(part, ContentItem::InputImage { .. })).count();
        assert_eq!(pictures, 3);
        let note = note_of(sent.into_iter().nth(3).unwrap());
        assert!(note.ends_with("the pictures of one message may have 64 MiB together"), "{note}");
    }
}
