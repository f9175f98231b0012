//! Our own git folder that borrows the objects and a copy of the index of another.
//!
//! Of the other's configuration it contains only a few switches about how files are compared. Everything that git
//! writes goes here, including new objects, because those of the other are only an alternate.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Instant, SystemTime},
};

use super::{
    file::{self, Links},
    repository::Repository,
    run::{Git, Runner},
    settings::Settings,
};

/// The maximum number of bytes copied in total.
const MAX_COPIED: u64 = 1024 * 1024 * 1024;
/// The maximum number of entries of the git folder that are listed.
const MAX_ENTRIES: usize = 10_000;
/// The maximum number of copied shared index files; git keeps old ones for two weeks.
const MAX_SHARED_INDEXES: usize = 8;

/// Switches of `[core]` that describe how a checkout was written and are needed to compare it.
const TAKEN_OVER: &[&str] =
    &["fileMode", "symlinks", "ignoreCase", "precomposeUnicode", "autocrlf", "eol", "trustctime", "checkStat"];

/// The folder; it is deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct Stage<'a> {
    runner: &'a Runner,
    folder: PathBuf,
    /// The number of bytes that may still be copied.
    room: u64,
}

impl<'a> Stage<'a> {
    /// Creates the folder, for a repository or for files outside of one.
    pub(crate) fn new(runner: &'a Runner, repository: Option<&Repository>) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let folder = runner.folder.join(format!("git-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        let mut builder = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&folder)?;
        let mut stage = Self { runner, folder, room: MAX_COPIED };
        for name in ["objects", "objects/info", "refs", "info"] {
            fs::create_dir(stage.folder.join(name))?;
        }
        fs::write(stage.folder.join("HEAD"), "ref: refs/heads/none\n")?;
        let settings = repository.map(Repository::settings).unwrap_or_default();
        fs::write(stage.folder.join("config"), config(&settings))?;
        if let Some(repository) = repository {
            stage.borrow(repository)?;
        }
        Ok(stage)
    }

    fn borrow(&mut self, repository: &Repository) -> io::Result<()> {
        let objects = quoted(&repository.common.join("objects"));
        fs::write(self.folder.join("objects/info/alternates"), objects)?;
        self.copy(&repository.own, "index")?;
        self.copy(&repository.common, "shallow")?;
        self.copy(&repository.common, "info/exclude")?;
        for name in shared_indexes(&repository.own)? {
            self.copy(&repository.own, &name)?;
        }
        Ok(())
    }

    /// A `git` configured for a checkout.
    pub(crate) fn git<'b>(&'b self, checkout: &'b Path, deadline: Instant) -> Git<'b> {
        Git { runner: self.runner, folder: &self.folder, checkout, deadline }
    }

    /// Writes input for a run into a file, which never blocks the writer.
    pub(crate) fn input(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.folder.join(name);
        fs::write(&path, bytes)?;
        Ok(path)
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Forgets the index, so that the next run begins with an empty one.
    pub(crate) fn forget_index(&self) -> io::Result<()> {
        match fs::remove_file(self.folder.join("index")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Copies a file that may be missing. Links are not followed: they could lead anywhere.
    fn copy(&mut self, from: &Path, name: &str) -> io::Result<()> {
        let Ok(source) = file::open(&from.join(name), Links::Refused) else { return Ok(()) };
        let modified = source.metadata()?.modified()?;
        let mut copy = File::create_new(self.folder.join(name))?;
        let length = io::copy(&mut source.take(self.room.saturating_add(1)), &mut copy)?;
        self.room = self.room.checked_sub(length).ok_or_else(|| io::Error::other("the index is too large"))?;
        // Git rereads files that were changed while the index was written, and knows that time from the age of the
        // index.
        copy.set_modified(modified)
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The shared files that a split index may refer to, the latest first.
fn shared_indexes(folder: &Path) -> io::Result<Vec<String>> {
    let mut found: Vec<(SystemTime, String)> = Vec::new();
    for entry in fs::read_dir(folder)?.take(MAX_ENTRIES) {
        let entry = entry?;
        let name = entry.file_name().into_string().unwrap_or_default();
        if name.starts_with("sharedindex.")
            && let Ok(modified) = entry.metadata().and_then(|found| found.modified())
        {
            found.push((modified, name));
        }
    }
    found.sort_unstable_by(|one, other| other.cmp(one));
    Ok(found.into_iter().take(MAX_SHARED_INDEXES).map(|(_, name)| name).collect())
}

/// A path as a line of `alternates`, quoted to allow every byte.
fn quoted(path: &Path) -> Vec<u8> {
    let mut line = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'\n' => line.extend(b"\\n"),
            b'"' | b'\\' => line.extend([b'\\', *byte]),
            byte => line.push(*byte),
        }
    }
    line.extend(b"\"\n");
    line
}

/// A configuration that names no program.
fn config(settings: &Settings) -> String {
    let mut lines = vec!["[core]".to_owned(), "bare = false".to_owned(), "bigFileThreshold = 16m".to_owned()];
    for name in TAKEN_OVER {
        let value = settings.get("core", "", name).filter(|value| is_word(value));
        lines.extend(value.map(|value| format!("{name} = {value}")));
    }
    let format = settings.get("extensions", "", "objectFormat").filter(|format| is_word(format));
    lines.push(format!("repositoryFormatVersion = {}", u8::from(format.is_some())));
    lines.extend(format.map(|format| format!("[extensions]\nobjectFormat = {format}")));
    lines.join("\n") + "\n"
}

fn is_word(value: &str) -> bool {
    !value.is_empty() && value.len() < 20 && value.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
