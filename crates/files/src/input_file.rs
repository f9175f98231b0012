//! Input files that the user names: of bounded size, and with a timeout.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

/// The time limit of a pipe between chunks.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads a whole file, or the output of a pipe.
///
/// # Errors
/// Also if it has more than `most_bytes` bytes, or if a pipe takes too long.
pub fn read_input(path: &Path, most_bytes: usize) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut file = File::from(openat(CWD, path, flags, Mode::empty())?);
    let is_pipe = FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::Fifo;
    let (mut bytes, mut piece, mut is_awaited) = (Vec::new(), vec![0; 64 * 1024], false);
    loop {
        match file.read(&mut piece) {
            // Nobody has written to the pipe yet, or nobody ever will.
            Ok(0) if is_pipe && bytes.is_empty() && !is_awaited => is_awaited = true,
            Ok(0) => return Ok(bytes),
            Ok(read) => {
                bytes.extend_from_slice(&piece[..read]);
                if bytes.len() > most_bytes {
                    let what = format!("it has more than {} MiB", most_bytes / 1024 / 1024);
                    return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
                }
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        let patience = Timespec::try_from(PATIENCE).map_err(io::Error::other)?;
        let mut waiting = [PollFd::new(&file, PollFlags::IN)];
        if poll(&mut waiting, Some(&patience)) == Ok(0) {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it has no writer"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_file_is_read_completely_or_not_at_all() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"text").unwrap();
        assert_eq!(read_input(file.path(), 1024).unwrap(), b"text");
        assert_eq!(read_input(Path::new("/dev/zero"), 1024).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_input(Path::new("/dev/null"), 1024).unwrap(), b"");
        assert_eq!(read_input(Path::new("/"), 1024).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn a_pipe_is_read_whether_its_writer_is_there_or_gone() {
        for is_gone in [true, false] {
            let (reader, mut writer) = io::pipe().unwrap();
            writer.write_all(b"text").unwrap();
            let path = format!("/dev/fd/{}", reader.as_raw_fd());
            let kept = if is_gone {
                drop(writer);
                None
            } else {
                Some(writer)
            };
            let reading = std::thread::spawn(move || read_input(Path::new(&path), 1024).unwrap());
            if let Some(mut writer) = kept {
                writer.write_all(b" and more").unwrap();
            }
            assert!(reading.join().unwrap().starts_with(b"text"));
        }
    }
}
