//! Locks that all processes of a home share.

use std::fs::{File, OpenOptions};
use std::time::Duration;

use codex_config::Home;
use tokio::time::{Instant, sleep};

use crate::LoginError;

/// The time limit for another process that holds a lock: longer than a renewal takes.
const LOCK_TIME: Duration = Duration::from_secs(40);
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Keeps other processes from taking the lock of this name until the result is dropped.
pub(crate) async fn lock(home: &Home, name: &str) -> Result<File, LoginError> {
    let failed = |source| LoginError::System { what: "lock the login", source };
    let folder = home.run();
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(&folder).map_err(failed)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(folder.join(name)).map_err(failed)?;
    let deadline = Instant::now() + LOCK_TIME;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::WouldBlock) if Instant::now() < deadline => sleep(LOCK_PAUSE).await,
            Err(std::fs::TryLockError::WouldBlock) => return Err(LoginError::Locked),
            Err(std::fs::TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
}
