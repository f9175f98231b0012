//! The log of a background server: its standard error, in files of bounded size.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::Context;
use codex_files::Links;

/// The maximum size of a file. One older file is kept.
const FILE_BYTES: u64 = 1024 * 1024;
/// The time to wait for pending output on exit. Child processes may hold standard error open.
const PATIENCE: Duration = Duration::from_secs(1);

/// An open log.
pub(crate) struct Log {
    /// Closed when everything is written.
    written: Receiver<()>,
}

/// Redirects standard error to a log.
pub(crate) fn keep(path: &Path) -> anyhow::Result<Log> {
    let failed = || format!("could not write the log {}", path.display());
    let mut file = Rotated::open(path).with_context(failed)?;
    let (reading, writing) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).with_context(failed)?;
    rustix::stdio::dup2_stderr(writing).with_context(failed)?;
    let (done, written) = channel();
    std::thread::spawn(move || {
        let (mut reading, mut bytes) = (File::from(reading), [0; 8192]);
        while let Ok(read @ 1..) = reading.read(&mut bytes) {
            file.write(&bytes[..read]);
        }
        drop(done);
    });
    Ok(Log { written })
}

impl Log {
    /// Flushes the log.
    pub(crate) fn close(self) {
        if let Ok(nowhere) = OpenOptions::new().write(true).open("/dev/null")
            && rustix::stdio::dup2_stderr(&nowhere).is_ok()
            && rustix::stdio::dup2_stdout(&nowhere).is_ok()
        {
            // It ends with an error either way, because nothing is ever sent.
            let _: Result<(), _> = self.written.recv_timeout(PATIENCE);
        }
    }
}

/// A file that is rotated when it is full.
struct Rotated {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Rotated {
    fn open(path: &Path) -> std::io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        let file = codex_files::open_with(&mut options, Links::Refused, path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, bytes })
    }

    /// Writes as well as it can: a full disk is no reason to exit.
    fn write(&mut self, bytes: &[u8]) {
        if self.bytes + bytes.len() as u64 > FILE_BYTES {
            let older = self.path.with_extension("log.1");
            let renewed = std::fs::rename(&self.path, older).and_then(|()| Self::open(&self.path));
            if let Ok(renewed) = renewed {
                *self = renewed;
            } else {
                // If no new file can be created, the old one is truncated.
                let _: std::io::Result<()> = self.file.set_len(0);
                self.bytes = 0;
            }
        }
        if self.file.write_all(bytes).is_ok() {
            self.bytes += bytes.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_two_files_of_bounded_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app-server.log");
        let mut log = Rotated::open(&path).unwrap();
        for number in 0..400_u32 {
            log.write(format!("{number:08}{}\n", "x".repeat(8000)).as_bytes());
        }
        let sizes: Vec<u64> =
            std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().metadata().unwrap().len()).collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|size| *size <= FILE_BYTES), "{sizes:?}");
        let last = std::fs::read_to_string(&path).unwrap();
        assert!(last.lines().last().unwrap().starts_with("00000399"));
    }
}
