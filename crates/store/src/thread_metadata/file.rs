//! A metadata file: read as a whole, changed by one process at a time, replaced atomically.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Duration;

use codex_files::Links;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::MetadataError;

/// The number of attempts to take another process's lock, and their interval.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The maximum size of a file. Nothing that is written here is as large.
const MOST_BYTES: u64 = 16 << 20;

/// A metadata file, which need not exist.
#[derive(Debug)]
pub(crate) struct MetadataFile {
    path: PathBuf,
    /// Whether a person made its content, so that it must survive a crash of the machine and is never overwritten when
    /// it cannot be read.
    is_precious: bool,
}

impl MetadataFile {
    /// A file with content that a person made.
    pub(crate) fn precious(path: PathBuf) -> Self {
        Self { path, is_precious: true }
    }

    /// A file that is written often and may be lost in a power failure.
    pub(crate) fn fleeting(path: PathBuf) -> Self {
        Self { path, is_precious: false }
    }

    /// The content; empty if there is no file.
    pub(crate) fn read<T: DeserializeOwned + Default>(&self) -> Result<T, MetadataError> {
        match codex_files::open(&self.path) {
            Ok(file) => self.read_open(&file),
            Err(error) if error.is_not_found() => Ok(T::default()),
            Err(error) => Err(MetadataError::Read { path: self.path.clone(), source: error.into() }),
        }
    }

    /// Changes the content under a lock. Unchanged content is not written.
    pub(crate) fn change<T, R>(
        &self,
        mut change: impl FnMut(&mut T) -> Result<R, MetadataError>,
    ) -> Result<R, MetadataError>
    where
        T: Serialize + DeserializeOwned + Default + Clone + PartialEq,
    {
        let locked = self.lock()?;
        let before: T = self.read_open(&locked)?;
        let mut after = before.clone();
        let result = change(&mut after)?;
        if after != before {
            self.replace(&after).map_err(|source| MetadataError::Write { path: self.path.clone(), source })?;
        }
        Ok(result)
    }

    /// Removes the file.
    pub(crate) fn remove(&self) -> Result<(), MetadataError> {
        match std::fs::remove_file(&self.path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(MetadataError::Write { path: self.path.clone(), source })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn read_open<T: DeserializeOwned + Default>(&self, file: &File) -> Result<T, MetadataError> {
        let read = codex_files::read_open(file, MOST_BYTES);
        let bytes = read.map_err(|error| MetadataError::Read { path: self.path.clone(), source: error.into() })?;
        // A file that was only locked so far is empty.
        if bytes.is_empty() {
            return Ok(T::default());
        }
        match serde_json::from_slice(&bytes) {
            Err(source) if self.is_precious => Err(MetadataError::Broken { path: self.path.clone(), source }),
            read => Ok(read.unwrap_or_default()),
        }
    }

    /// Opens and locks the file. The lock is on the file that will be replaced, so it counts only while that is still
    /// in place.
    fn lock(&self) -> Result<File, MetadataError> {
        let failed = |source| MetadataError::Write { path: self.path.clone(), source };
        if let Some(folder) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
        for _ in 0..LOCK_TRIES {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let opened = codex_files::open_with(&mut options, Links::Followed, &self.path);
            let file = opened.map_err(|error| failed(error.into()))?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => std::thread::park_timeout(LOCK_PAUSE),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Ok(()) if self.is_current(&file) => return Ok(file),
                Ok(()) => {}
            }
        }
        Err(MetadataError::Busy { path: self.path.clone() })
    }

    fn is_current(&self, file: &File) -> bool {
        let (Ok(locked), Ok(present)) = (file.metadata(), self.path.metadata()) else { return false };
        (locked.dev(), locked.ino()) == (present.dev(), present.ino())
    }

    fn replace(&self, metadata: &impl Serialize) -> io::Result<()> {
        let temporary = self.path.with_extension("tmp");
        // The lock holder is alone, so this is a leftover of a killed process, or a trap.
        let _: io::Result<()> = std::fs::remove_file(&temporary);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(&serde_json::to_vec(metadata)?)?;
        if self.is_precious {
            file.sync_data()?;
        }
        std::fs::rename(&temporary, &self.path)?;
        if let Some(folder) = self.path.parent().filter(|_| self.is_precious) {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(number: u32) -> impl FnMut(&mut Vec<u32>) -> Result<(), MetadataError> {
        move |metadata| {
            metadata.push(number);
            Ok(())
        }
    }

    #[test]
    fn many_writers_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/metadata.json");
        std::thread::scope(|scope| {
            for writer in 0..4_u32 {
                let path = path.clone();
                scope.spawn(move || {
                    for number in 0..25 {
                        MetadataFile::fleeting(path.clone()).change(add(writer * 100 + number)).unwrap();
                    }
                });
            }
        });
        let mut metadata: Vec<u32> = MetadataFile::fleeting(path.clone()).read().unwrap();
        metadata.sort_unstable();
        let all: Vec<u32> = (0..4).flat_map(|writer| (0..25).map(move |number| writer * 100 + number)).collect();
        assert_eq!(metadata, all);
        let names: Vec<_> =
            path.parent().unwrap().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["metadata.json"]);
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn unreadable_data_of_a_person_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metadata.json");
        std::fs::write(&path, "[1, 2").unwrap();
        let error = MetadataFile::precious(path.clone()).change(add(3)).unwrap_err();
        assert!(error.to_string().ends_with("has unexpected content; fix it or move it away"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[1, 2");
        MetadataFile::fleeting(path.clone()).change(add(3)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[3]");
    }

    #[test]
    fn a_change_that_is_refused_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let metadata = MetadataFile::precious(folder.path().join("metadata.json"));
        metadata.change(add(1)).unwrap();
        let refuse = |metadata: &mut Vec<u32>| -> Result<(), MetadataError> {
            metadata.clear();
            Err(MetadataError::Busy { path: PathBuf::new() })
        };
        assert!(metadata.change(refuse).is_err());
        assert_eq!(metadata.read::<Vec<u32>>().unwrap(), [1]);
        metadata.remove().unwrap();
        metadata.remove().unwrap();
        assert!(metadata.read::<Vec<u32>>().unwrap().is_empty());
    }

    #[test]
    fn notes_that_never_end_are_an_error() {
        use codex_files::testing::{Endless, soon};

        for kind in Endless::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("metadata.json");
            kind.make(&path).unwrap();
            let (metadata, again) = (MetadataFile::fleeting(path.clone()), MetadataFile::fleeting(path));
            let error = soon(move || metadata.read::<Vec<u32>>()).unwrap().unwrap_err();
            assert!(error.to_string().contains("metadata.json"), "{error}");
            assert!(soon(move || again.change(add(1))).unwrap().is_err(), "{kind:?}");
        }
    }

    #[test]
    fn a_pipe_in_the_place_of_the_new_file_is_removed() {
        use codex_files::testing::{Endless, soon};

        for kind in Endless::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("metadata.json");
            kind.make(&path.with_extension("tmp")).unwrap();
            let metadata = MetadataFile::precious(path.clone());
            soon(move || metadata.change(add(1))).unwrap().unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "[1]");
        }
    }
}
