//! From a user's input to the message a model gets: pictures on disk become data URLs.
//!
//! Invariant: a picture takes memory three times over while it is encoded, so only a few are at once, in all threads of the
//! program together, and those of one message are bounded too. None is waited for longer than a while.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codex_files::FileError;
use codex_log::ItemId;
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use codex_wire::marks;
use codex_wire::response::{ContentItem, Message};
use codex_wire::skill::SkillMetadata;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::setup::Recall;
use crate::skills;
use crate::turn::UserMessage;

/// The largest picture that is sent. Providers refuse larger ones.
const MAX_IMAGE_BYTES: u64 = 20 * 1024 * 1024;
/// How large the pictures of one message may be together.
const MAX_BYTES_TOGETHER: u64 = 64 * 1024 * 1024;
/// How many messages with pictures are made at once.
static AT_ONCE: Semaphore = Semaphore::const_new(2);
/// How long it may take to read what a message refers to, the wait for others included.
const READING_TIME: Duration = Duration::from_secs(30);

/// Does work on files of the user's or the model's choice where blocking is allowed. None if it takes too long.
pub(crate) async fn read_beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    read_within(&AT_ONCE, work).await
}

async fn read_within<T: Send + 'static>(
    places: &'static Semaphore,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let reading = async {
        let permit = places.acquire().await.ok()?;
        let done = tokio::task::spawn_blocking(move || {
            // Work that never ends keeps its place, so that there is never more of it.
            let _permit = permit;
            work()
        });
        done.await.ok()
    };
    timeout(READING_TIME, reading).await.ok().flatten()
}

/// Whether the pictures on disk in an input may be sent together; an error that says why not. It looks at files; run it off
/// the async threads.
///
/// # Errors
/// When they are too large together.
pub fn check_pictures(content: &[UserInput], cwd: &Path) -> Result<(), String> {
    let paths = content.iter().filter_map(|item| match item {
        UserInput::LocalImage { path } => Some(cwd.join(path)),
        _ => None,
    });
    // What is too large alone is not sent, so it does not count.
    let sizes = paths.filter_map(|path| Some(path.metadata().ok()?.len())).filter(|size| *size <= MAX_IMAGE_BYTES);
    if sizes.sum::<u64>() > MAX_BYTES_TOGETHER { Err(too_large_together()) } else { Ok(()) }
}

fn too_large_together() -> String {
    format!("the pictures of one message may have {} MiB together", MAX_BYTES_TOGETHER >> 20)
}

/// Makes a message of what the user said; pictures are read where blocking is allowed.
pub(crate) async fn user_message(
    content: Vec<UserInput>,
    cwd: PathBuf,
    skills: Arc<[SkillMetadata]>,
    show: Show,
) -> UserMessage {
    let id = ItemId::new(ThreadId::fresh().to_string());
    let reads_files = content.iter().any(|item| matches!(item, UserInput::LocalImage { .. } | UserInput::Skill { .. }));
    if !reads_files {
        let said = message(&content, &cwd, &skills);
        let said = if show.marks { marks::around_images(&content, said, &cwd) } else { said };
        return UserMessage { id, key: None, content, message: said, is_echoed: true };
    }
    let (for_reading, folder) = (content.clone(), cwd.clone());
    let read = read_beside(move || message(&for_reading, &folder, &skills)).await;
    let message = read.unwrap_or_else(|| unread(&content));
    let shown = if show.recall == Recall::Full { with_pictures(content.clone(), &message) } else { content.clone() };
    let message = if show.marks { marks::around_images(&content, message, &cwd) } else { message };
    UserMessage { id, key: None, content: shown, message, is_echoed: true }
}

/// How pictures are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Show {
    /// What clients remember.
    pub(crate) recall: Recall,
    /// Whether each stands between marks that name it, so that the model can tell which one is meant.
    pub(crate) marks: bool,
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

/// The message when nothing that it refers to could be read in time.
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

