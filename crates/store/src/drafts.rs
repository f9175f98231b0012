//! Texts that were typed and not sent yet, one file each in a folder of the home.
//!
//! Invariant: only the user can read them, they are bounded in size and number, and a file is replaced as a whole.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use codex_files::Links;

/// The longest draft, and the most of them; the oldest make way.
const MOST_BYTES: u64 = 4 * 1024 * 1024;
const MOST_DRAFTS: usize = 100;

/// The folder of drafts.
#[derive(Debug, Clone)]
pub struct Drafts {
    folder: PathBuf,
}

impl Drafts {
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The draft with a name, if there is one that can be read.
    #[must_use]
    pub fn read(&self, name: &str) -> Option<String> {
        codex_files::read_text(&self.file(name), MOST_BYTES).ok()
    }

    /// Keeps a draft by its name, or removes it.
    ///
    /// # Errors
    /// If it is too long, or the folder cannot be written.
    pub fn keep(&self, name: &str, text: Option<&str>) -> io::Result<()> {
        let file = self.file(name);
        let Some(text) = text else {
            return fs::remove_file(file).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            });
        };
        if text.len() as u64 > MOST_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let is_new = !file.exists();
        let scratch = self.scratch(text)?;
        fs::rename(scratch.path(), file)?;
        if is_new {
            self.make_room();
        }
        Ok(())
    }

    /// Keeps a picture for a message. It makes way like the oldest drafts.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn keep_picture(&self, picture: &[u8]) -> io::Result<PathBuf> {
        let path = self.new_file(&format!("picture-{}.png", &uuid()[24..]), picture)?;
        self.make_room();
        Ok(path)
    }

    /// A file of its own with a text, which is gone when it is dropped.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn scratch(&self, text: &str) -> io::Result<Scratch> {
        Ok(Scratch { path: self.new_file(&format!("{}.md", uuid()), text.as_bytes())? })
    }

    fn new_file(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let path = self.folder.join(name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = codex_files::open_with(&mut options, Links::Refused, &path).map_err(io::Error::from)?;
        if let Err(error) = file.write_all(bytes) {
            // A file with a part of it is of no use.
            let _: io::Result<()> = fs::remove_file(&path);
            return Err(error);
        }
        Ok(path)
    }

    /// The file of a draft. Names may have any characters, so the file has a number for one.
    fn file(&self, name: &str) -> PathBuf {
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        self.folder.join(format!("{hash:016x}.json"))
    }

    /// Removes the oldest drafts beyond the most that are kept.
    fn make_room(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut drafts: Vec<_> = entries
            .flatten()
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        drafts.sort();
        for (_, path) in drafts.iter().rev().skip(MOST_DRAFTS) {
            // Somebody else may have removed it.
            let _: io::Result<()> = fs::remove_file(path);
        }
    }
}

fn uuid() -> String {
    codex_wire::ids::ThreadId::fresh().to_string()
}

/// A file that is removed when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text that is in it now.
    ///
    /// # Errors
    /// If it is no text, or too long.
    pub fn read(&self) -> io::Result<String> {
        codex_files::read_text(&self.path, MOST_BYTES).map_err(io::Error::from)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It may have been renamed.
        let _: io::Result<()> = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn drafts_are_kept_by_name_for_the_user_alone() {
        let home = tempfile::tempdir().unwrap();
        let drafts = Drafts::new(home.path().join("drafts"));
        assert_eq!(drafts.read("new in /w"), None);
        drafts.keep("new in /w", None).unwrap();
        drafts.keep("new in /w", Some("one")).unwrap();
        drafts.keep("../other", Some("two")).unwrap();
        assert_eq!(drafts.read("new in /w").as_deref(), Some("one"));
        assert_eq!(drafts.read("../other").as_deref(), Some("two"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&home.path().join("drafts")), 0o700);
        let picture = drafts.keep_picture(b"a picture").unwrap();
        assert_eq!(fs::read(picture).unwrap(), b"a picture");
        for entry in fs::read_dir(home.path().join("drafts")).unwrap() {
            assert_eq!(mode(&entry.unwrap().path()), 0o600);
        }
        drafts.keep("new in /w", None).unwrap();
        assert_eq!(drafts.read("new in /w"), None);
        assert!(drafts.keep("x", Some(&"y".repeat(5 << 20))).is_err());
    }

    #[test]
    fn there_are_never_more_than_a_hundred() {
        let home = tempfile::tempdir().unwrap();
        let drafts = Drafts::new(home.path().to_owned());
        for number in 0..120 {
            drafts.keep(&format!("{number}"), Some("text")).unwrap();
        }
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), MOST_DRAFTS);
        assert_eq!(drafts.read("119").as_deref(), Some("text"));
    }

    #[test]
    fn a_scratch_file_is_read_back_and_removed() {
        let home = tempfile::tempdir().unwrap();
        let drafts = Drafts::new(home.path().to_owned());
        let scratch = drafts.scratch("before").unwrap();
        fs::write(scratch.path(), "after").unwrap();
        assert_eq!(scratch.read().unwrap(), "after");
        drop(scratch);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    }
}
