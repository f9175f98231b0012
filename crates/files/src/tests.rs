use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::*;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, bytes: &[u8]) -> PathBuf {
        let path = self.path("file");
        fs::write(&path, bytes).unwrap();
        path
    }

    fn fifo(&self) -> PathBuf {
        let path = self.path("fifo");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        path
    }

    fn link(&self, target: &str) -> PathBuf {
        let path = self.path("link");
        symlink(target, &path).unwrap();
        path
    }

    fn sparse(&self, length: u64) -> PathBuf {
        let path = self.path("sparse");
        fs::File::create(&path).unwrap().set_len(length).unwrap();
        path
    }
}

#[track_caller]
fn check<T: std::fmt::Debug>(read: Result<T, FileError>, expected: &str) {
    let error = read.unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert_eq!(io::Error::from(error).to_string(), expected);
}

#[test]
fn a_file_is_read_up_to_its_limit() {
    let folder = Folder::new();
    let path = folder.file(b"1234");
    assert_eq!(read(&path, 4).unwrap(), b"1234");
    assert_eq!(read_text(&path, 5).unwrap(), "1234");
    check(read(&path, 3), "it is longer than 3 bytes");
    assert_eq!(read_start(&path, 3).unwrap(), (b"123".to_vec(), false));
    assert_eq!(read_start(&path, 4).unwrap(), (b"1234".to_vec(), true));
    assert_eq!(read_text(&folder.file(b""), 0).unwrap(), "");
    check(read_text(&folder.file(&[0xff]), 9), "stream did not contain valid UTF-8");
}

#[test]
fn a_pipe_without_a_writer_is_refused_at_once() {
    let folder = Folder::new();
    let fifo = folder.fifo();
    for path in [fifo.clone(), folder.link("fifo")] {
        check(read(&path, 9), "it is not a regular file");
        check(read_text(&path, 9), "it is not a regular file");
        check(read_start(&path, 9), "it is not a regular file");
        check(open(&path), "it is not a regular file");
        let mut options = fs::OpenOptions::new();
        check(open_with(options.append(true).create(true), Links::Followed, &path), "it is not a regular file");
    }
}

#[test]
fn a_device_is_refused() {
    let folder = Folder::new();
    for path in [folder.link("/dev/zero"), "/dev/null".into(), "/dev/tty".into()] {
        let refused = read(&path, 9).unwrap_err();
        assert!(matches!(refused, FileError::NotRegular), "{refused}");
    }
}

#[test]
fn folders_and_missing_files_have_the_errors_of_the_system() {
    let folder = Folder::new();
    let error = read(folder.0.path(), 9).unwrap_err();
    assert_eq!(error.to_string(), fs::read(folder.0.path()).unwrap_err().to_string());
    let missing = read(&folder.path("missing"), 9).unwrap_err();
    assert!(missing.is_not_found());
    assert_eq!(missing.to_string(), fs::read(folder.path("missing")).unwrap_err().to_string());
}

#[test]
fn a_link_to_a_file_is_followed_unless_it_is_refused() {
    let folder = Folder::new();
    folder.file(b"text");
    let link = folder.link("file");
    assert_eq!(read(&link, 9).unwrap(), b"text");
    let refused = open_with(fs::OpenOptions::new().read(true), Links::Refused, &link).unwrap_err();
    assert!(refused.to_string().contains("symbolic links"), "{refused}");
}

#[test]
fn a_sparse_file_costs_nothing() {
    let folder = Folder::new();
    let path = folder.sparse(1 << 40);
    check(read(&path, 1 << 20), "it is longer than 1048576 bytes");
    check(open(&path), "it is a sparse file");
    assert_eq!(read_start(&path, 2).unwrap(), (vec![0, 0], false));
    // The first line of a rollout may be there, and then nothing.
    let mut file = fs::OpenOptions::new().append(true).open(folder.file(b"line\n")).unwrap();
    file.set_len(1 << 40).unwrap();
    file.write_all(b"line\n").unwrap();
    check(open(&folder.path("file")), "it is a sparse file");
    assert!(open(&folder.sparse(1 << 20)).is_ok(), "a short one is read");
}

/// A separate process takes the lease: the standard library has no `fcntl` for that.
#[test]
fn a_file_under_a_lease_is_waited_for_a_second() {
    let folder = Folder::new();
    let path = folder.file(b"text");
    let script = "import fcntl, os, signal, sys\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\n\
                  fd = os.open(sys.argv[1], os.O_RDONLY)\nfcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n\
                  print('held', flush=True)\nsys.stdin.read()\n";
    let mut command = std::process::Command::new("python3");
    command.args(["-c", script]).arg(&path);
    let spawned = command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn();
    // Without Python or leases there is nothing to test.
    let Ok(mut holder) = spawned else { return };
    let mut said = String::new();
    io::BufRead::read_line(&mut io::BufReader::new(holder.stdout.take().unwrap()), &mut said).unwrap();
    if said == "held\n" {
        let begun = std::time::Instant::now();
        check(read(&path, 9), "another process holds a lease on it");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
    drop(holder.stdin.take());
    holder.wait().unwrap();
    assert_eq!(read(&path, 9).unwrap(), b"text");
}
