//! Listening on Unix sockets, which only their owner can reach.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

use crate::unix::open_lock;

/// The maximum path length in a socket address.
const PATH_BYTES: usize = if cfg!(target_os = "linux") { 107 } else { 103 };
/// The time limit for a server to accept the connection that tests whether it is alive.
const KNOCK: Duration = Duration::from_secs(1);
/// The number of attempts to take the lock, because a process that looks up the owner holds it for a moment.
const LOCK_TRIES: u32 = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// The reason why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("the path of a socket has at most {PATH_BYTES} bytes; {path} is longer", path = .path.display())]
    TooLong { path: PathBuf },
    #[error("could not create or inspect the folder {path}", path = .path.display())]
    Folder { path: PathBuf, source: io::Error },
    /// Another user could replace it by another socket.
    #[error("the folder {path} is not safe for a socket: {why}", path = .path.display())]
    Unsafe { path: PathBuf, why: &'static str },
    /// The path exists and is not our socket.
    #[error("{path} exists already and is not a socket of this user", path = .path.display())]
    Occupied { path: PathBuf },
    #[error("a server listens on {path} already", path = .path.display())]
    InUse { path: PathBuf },
    #[error("could not listen on {path}", path = .path.display())]
    Bind { path: PathBuf, source: io::Error },
}

/// A listening socket. Its file is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    /// The identity of the file, so that nobody else's is removed.
    file: (u64, u64),
    lock: File,
}

impl UnixSocket {
    /// Listens on a path. A stale socket is replaced.
    pub(crate) async fn bind(path: &Path) -> Result<Self, SocketError> {
        let path = checked(path)?;
        let failed = |source| SocketError::Bind { path: path.clone(), source };
        let mut lock = lock(&path).await?;
        clear(&path).await?;
        let listener = UnixListener::bind(&path).map_err(failed)?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(failed)?;
        let metadata = std::fs::symlink_metadata(&path).map_err(failed)?;
        let file = (metadata.dev(), metadata.ino());
        lock.set_len(0).and_then(|()| lock.rewind()).map_err(failed)?;
        writeln!(lock, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { listener, path, file, lock })
    }

    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        let is_ours = std::fs::symlink_metadata(&self.path).is_ok_and(|it| (it.dev(), it.ino()) == self.file);
        if is_ours {
            // If this fails, clients still notice that nobody listens.
            let _: io::Result<()> = std::fs::remove_file(&self.path);
        }
        // The lock file stays: removing it would let two processes hold the lock.
        let _: io::Result<()> = self.lock.set_len(0);
    }
}

