//! A git folder of our own that borrows the objects and a copy of the index of another.
//!
//! Nothing of the other's configuration is in it but a few switches about how files are compared.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::{Instant, SystemTime},
};

use crate::{repository::Repository, run::Git, settings::Settings};

/// A larger index is not copied.
const MAX_INDEX: u64 = 1024 * 1024 * 1024;

/// Switches of `[core]` that say how a checkout was written and must be known to compare it.
const TAKEN_OVER: &[&str] =
    &["fileMode", "symlinks", "ignoreCase", "precomposeUnicode", "autocrlf", "eol", "trustctime", "checkStat"];

/// The folder; it is gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Stage {
    folder: PathBuf,
}

impl Stage {
    /// Makes the folder for a repository.
    pub(crate) fn new(repository: &Repository) -> io::Result<Self> {
        let stage = Self { folder: private_folder()? };
        for name in ["objects", "refs", "info"] {
            fs::create_dir(stage.folder.join(name))?;
        }
        fs::write(stage.folder.join("HEAD"), "ref: refs/heads/none\n")?;
        fs::write(stage.folder.join("config"), config(&repository.settings()))?;
        stage.copy(&repository.own, "index")?;
        stage.copy(&repository.common, "shallow")?;
        stage.copy(&repository.common, "info/exclude")?;
        for entry in fs::read_dir(&repository.own)? {
            let name = entry?.file_name().into_string().unwrap_or_default();
            // The other half of an index that is split in two.
            if name.starts_with("sharedindex.") {
                stage.copy(&repository.own, &name)?;
            }
        }
        Ok(stage)
    }

    /// How to run `git` on the checkout of the repository.
    pub(crate) fn git<'a>(&self, repository: &'a Repository, deadline: Instant) -> Git<'a> {
        let variables = vec![
            ("GIT_DIR", self.folder.clone()),
            ("GIT_WORK_TREE", repository.root.clone()),
            ("GIT_OBJECT_DIRECTORY", repository.common.join("objects")),
        ];
        Git { folder: &repository.root, variables, deadline }
    }

    /// Puts input for a run into a file, which never makes a writer wait.
    pub(crate) fn input(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.folder.join(name);
        fs::write(&path, bytes)?;
        Ok(path)
    }

    /// Copies a file that may be missing. Links are not followed: they could lead anywhere.
    fn copy(&self, from: &Path, name: &str) -> io::Result<()> {
        let source = from.join(name);
        match fs::symlink_metadata(&source) {
            Ok(found) if found.is_file() && found.len() <= MAX_INDEX => {
                let copy = self.folder.join(name);
                fs::copy(source, &copy)?;
                // A file that was changed in the moment in which the index was written is looked into by `git`, which
                // knows that moment from the age of the index.
                fs::File::options().write(true).open(copy)?.set_modified(found.modified()?)
            }
            Ok(found) if found.is_file() => Err(io::Error::other("the index is too large")),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A configuration with nothing in it that names a program.
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

/// Makes a folder that nobody else can look into or has made before.
fn private_folder() -> io::Result<PathBuf> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_nanos());
    let name = format!("codex-git-{}-{}-{now:x}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let folder = env::temp_dir().join(name);
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&folder)?;
    Ok(folder)
}
