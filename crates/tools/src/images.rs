//! Images on disk as data URLs for a model.
//!
//! Invariant: an image takes three times its memory while it is encoded, so only a few are encoded at once, over all
//! threads of the program, and the images of one message are bounded too. Reading has a time limit.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codex_files::FileError;
use codex_wire::input::UserInput;
use codex_wire::response::ContentItem;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The maximum size of an image. Providers reject larger ones.
const MAX_IMAGE_BYTES: u64 = 20 * 1024 * 1024;
/// The maximum total size of the images of one message.
pub const MAX_BYTES_TOGETHER: u64 = 64 * 1024 * 1024;
/// The number of messages with images that are built at once.
static AT_ONCE: Semaphore = Semaphore::const_new(2);
/// The time limit for reading the files of a message, including the wait for others.
const READING_TIME: Duration = Duration::from_secs(30);

/// Runs work on files chosen by the user or the model on a blocking thread. `None` if it takes too long.
pub async fn read_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
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

/// Checks whether the images on disk in an input may be sent together. Reads files; run it off the async threads.
///
/// # Errors
/// When they are too large together.
pub fn check_pictures(content: &[UserInput], cwd: &Path) -> Result<(), String> {
    let paths = content.iter().filter_map(|item| match item {
        UserInput::LocalImage { path } => Some(cwd.join(path)),
        _ => None,
    });
    // An image that is too large alone is not sent, so it does not count.
    let sizes = paths.filter_map(|path| Some(path.metadata().ok()?.len())).filter(|size| *size <= MAX_IMAGE_BYTES);
    if sizes.sum::<u64>() > MAX_BYTES_TOGETHER { Err(too_large_together()) } else { Ok(()) }
}

fn too_large_together() -> String {
    format!("the pictures of one message may have {} MiB together", MAX_BYTES_TOGETHER >> 20)
}

/// A single image on disk, or a note that says why it cannot be sent.
#[must_use]
pub fn one_image(path: &Path) -> ContentItem {
    local_image(path, &mut MAX_BYTES_TOGETHER.clone())
}

/// An image on disk as a part of a message, charged to the remaining budget, or a note that says why it cannot be sent.
#[must_use]
pub fn local_image(path: &Path, left: &mut u64) -> ContentItem {
    match read_image(path, left) {
        Ok((kind, bytes)) => {
            ContentItem::InputImage { image_url: format!("data:{kind};base64,{}", STANDARD.encode(bytes)) }
        }
        Err(why) => note(format!("The picture {} could not be attached: {why}", path.display())),
    }
}

/// Checks whether a file can be sent as an image, before anything is sent.
///
/// # Errors
/// If it cannot be read, is not an image or is too large.
pub fn check_image(path: &Path) -> Result<(), String> {
    let mut left = MAX_IMAGE_BYTES;
    read_image(path, &mut left).map(drop)
}

/// A text in place of an image.
#[must_use]
pub fn note(text: String) -> ContentItem {
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
    let kind = image_kind(&bytes).ok_or("it is not a PNG, JPEG, GIF or WebP image")?;
    *left -= bytes.len() as u64;
    Ok((kind, bytes))
}

/// Detects the image type from its first bytes; file names are not reliable.
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
    use std::sync::Arc;

    use codex_files::testing::{Endless, soon};

    use super::*;

    fn attach(name: &str, bytes: &[u8]) -> ContentItem {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), bytes).unwrap();
        one_image(&folder.path().join(name))
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
    fn invalid_images_become_a_note() {
        let note = note_of(attach("secret.png", b"-----BEGIN KEY-----"));
        assert!(note.ends_with("it is not a PNG, JPEG, GIF or WebP image"), "{note}");
    }

    #[test]
    fn a_missing_file_and_a_folder_become_notes() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["missing.png", "."] {
            let note = note_of(one_image(&folder.path().join(path)));
            assert!(note.contains("could not be attached"), "{note}");
        }
    }

    #[test]
    fn a_picture_that_never_ends_becomes_a_note() {
        for kind in Endless::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("picture.png");
            kind.make(&path).unwrap();
            let note = note_of(soon(move || one_image(&path)).unwrap());
            let why = if kind == Endless::Sparse { "it is larger than 20 MiB" } else { "it is not a regular file" };
            assert!(note.ends_with(why), "{note}");
        }
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
