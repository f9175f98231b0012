//! Calls to a keyring.
//!
//! Invariant: no call to a keyring takes longer than [`KEYRING_TIME`], although the system may ask the user for a
//! password meanwhile.

use std::sync::{Arc, mpsc};
use std::time::Duration;

/// The time limit for a keyring, including a user who unlocks it.
const KEYRING_TIME: Duration = Duration::from_secs(60);

/// A failure of a keyring. The texts never contain the secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// This system has none, or none that answers.
    #[error("the system has no keyring: {0}")]
    Absent(String),
    #[error("the keyring failed: {0}")]
    Failed(String),
    #[error("the keyring did not answer within {} seconds", KEYRING_TIME.as_secs())]
    TimedOut,
}

/// A keyring: one secret text for each account.
pub trait Keyring: Send + Sync {
    /// The secret of an account.
    fn get(&self, account: &str) -> Result<Option<String>, KeyringError>;
    /// Stores a secret in place of any other.
    fn set(&self, account: &str, secret: &str) -> Result<(), KeyringError>;
    /// Removes a secret; false if there was none.
    fn remove(&self, account: &str) -> Result<bool, KeyringError>;
}

/// Calls a keyring on a thread of its own, because it may never return.
pub(crate) fn call<T: Send + 'static>(
    keyring: &Arc<dyn Keyring>,
    account: String,
    work: impl FnOnce(&dyn Keyring, &str) -> Result<T, KeyringError> + Send + 'static,
) -> Result<T, KeyringError> {
    let keyring = Arc::clone(keyring);
    let (done, result) = mpsc::channel();
    let call = move || drop(done.send(work(&*keyring, &account)));
    let thread = std::thread::Builder::new().name("keyring".to_owned()).spawn(call);
    thread.map_err(|error| KeyringError::Failed(error.to_string()))?;
    match result.recv_timeout(KEYRING_TIME) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => Err(KeyringError::TimedOut),
        Err(mpsc::RecvTimeoutError::Disconnected) => Err(KeyringError::Failed("it panicked".to_owned())),
    }
}

/// The keyring of the system, with the entries of one service.
#[cfg(feature = "keyring")]
#[expect(clippy::unnecessary_wraps, reason = "other builds have none")]
pub(crate) fn system_keyring(service: &'static str) -> Option<Arc<dyn Keyring>> {
    Some(Arc::new(crate::system_keyring::SystemKeyring(service)))
}

#[cfg(not(feature = "keyring"))]
pub(crate) fn system_keyring(_: &'static str) -> Option<Arc<dyn Keyring>> {
    None
}
