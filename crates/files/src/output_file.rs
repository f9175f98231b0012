//! Output files that the user names, and that a model may have tampered with.
//!
//! Invariants: a file is opened before anything runs and written through that descriptor. Its last component is not
//! followed as a link, and no folder below the working directory leads out of it. No operation blocks forever. The old
//! content is kept until there is a replacement.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

/// The time limit for a pipe or a terminal to accept more data.
const PATIENCE: Duration = Duration::from_secs(10);

/// The reason why a file cannot be written. The caller adds the path.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// Its last component is a link.
    #[error("it is a link, and links are not followed here")]
    Link,
    #[error("it leads to {0}, which is outside of the working directory")]
    LeadsOut(PathBuf),
    #[error("it is a folder")]
    Folder,
    #[error("it is a pipe or a socket without a reader")]
    NoReader,
    #[error("it is not a writable file")]
    Unfit,
    #[error("it was moved or replaced in the meantime")]
    Replaced,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl OutputError {
    /// A next step for the person.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Link | Self::LeadsOut(_) => "name its target instead",
            Self::NoReader => "start the reader first",
            Self::Folder | Self::Unfit | Self::Replaced | Self::Io(_) => return None,
        };
        Some(hint.to_owned())
    }
}

impl From<Errno> for OutputError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::LOOP => Self::Link,
            Errno::ISDIR => Self::Folder,
            Errno::NXIO => Self::NoReader,
            error => Self::Io(error.into()),
        }
    }
}

/// An output file, open and not written to yet.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    file: File,
    /// Its folder and name; `None` for a descriptor without a name.
    place: Option<(OwnedFd, PathBuf)>,
    /// Whether the file is new, so that it is removed again if nothing is written.
    is_new: bool,
}

impl OutputFile {
    /// Opens a file. `root` is where commands may write, and `stdout` is the target of `/dev/stdout`.
    pub fn open(path: &Path, root: &Path, stdout: impl AsFd) -> Result<Self, OutputError> {
        if let Some(number) = descriptor(path) {
            let file = match number {
                1 => stdout.as_fd().try_clone_to_owned()?,
                2 => io::stderr().as_fd().try_clone_to_owned()?,
                number => reopened(number)?,
            };
            return Ok(Self { path: path.to_owned(), file: file.into(), place: None, is_new: false });
        }
        let name = path.file_name().ok_or(OutputError::Folder)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        stays_inside(parent, root)?;
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let folder = openat(CWD, parent, flags, Mode::empty()).map_err(io::Error::from)?;
        let (file, is_new) = open_in(&folder, name.as_ref())?;
        let place = Some((folder, PathBuf::from(name)));
        Ok(Self { path: path.to_owned(), file, place, is_new })
    }

    /// The path as the user gave it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it stands for standard output.
    #[must_use]
    pub fn is_stdout(&self) -> bool {
        descriptor(&self.path) == Some(1)
    }

    /// Replaces the content with that which `write` writes.
    pub fn replace_with(mut self, write: impl FnOnce(&mut TimedWriter) -> io::Result<()>) -> Result<(), OutputError> {
        let mut output = TimedWriter(self.emptied()?);
        write(&mut output)?;
        self.check(&output.0)
    }

    /// The emptied file. If it was removed in the meantime, a new one is created in the same folder.
    pub fn emptied(&mut self) -> Result<File, OutputError> {
        self.is_new = false;
        let file = match &self.place {
            Some((folder, name)) if !is_at(&self.file, folder, name) => open_in(folder, name)?.0,
            _ => self.file.try_clone()?,
        };
        // An inherited descriptor is written at its current position.
        if self.place.is_some() && kind(&file)? == FileType::RegularFile {
            file.set_len(0)?;
        }
        Ok(file)
    }

    /// Checks that the path still leads to the file that was written.
    fn check(&self, file: &File) -> Result<(), OutputError> {
        if self.place.is_none() || is_at(file, CWD, &self.path) {
            return Ok(());
        }
        Err(OutputError::Replaced)
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some((folder, name)) = &self.place
            && self.is_new
            && is_at(&self.file, folder, name)
        {
            // A leftover empty file does no harm.
            let _: rustix::io::Result<()> = unlinkat(folder, name, AtFlags::empty());
        }
    }
}

/// The descriptor that a path stands for.
fn descriptor(path: &Path) -> Option<u32> {
    match path.to_str()? {
        "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        text => text.strip_prefix("/dev/fd/").or_else(|| text.strip_prefix("/proc/self/fd/"))?.parse().ok(),
    }
}

