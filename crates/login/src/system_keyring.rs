//! The system keyring: Secret Service on Linux, the Keychain on macOS.

use keyring::{Entry, Error};

use crate::keyring_access::{Keyring, KeyringError};

/// The entries of one service in the keyring of the system.
#[derive(Debug)]
pub(crate) struct SystemKeyring(pub(crate) &'static str);

impl Keyring for SystemKeyring {
    fn get(&self, account: &str) -> Result<Option<String>, KeyringError> {
        found(self.entry(account)?.get_password())
    }

    fn set(&self, account: &str, secret: &str) -> Result<(), KeyringError> {
        self.entry(account)?.set_password(secret).map_err(|error| failed(&error))
    }

    fn remove(&self, account: &str) -> Result<bool, KeyringError> {
        Ok(found(self.entry(account)?.delete_credential())?.is_some())
    }
}

impl SystemKeyring {
    fn entry(&self, account: &str) -> Result<Entry, KeyringError> {
        if let Err(error) = Entry::store_status() {
            return Err(KeyringError::Absent(error.to_string()));
        }
        Entry::new(self.0, account).map_err(|error| failed(&error))
    }
}

fn found<T>(result: Result<T, Error>) -> Result<Option<T>, KeyringError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::NoEntry) => Ok(None),
        Err(error) => Err(failed(&error)),
    }
}

/// The text of an error, without the secret that some errors contain.
fn failed(error: &Error) -> KeyringError {
    match error {
        Error::NoDefaultStore => KeyringError::Absent(error.to_string()),
        Error::BadEncoding(_) | Error::BadDataFormat(..) => KeyringError::Failed("its entry is malformed".to_owned()),
        error => KeyringError::Failed(error.to_string()),
    }
}
