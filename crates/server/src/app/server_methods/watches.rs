//! `fs/watch`, `fs/unwatch` and `fs/changed`.
//!
//! A folder is watched with the files in it, but not with its subfolders. Anything else is watched through its folder,
//! so that a file that is replaced, removed or not created yet is noticed as well.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::empty::Empty;
use codex_protocol::v2::fs::{FsUnwatchParams, FsWatchParams, FsWatchResponse};
use tokio::task::AbortHandle;

use super::files::failed;
use crate::app::connection::{Connection, lock};
use crate::app::disk::{self, in_place};
use crate::app::dispatch::serve;

/// The maximum number of watches of a client; each needs a descriptor.
const MOST_WATCHES: usize = 64;

/// The watches of a client, by its own ids.
#[derive(Debug, Default)]
pub(super) struct Watches {
    all: Mutex<HashMap<String, AbortHandle>>,
}

impl Watches {
    /// Removes all watches.
    pub(super) fn end(&self) {
        for (_, watch) in lock(&self.all).drain() {
            watch.abort();
        }
    }
}

serve! {
    sure {
        FsUnwatch => unwatch,
    }
    waits {
        FsWatch => watch,
    }
}

async fn watch(connection: &Arc<Connection>, params: FsWatchParams) -> Result<FsWatchResponse, ErrorObject> {
    let path = super::files::absolute(params.path)?;
    let places = &connection.host.places.files;
    let opened = in_place(places, disk::USUAL, move || platform::open(&path).map_err(failed("watch", &path))).await?;
    let mut all = lock(&connection.resources.watches.all);
    // A watch whose folder is gone has ended by itself.
    all.retain(|_, watch| !watch.is_finished());
    if all.contains_key(&params.watch_id) {
        return Err(ErrorObject::invalid(format!("there is a watch {:?} already", params.watch_id)));
    }
    if all.len() >= MOST_WATCHES {
        return Err(ErrorObject::invalid(format!("at most {MOST_WATCHES} paths may be watched")));
    }
    let (path, watch) = platform::start(connection, params.watch_id.clone(), opened)?;
    all.insert(params.watch_id, watch);
    Ok(FsWatchResponse { path })
}

fn unwatch(connection: &Arc<Connection>, params: FsUnwatchParams) -> Empty {
    // Removing a watch that does not exist succeeds.
    if let Some(watch) = lock(&connection.resources.watches.all).remove(&params.watch_id) {
        watch.abort();
    }
    Empty {}
}

#[cfg(target_os = "linux")]
mod platform {
    use std::collections::BTreeSet;
    use std::ffi::{OsStr, OsString};
    use std::io;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::time::Duration;

    use codex_protocol::rpc::ErrorObject;
    use codex_protocol::v2::fs::FsChangedNotification;
    use codex_protocol::v2::notification::ServerNotification;
    use rustix::fs::inotify::{CreateFlags, ReadFlags, WatchFlags, add_watch, init};
    use tokio::io::AsyncReadExt as _;
    use tokio::net::unix::pipe::Receiver;
    use tokio::task::AbortHandle;

    use crate::app::connection::Connection;
    use crate::app::server_methods::files::failed;
    use crate::app::stored_threads::tell;

    /// The time for which changes are collected before they are reported, because one save causes several.
    const GATHERED: Duration = Duration::from_millis(50);
    /// The number of bytes that are read at once.
    const READ_BYTES: usize = 16 * 1024;
    /// The size of the fixed part of a change: watch, kind, cookie and the length of the name.
    const HEAD_BYTES: usize = 16;

    /// A watched path.
    struct Watched {
        folder: PathBuf,
        /// The only name in it that is watched.
        only: Option<OsString>,
        changes: Receiver,
    }

    /// A watched path before its changes are read.
    pub(super) struct Opened {
        /// The path as the client sees it.
        shown: PathBuf,
        folder: PathBuf,
        only: Option<OsString>,
        inotify: OwnedFd,
    }

