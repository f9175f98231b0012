//! `fs/watch`, `fs/unwatch` and `fs/changed`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use codex_methods::files::{absolute, failed};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::empty::Empty;
use codex_protocol::v2::fs::{FsUnwatchParams, FsWatchParams, FsWatchResponse};
use tokio::task::AbortHandle;

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
    let path = absolute(params.path)?;
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
    use std::io;
    use std::os::fd::OwnedFd;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::time::Duration;

    use codex_protocol::rpc::ErrorObject;
    use codex_protocol::v2::fs::FsChangedNotification;
    use codex_protocol::v2::notification::ServerNotification;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::unix::pipe::Receiver;
    use tokio::task::AbortHandle;

    use codex_methods::files::failed;
    use codex_methods::watch::Watched;

    use crate::app::connection::Connection;
    use crate::app::stored_threads::tell;

    /// The time for which changes are collected before they are reported, because one save causes several.
    const GATHERED: Duration = Duration::from_millis(50);
    /// The number of bytes that are read at once.
    const READ_BYTES: usize = 16 * 1024;

    /// Resolves a path and watches it. This function blocks; call it off the async threads.
    pub(super) fn open(path: &Path) -> io::Result<(Watched, OwnedFd)> {
        Watched::open(path)
    }

    /// Starts to watch and returns the watched path without links.
    pub(super) fn start(
        connection: &Arc<Connection>,
        name: String,
        (watched, inotify): (Watched, OwnedFd),
    ) -> Result<(PathBuf, AbortHandle), ErrorObject> {
        let shown = watched.path.clone();
        // It is not a pipe, but is read like one.
        let mut source = Receiver::from_owned_fd_unchecked(inotify).map_err(failed("watch", &shown))?;
        let connection = Arc::clone(connection);
        let task = tokio::spawn(async move {
            while let Ok((changed, is_last)) = next(&watched, &mut source).await {
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

    /// Waits for changes and collects them. Also returns whether they are the last, because the folder is gone.
    async fn next(watched: &Watched, source: &mut Receiver) -> io::Result<(BTreeSet<PathBuf>, bool)> {
        let (mut changed, mut is_last) = (BTreeSet::new(), false);
        let mut buffer = vec![0; READ_BYTES];
        let mut length = source.read(&mut buffer).await?;
        tokio::time::sleep(GATHERED).await;
        loop {
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            is_last |= watched.add(buffer.get(..length).unwrap_or_default(), &mut changed);
            match source.try_read(&mut buffer) {
                Ok(more) => length = more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok((changed, is_last)),
                Err(error) => return Err(error),
            }
        }
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
