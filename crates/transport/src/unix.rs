//! Unix sockets: both sides check the other's user, and a lock next to a socket names the process that listens on it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use codex_files::Links;

/// Whether a user may connect to a server of another: only the same user and root, who can do anything anyway.
#[must_use]
pub fn is_welcome(peer: u32, own: u32) -> bool {
    peer == own || peer == 0
}

/// Whether the other side of a socket is trusted.
#[cfg(any(feature = "dial", feature = "listen"))]
pub(crate) fn is_trusted(stream: &tokio::net::UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| is_welcome(peer.uid(), own))
}

/// The process that listens on a socket, according to its lock; `None` if there is none.
#[must_use]
pub fn owner(path: &Path) -> Option<i32> {
    let mut file = open_lock(path, false).ok()?;
    match file.try_lock_shared() {
        Err(std::fs::TryLockError::WouldBlock) => {}
        Ok(()) | Err(std::fs::TryLockError::Error(_)) => return None,
    }
    let mut text = String::new();
    (&mut file).take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok().filter(|pid| *pid > 1)
}

/// The process that listens on a socket, as the system tells it; `None` if nobody does.
#[cfg(feature = "dial")]
pub async fn listening(path: &Path) -> Option<i32> {
    let stream = tokio::net::UnixStream::connect(path).await.ok().filter(is_trusted)?;
    stream.peer_cred().ok()?.pid()
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// Opens the lock next to a socket.
pub(crate) fn open_lock(path: &Path, create: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(create).create(create).truncate(false).mode(0o600);
    Ok(codex_files::open_with(&mut options, Links::Refused, &lock_path(path))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_user_and_root_are_welcome() {
        assert!(is_welcome(1000, 1000) && is_welcome(0, 1000) && is_welcome(0, 0));
        assert!(!is_welcome(1001, 1000) && !is_welcome(1000, 0) && !is_welcome(65534, 1000));
    }
}