/// Reopens a descriptor of this process: its provider has chosen where it leads.
fn reopened(number: u32) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(openat(CWD, format!("/dev/fd/{number}"), flags, Mode::empty())?)
}

/// Refuses a folder below the working directory that a link redirects elsewhere. Commands can create such links.
fn stays_inside(parent: &Path, root: &Path) -> Result<(), OutputError> {
    let (named, real) = (std::path::absolute(parent)?, parent.canonicalize()?);
    let Ok(root) = root.canonicalize() else { return Ok(()) };
    // A path with `..` leads elsewhere explicitly.
    let is_straight = !parent.components().any(|component| component == Component::ParentDir);
    let is_root = |folder: &Path| folder.canonicalize().is_ok_and(|folder| folder == root);
    if is_straight && !real.starts_with(&root) && named.ancestors().any(is_root) {
        return Err(OutputError::LeadsOut(real));
    }
    Ok(())
}

/// Opens or creates a file in a folder. Returns whether it was created.
fn open_in(folder: &OwnedFd, name: &Path) -> Result<(File, bool), OutputError> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let made = openat(folder, name, flags | OFlags::CREATE | OFlags::EXCL, Mode::from_raw_mode(0o666));
    let file = match made {
        Ok(file) => return Ok((file.into(), true)),
        Err(Errno::EXIST) => File::from(openat(folder, name, flags, Mode::empty())?),
        Err(error) => return Err(error.into()),
    };
    match kind(&file)? {
        FileType::RegularFile | FileType::CharacterDevice | FileType::Fifo => Ok((file, false)),
        _ => Err(OutputError::Unfit),
    }
}

fn kind(file: &File) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(fstat(file)?.st_mode))
}

/// Whether a name leads to a file, and not through a link.
fn is_at(file: &File, folder: impl AsFd, name: &Path) -> bool {
    let same = |a: Stat, b: Stat| (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino);
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    fstat(file).is_ok_and(|open| found.is_ok_and(|found| same(open, found)))
}

/// A file that may not accept everything at once. Writing waits for it, with a timeout.
#[derive(Debug)]
pub struct TimedWriter(pub File);