    /// Starts to watch and returns the watched path without links.
    pub(super) fn start(
        connection: &Arc<Connection>,
        name: String,
        opened: Opened,
    ) -> Result<(PathBuf, AbortHandle), ErrorObject> {
        let Opened { shown, folder, only, inotify } = opened;
        // It is not a pipe, but is read like one.
        let inotify = Receiver::from_owned_fd_unchecked(inotify).map_err(failed("watch", &shown))?;
        let mut watched = Watched { folder, only, changes: inotify };
        let (connection, root) = (Arc::clone(connection), shown.clone());
        let task = tokio::spawn(async move {
            while let Ok((changed, is_last)) = watched.next(&root).await {
                if !changed.is_empty() {
                    let (watch_id, changed_paths) = (name.clone(), changed.into_iter().collect());
                    let changed = FsChangedNotification { watch_id, changed_paths };
                    tell(&connection, ServerNotification::FsChanged(changed)).await;
                }
                if is_last {
                    break;
                }
            }
        });
        Ok((shown, task.abort_handle()))
    }

    /// Resolves a path and watches it. This function blocks; call it off the async threads.
    pub(super) fn open(path: &Path) -> io::Result<Opened> {
        let real = path.canonicalize();
        let (folder, only) = match &real {
            Ok(real) if real.is_dir() => (real.clone(), None),
            _ => {
                let path = real.as_deref().unwrap_or(path);
                let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
                (path.parent().ok_or(io::ErrorKind::InvalidInput)?.canonicalize()?, Some(name.to_owned()))
            }
        };
        let inotify = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let kinds = WatchFlags::ATTRIB
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MODIFY
            | WatchFlags::MOVE
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        add_watch(&inotify, &folder, kinds)?;
        let shown = only.as_ref().map_or_else(|| folder.clone(), |name| folder.join(name));
        Ok(Opened { shown, folder, only, inotify })
    }

    impl Watched {
        /// Waits for changes and collects them. Also returns whether they are the last, because the folder is gone.
        async fn next(&mut self, root: &Path) -> io::Result<(BTreeSet<PathBuf>, bool)> {
            let (mut changed, mut is_last) = (BTreeSet::new(), false);
            let mut buffer = vec![0; READ_BYTES];
            let mut length = self.changes.read(&mut buffer).await?;
            tokio::time::sleep(GATHERED).await;
            loop {
                if length == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                is_last |= self.add(root, buffer.get(..length).unwrap_or_default(), &mut changed);
                match self.changes.try_read(&mut buffer) {
                    Ok(more) => length = more,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok((changed, is_last)),
                    Err(error) => return Err(error),
                }
            }
        }

        /// Decodes changes from bytes, and returns whether the folder is gone.
        fn add(&self, root: &Path, mut bytes: &[u8], changed: &mut BTreeSet<PathBuf>) -> bool {
            let mut is_gone = false;
            while let Some((kind, name, rest)) = split(bytes) {
                bytes = rest;
                is_gone |= kind.contains(ReadFlags::IGNORED);
                match &self.only {
                    // After an overflow of the kernel's queue, anything may have changed.
                    _ if kind.contains(ReadFlags::QUEUE_OVERFLOW) => drop(changed.insert(root.to_owned())),
                    Some(only) if name != Some(only) && !kind.contains(ReadFlags::IGNORED) => {}
                    _ => drop(changed.insert(name.map_or_else(|| root.to_owned(), |name| self.folder.join(name)))),
                }
            }
            is_gone
        }
    }

    /// Splits off the first change: its kind, the name that it is about, and the remaining bytes.
    fn split(bytes: &[u8]) -> Option<(ReadFlags, Option<&OsStr>, &[u8])> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let number = |at: usize| Some(u32::from_ne_bytes(*head.get(at..)?.first_chunk()?));
        let (kind, length) = (number(4)?, usize::try_from(number(12)?).ok()?);
        let (name, rest) = rest.split_at_checked(length)?;
        let name = name.split(|byte| *byte == 0).next().filter(|name| !name.is_empty());
        Some((ReadFlags::from_bits_retain(kind), name.map(OsStr::from_bytes), rest))
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use codex_protocol::rpc::ErrorObject;
    use tokio::task::AbortHandle;

    use crate::app::connection::Connection;

    /// Watching is not supported here.
    pub(super) struct Opened;

    /// Never returns changes.
    #[expect(clippy::unnecessary_wraps, reason = "it fails elsewhere")]
    pub(super) fn open(_: &Path) -> std::io::Result<Opened> {
        Ok(Opened)
    }

    /// Fails, because files are watched on Linux only.
    pub(super) fn start(_: &Arc<Connection>, _: String, _: Opened) -> Result<(PathBuf, AbortHandle), ErrorObject> {
        Err(ErrorObject::invalid(format!("this release cannot watch files on {}", std::env::consts::OS)))
    }
}