/// Checks the folder of a socket, creates it if it is missing, and returns the path without links.
fn checked(path: &Path) -> Result<PathBuf, SocketError> {
    let occupied = || SocketError::Occupied { path: path.to_owned() };
    let (parent, name) = path.parent().zip(path.file_name()).ok_or_else(occupied)?;
    let failed = |source| SocketError::Folder { path: parent.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(failed)?;
    let is_unsafe = |path: &Path, why| Err(SocketError::Unsafe { path: path.to_owned(), why });
    let metadata = std::fs::symlink_metadata(parent).map_err(failed)?;
    if metadata.is_symlink() {
        return is_unsafe(parent, "it is a symbolic link");
    }
    if ![0, rustix::process::geteuid().as_raw()].contains(&metadata.uid()) {
        return is_unsafe(parent, "it belongs to another user");
    }
    let parent = parent.canonicalize().map_err(failed)?;
    for folder in parent.ancestors() {
        let mode = std::fs::metadata(folder).map_err(failed)?.mode();
        // In a folder with the sticky bit nobody can move the files of others.
        if mode & 0o002 != 0 && mode & 0o1000 == 0 {
            return is_unsafe(folder, "everybody may write to it");
        }
    }
    let path = parent.join(name);
    if path.as_os_str().len() > PATH_BYTES { Err(SocketError::TooLong { path }) } else { Ok(path) }
}

/// Takes the lock of a path, which a process holds as long as it listens there.
async fn lock(path: &Path) -> Result<File, SocketError> {
    let failed = |source| SocketError::Bind { path: path.to_owned(), source };
    let file = open_lock(path, true).map_err(failed)?;
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::WouldBlock) => sleep(BETWEEN_TRIES).await,
            Err(std::fs::TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    Err(SocketError::InUse { path: path.to_owned() })
}

/// Removes a stale socket and nothing else.
async fn clear(path: &Path) -> Result<(), SocketError> {
    let failed = |source| SocketError::Bind { path: path.to_owned(), source };
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if !metadata.file_type().is_socket() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(SocketError::Occupied { path: path.to_owned() });
    }
    // A program that does not know our lock may listen there.
    match timeout(KNOCK, UnixStream::connect(path)).await {
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(failed)
        }
        Ok(Err(error)) => Err(failed(error)),
        Ok(Ok(_)) | Err(_) => Err(SocketError::InUse { path: path.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::unix::owner;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        (folder, path)
    }

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    #[tokio::test]
    async fn a_socket_is_its_owners_alone_and_gone_with_the_server() {
        let (_kept, root) = folder();
        let path = root.join("run/deep/socket");
        let socket = UnixSocket::bind(&path).await.unwrap();
        assert_eq!((mode(&root.join("run")), mode(&root.join("run/deep")), mode(&path)), (0o700, 0o700, 0o600));
        assert_eq!(owner(&path), i32::try_from(std::process::id()).ok());
        drop(socket);
        assert!(!path.exists());
        assert_eq!(owner(&path), None);
    }

    #[tokio::test]
    async fn a_live_socket_stays_and_a_stale_one_is_replaced() {
        let (_kept, root) = folder();
        let path = root.join("socket");
        let first = UnixSocket::bind(&path).await.unwrap();
        assert!(matches!(UnixSocket::bind(&path).await, Err(SocketError::InUse { .. })));
        assert!(UnixStream::connect(&path).await.is_ok());
        drop(first);
        // A killed program leaves its socket behind.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(UnixSocket::bind(&path).await.unwrap());
        let foreign = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(matches!(UnixSocket::bind(&path).await, Err(SocketError::InUse { .. })));
        drop(foreign);
    }

    #[tokio::test]
    async fn links_and_files_in_its_place_are_not_removed() {
        let (_kept, root) = folder();
        std::fs::write(root.join("file"), "precious").unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        symlink(root.join("real"), root.join("linked")).unwrap();
        symlink(root.join("nowhere"), root.join("dangling")).unwrap();
        symlink(root.join("file"), root.join("locked.lock")).unwrap();
        for name in ["file", "dangling"] {
            let bound = UnixSocket::bind(&root.join(name)).await;
            assert!(matches!(bound, Err(SocketError::Occupied { .. })), "{name}: {bound:?}");
        }
        let bound = UnixSocket::bind(&root.join("linked/socket")).await;
        assert!(matches!(bound, Err(SocketError::Unsafe { .. })), "{bound:?}");
        let bound = UnixSocket::bind(&root.join("locked")).await;
        assert!(matches!(bound, Err(SocketError::Bind { .. })), "{bound:?}");
        assert_eq!(std::fs::read_to_string(root.join("file")).unwrap(), "precious");
        assert!(!root.join("nowhere").exists());
    }

    #[tokio::test]
    async fn a_folder_that_everybody_writes_to_is_refused_unless_it_is_sticky() {
        let (_kept, root) = folder();
        let open = root.join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        let bound = UnixSocket::bind(&open.join("below/socket")).await;
        assert!(matches!(bound, Err(SocketError::Unsafe { .. })), "{bound:?}");
        std::fs::set_permissions(&open, Permissions::from_mode(0o1777)).unwrap();
        assert!(UnixSocket::bind(&open.join("socket")).await.is_ok());
    }

    #[tokio::test]
    async fn a_path_that_is_too_long_is_named() {
        let (_kept, root) = folder();
        let bound = UnixSocket::bind(&root.join("x".repeat(120))).await;
        assert!(matches!(bound, Err(SocketError::TooLong { .. })), "{bound:?}");
    }
}