impl Write for TimedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
            let patience = Timespec::try_from(PATIENCE).map_err(io::Error::other)?;
            let mut waiting = [PollFd::new(&self.0, PollFlags::OUT)];
            match poll(&mut waiting, Some(&patience)) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with a project and something outside of it.
    struct Place {
        folder: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(folder.path().join("project/sub")).unwrap();
            std::fs::create_dir(folder.path().join("outside")).unwrap();
            std::fs::write(folder.path().join("outside/file"), "theirs").unwrap();
            Self { folder }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn open(&self, name: &str) -> Result<OutputFile, OutputError> {
            OutputFile::open(&self.path(name), &self.path("project"), io::stdout())
        }

        fn text(&self, name: &str) -> Option<String> {
            std::fs::read_to_string(self.path(name)).ok()
        }

        /// Opens a file, lets something happen, and writes to it. Everything outside must be unchanged.
        #[track_caller]
        fn check(&self, name: &str, meanwhile: impl FnOnce(), expected: &str) {
            let file = self.open(name).unwrap();
            meanwhile();
            let written = file.replace_with(answer);
            let told = written.map_or_else(|error| error.to_string(), |()| "written".to_owned());
            assert_eq!(told, expected);
            assert_eq!(self.text("outside/file").as_deref(), Some("theirs"));
            assert!(!self.path("outside/new").exists());
        }
    }

    #[test]
    fn the_old_file_stays_until_there_is_a_new_one() {
        let place = Place::new();
        std::fs::write(place.path("project/last.txt"), "an earlier and longer answer").unwrap();
        let file = place.open("project/last.txt").unwrap();
        assert_eq!(place.text("project/last.txt").as_deref(), Some("an earlier and longer answer"));
        drop(file);
        assert_eq!(place.text("project/last.txt").as_deref(), Some("an earlier and longer answer"));
        place.check("project/last.txt", || {}, "written");
        assert_eq!(place.text("project/last.txt").as_deref(), Some("answer"));
    }

    #[test]
    fn a_new_file_goes_again_if_there_is_nothing_to_put_into_it() {
        let place = Place::new();
        let file = place.open("project/new.txt").unwrap();
        assert!(place.path("project/new.txt").exists());
        drop(file);
        assert!(!place.path("project/new.txt").exists());
        // A file that another program has put in its place stays.
        let file = place.open("project/new.txt").unwrap();
        std::fs::remove_file(place.path("project/new.txt")).unwrap();
        std::fs::write(place.path("project/new.txt"), "theirs").unwrap();
        drop(file);
        assert_eq!(place.text("project/new.txt").as_deref(), Some("theirs"));
    }

    #[test]
    fn a_replacement_of_the_file_is_not_followed() {
        for target in ["outside/file", "outside/new"] {
            let place = Place::new();
            let plant = || {
                std::fs::remove_file(place.path("project/last.txt")).unwrap();
                symlink(place.path(target), place.path("project/last.txt")).unwrap();
            };
            let told = "it is a link, and links are not followed here";
            place.check("project/last.txt", plant, told);
        }
        let place = Place::new();
        let plant = || {
            std::fs::rename(place.path("project/sub"), place.path("project/moved")).unwrap();
            symlink(place.path("outside"), place.path("project/sub")).unwrap();
        };
        place.check("project/sub/file", plant, "it was moved or replaced in the meantime");
        let place = Place::new();
        let plant = || {
            std::fs::remove_file(place.path("project/last.txt")).unwrap();
            make_fifo(&place.path("project/last.txt"));
        };
        place.check("project/last.txt", plant, "it is a pipe or a socket without a reader");
    }

    #[test]
    fn a_deleted_or_recreated_file_is_written_anyway() {
        let place = Place::new();
        place.check("project/last.txt", || std::fs::remove_file(place.path("project/last.txt")).unwrap(), "written");
        assert_eq!(place.text("project/last.txt").as_deref(), Some("answer"));
        let anew = || {
            std::fs::write(place.path("project/aside"), "the model's own, which is longer").unwrap();
            std::fs::rename(place.path("project/aside"), place.path("project/last.txt")).unwrap();
        };
        place.check("project/last.txt", anew, "written");
        assert_eq!(place.text("project/last.txt").as_deref(), Some("answer"));
        let gone = || std::fs::remove_dir_all(place.path("project/sub")).unwrap();
        place.check("project/sub/last.txt", gone, "No such file or directory (os error 2)");
    }

    #[test]
    fn an_unwritable_target_is_reported_at_once() {
        let place = Place::new();
        symlink(place.path("outside/file"), place.path("project/link")).unwrap();
        symlink(place.path("outside"), place.path("project/out")).unwrap();
        make_fifo(&place.path("project/fifo"));
        let socket = std::os::unix::net::UnixListener::bind(place.path("project/socket")).unwrap();
        for (name, expected) in [
            ("project/link", "it is a link, and links are not followed here"),
            ("project/out/file", "it leads to TEMP/outside, which is outside of the working directory"),
            ("project/fifo", "it is a pipe or a socket without a reader"),
            ("project/socket", "it is a pipe or a socket without a reader"),
            ("project/sub", "it is a folder"),
            ("project/gone/file", "No such file or directory (os error 2)"),
        ] {
            let error = place.open(name).unwrap_err().to_string();
            let real = place.folder.path().canonicalize().unwrap().display().to_string();
            assert_eq!(error.replace(&real, "TEMP"), expected);
        }
        assert_eq!(place.text("outside/file").as_deref(), Some("theirs"));
        drop(socket);
    }

    #[test]
    fn devices_pipes_and_descriptors_take_the_text() {
        let place = Place::new();
        place.open("/dev/null").unwrap().replace_with(answer).unwrap();
        // A pipe with a reader, by name and by number.
        make_fifo(&place.path("project/fifo"));
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut reader = File::from(openat(CWD, place.path("project/fifo"), flags, Mode::empty()).unwrap());
        place.open("project/fifo").unwrap().replace_with(answer).unwrap();
        let (mut numbered, writer) = io::pipe().unwrap();
        place.open(&format!("/dev/fd/{}", writer.as_raw_fd())).unwrap().replace_with(answer).unwrap();
        drop(writer);
        for pipe in [&mut reader as &mut dyn Read, &mut numbered] {
            let mut text = String::new();
            pipe.read_to_string(&mut text).unwrap();
            assert_eq!(text, "answer");
        }
        // A file is written at the position of its descriptor.
        let mut file = File::create(place.path("project/log")).unwrap();
        file.write_all(b"before: ").unwrap();
        OutputFile::open(Path::new("/dev/stdout"), &place.path("project"), &file)
            .unwrap()
            .replace_with(|output| output.write_all(b"one,"))
            .unwrap();
        place
            .open(&format!("/proc/self/fd/{}", file.as_raw_fd()))
            .unwrap()
            .replace_with(|output| output.write_all(b"two"))
            .unwrap();
        assert_eq!(place.text("project/log").as_deref(), Some("before: one,two"));
    }

    fn answer(output: &mut TimedWriter) -> io::Result<()> {
        output.write_all(b"answer")
    }

    fn make_fifo(path: &Path) {
        rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    }
}
