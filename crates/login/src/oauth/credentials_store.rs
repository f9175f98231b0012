//! The place of the logins to servers: `.credentials.json`, or the keyring of the system.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use codex_config::{CredentialsStore, Home, read_mcp_credentials, write_mcp_credentials};
use codex_files::Stamp;
use serde_json::{Map, Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::OauthError;
use super::credentials::Credentials;
use crate::keyring_access::{Keyring, KeyringError, call, system_keyring};

/// The name of the entries in a keyring, the same as in other releases.
const SERVICE: &str = "Codex MCP Credentials";

/// The file in `run` that changes when the keyring does.
const MARKER: &str = "mcp-credentials.changed";

/// The place of the logins to the servers of a home. Calls may block, and changes need the lock of the file.
#[derive(Clone)]
pub struct ServerCredentials {
    home: Home,
    kind: CredentialsStore,
    keyring: Option<Arc<dyn Keyring>>,
}

/// The state of the places that a login may be in.
pub(super) type Stamps = (Stamp, Option<Stamp>);

impl fmt::Debug for ServerCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCredentials").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl ServerCredentials {
    /// The place that the configuration names.
    #[must_use]
    pub fn of(home: &Home, kind: CredentialsStore) -> Self {
        Self::new(home, kind, system_keyring(SERVICE))
    }

    /// A place with a given keyring. Without one, `auto` means the file.
    #[must_use]
    pub fn new(home: &Home, kind: CredentialsStore, keyring: Option<Arc<dyn Keyring>>) -> Self {
        Self { home: home.clone(), kind, keyring }
    }

    pub(super) fn home(&self) -> &Home {
        &self.home
    }

    /// The login to a server. In `auto` a file is newer than the keyring: storing a login there removes it from the file.
    pub(super) fn load(&self, name: &str, url: &str) -> Result<Option<Credentials>, OauthError> {
        let keyring = self.keyring()?;
        if self.kind != CredentialsStore::Keyring
            && let Some(entry) = self.file()?.values().find(|entry| is_for(entry, name, url))
        {
            return Ok(Credentials::of(entry));
        }
        let Some(keyring) = keyring else { return Ok(None) };
        let found = match call(keyring, account(name, url), |keyring, account| keyring.get(account)) {
            Err(KeyringError::Absent(_)) if self.kind == CredentialsStore::Auto => None,
            found => found?,
        };
        let entry: Option<Json> = found.and_then(|text| serde_json::from_str(&text).ok());
        Ok(entry.and_then(|entry| Credentials::of(&entry)))
    }

    /// Stores a login in place of any other to the same server.
    pub(super) fn save(&self, credentials: &Credentials) -> Result<(), OauthError> {
        let Credentials { server_name: name, server_url: url, .. } = credentials;
        let entry = credentials.entry();
        if let Some(keyring) = self.keyring()? {
            let text = entry.to_string();
            match call(keyring, account(name, url), move |keyring, account| keyring.set(account, &text)) {
                Ok(()) => {
                    self.mark();
                    self.change_file(|entries| entries.retain(|_, entry| !is_for(entry, name, url)))?;
                    return Ok(());
                }
                Err(_) if self.kind == CredentialsStore::Auto => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.change_file(|entries| {
            entries.retain(|_, entry| !is_for(entry, name, url));
            entries.insert(account(name, url), entry);
        })
    }

    /// Removes the login to a server from every place that it may be in; false if there was none. The file goes first,
    /// because a keyring may fail.
    pub(super) fn remove(&self, name: &str, url: &str) -> Result<bool, OauthError> {
        let mut from_file = false;
        self.change_file(|entries| {
            let before = entries.len();
            entries.retain(|_, entry| !is_for(entry, name, url));
            from_file = entries.len() < before;
        })?;
        let Some(keyring) = self.keyring.as_ref().filter(|_| self.kind != CredentialsStore::File) else {
            return Ok(from_file);
        };
        let from_keyring = match call(keyring, account(name, url), |keyring, account| keyring.remove(account)) {
            Err(KeyringError::Absent(_)) => false,
            removed => removed?,
        };
        if from_keyring {
            self.mark();
        }
        Ok(from_file || from_keyring)
    }

    /// Changes whenever one of our processes has changed a login.
    pub(super) fn stamps(&self) -> Stamps {
        let marker = (self.kind != CredentialsStore::File && self.keyring.is_some())
            .then(|| Stamp::of(&self.home.run().join(MARKER)));
        (Stamp::of(&self.home.mcp_credentials_file()), marker)
    }

    fn keyring(&self) -> Result<Option<&Arc<dyn Keyring>>, OauthError> {
        match (self.kind, &self.keyring) {
            (CredentialsStore::File, _) => Ok(None),
            (CredentialsStore::Keyring, None) => Err(OauthError::NoKeyring),
            (CredentialsStore::Keyring | CredentialsStore::Auto, keyring) => Ok(keyring.as_ref()),
        }
    }

    fn file(&self) -> Result<Map<String, Json>, OauthError> {
        let path = self.home.mcp_credentials_file();
        read_mcp_credentials(&self.home).map_err(|source| OauthError::File { what: "read", path, source })
    }

    /// Changes the file, unless the change is none. Entries that this release does not know stay.
    fn change_file(&self, change: impl FnOnce(&mut Map<String, Json>)) -> Result<(), OauthError> {
        let before = self.file()?;
        let mut entries = before.clone();
        change(&mut entries);
        if entries == before {
            return Ok(());
        }
        let path = self.home.mcp_credentials_file();
        write_mcp_credentials(&self.home, &entries).map_err(|source| OauthError::File { what: "write", path, source })
    }

    /// Tells our other processes that the keyring has changed. If that fails, they notice when a token is refused.
    fn mark(&self) {
        let folder = self.home.run();
        let _: std::io::Result<()> = std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(folder.join(MARKER), codex_wire::ids::fresh_uuid().to_string()));
    }
}

fn is_for(entry: &Json, name: &str, url: &str) -> bool {
    entry["server_name"] == name && entry["server_url"] == url
}

/// The key of a server, the same as in other releases.
pub(super) fn account(name: &str, url: &str) -> String {
    let server = json!({"type": "http", "url": url, "headers": {}}).to_string();
    let mut account = format!("{name}|");
    for byte in Sha256::digest(server.as_bytes()).iter().take(8) {
        // Writing to a string cannot fail.
        let _ = write!(account, "{byte:02x}");
    }
    account
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0.77 removes an entry with this key when its user logs out.
    #[test]
    fn the_key_of_a_server_is_the_one_of_other_releases() {
        assert_eq!(account("web", "http://127.0.0.1:9/mcp"), "web|e49b00bf48cb4d25");
    }
}