/// A picture on disk that is sent alone, or a note that says why it cannot be.
pub(crate) fn one_image(path: &Path) -> ContentItem {
    local_image(path, &mut MAX_BYTES_TOGETHER.clone())
}

/// A picture on disk as a part of a message, which takes up some of what is left for pictures, or a note that says why it
/// cannot be one.
fn local_image(path: &Path, left: &mut u64) -> ContentItem {
    match read_image(path, left) {
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
    let mut left = MAX_IMAGE_BYTES;
    read_image(path, &mut left).map(drop)
}

fn note(text: String) -> ContentItem {
    ContentItem::InputText { text: text.into() }
}

fn read_image(path: &Path, left: &mut u64) -> Result<(&'static str, Vec<u8>), String> {
    let bytes = codex_files::read(path, MAX_IMAGE_BYTES.min(*left)).map_err(|error| match error {
        FileError::TooLong { limit: MAX_IMAGE_BYTES } => {
            format!("it is larger than {} MiB", MAX_IMAGE_BYTES / 1024 / 1024)
        }
        FileError::TooLong { .. } => too_large_together(),
        FileError::Io(error) if error.kind() == ErrorKind::IsADirectory => FileError::NotRegular.to_string(),
        other => other.to_string(),
    })?;
    let kind = image_kind(&bytes).ok_or("it is no PNG, JPEG, GIF or WebP")?;
    *left -= bytes.len() as u64;
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
    use codex_files::testing::{Endless, soon};

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
        let said = async |recall, marks, content| {
            let show = Show { recall, marks };
            let said = user_message(content, folder.path().to_owned(), Arc::new([]), show).await;
            let part = |part: &ContentItem| match part {
                ContentItem::InputText { text } => text.replace(&folder.path().display().to_string(), "TEMP"),
                other => serde_json::to_value(other).unwrap()["image_url"].to_string(),
            };
            (said.message.content.iter().map(part).collect::<Vec<_>>().join("\n"), said.content)
        };
        let (plain, _) = said(Recall::Full, false, content()).await;
        assert!(!plain.contains("<image"), "{plain}");
        let (marked, shown) = said(Recall::Full, true, content()).await;
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
        let (marked, _) = said(Recall::Full, true, content().drain(..2).collect()).await;
        assert_eq!(marked, "look\n<image>\n\"data:image/png;base64,AA\"\n</image>");
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

    #[test]
    fn a_picture_that_never_ends_becomes_a_note() {
        for kind in Endless::ALL {
            let folder = tempfile::tempdir().unwrap();
            kind.make(&folder.path().join("picture.png")).unwrap();
            let root = folder.path().to_owned();
            let input = [UserInput::LocalImage { path: "picture.png".into() }];
            let note = note_of(soon(move || message(&input, &root, &[])).unwrap().content.remove(0));
            let why = if kind == Endless::Sparse { "it is larger than 20 MiB" } else { "it is not a regular file" };
            assert!(note.ends_with(why), "{note}");
        }
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

    #[tokio::test(start_paused = true)]
    async fn only_a_few_are_read_at_once_and_none_is_waited_for_for_ever() {
        static PLACES: Semaphore = Semaphore::const_new(2);
        let (going_on, end) = std::sync::mpsc::channel::<()>();
        let end = Arc::new(std::sync::Mutex::new(end));
        let stuck: Vec<_> = (0..2)
            .map(|_| {
                let end = Arc::clone(&end);
                tokio::spawn(read_within(&PLACES, move || end.lock().unwrap().recv().is_err()))
            })
            .collect();
        while PLACES.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let waiting = tokio::spawn(read_within(&PLACES, || ()));
        tokio::task::yield_now().await;
        tokio::time::advance(READING_TIME).await;
        assert_eq!(waiting.await.unwrap(), None);
        for stuck in stuck {
            assert_eq!(stuck.await.unwrap(), None);
        }
        assert_eq!(PLACES.available_permits(), 0, "what goes on keeps its place");
        drop(going_on);
        assert_eq!(read_within(&PLACES, || 1).await, Some(1));
    }
}
