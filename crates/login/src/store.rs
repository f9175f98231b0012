//! The place of a login: `auth.json`, the keyring of the system, or whichever is there.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use codex_config::{Auth, CredentialsStore, Home, LoginConfig, Tokens};
use codex_files::Stamp;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use crate::LoginError;
use crate::keyring_access::{Keyring, KeyringError, call, system_keyring};

/// The name of the entries in a keyring, the same as in other releases.
const SERVICE: &str = "Codex Auth";

/// The place in errors about the content.
const IN_KEYRING: &str = "the keyring";

/// The place where the login of a home is kept. Calls may block.
#[derive(Clone)]
pub struct LoginStore {
    home: Home,
    kind: CredentialsStore,
    keyring: Option<Arc<dyn Keyring>>,
}

impl fmt::Debug for LoginStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginStore").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl LoginStore {
    /// The store that the configuration selects.
    #[must_use]
    pub fn of(home: &Home, login: &LoginConfig) -> Self {
        Self::new(home, login.store, system_keyring(SERVICE))
    }

    /// A store with a given keyring. Without one, `auto` selects the file.
    #[must_use]
    pub fn new(home: &Home, kind: CredentialsStore, keyring: Option<Arc<dyn Keyring>>) -> Self {
        Self { home: home.clone(), kind, keyring }
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// The current login; empty if there is none.
    pub fn load(&self) -> Result<Auth, LoginError> {
        let Some((place, text)) = self.text()? else { return Ok(Auth::default()) };
        Ok(Auth::parse(&place, &text)?)
    }

    /// Stores a key in place of any other login.
    pub fn store_api_key(&self, key: &str) -> Result<(), LoginError> {
        self.write(&Auth::api_key_json(key)?)
    }

    pub(crate) fn store_tokens(&self, tokens: &Tokens, at: &str) -> Result<(), LoginError> {
        self.write(&Auth::tokens_json(tokens, at))
    }

    /// Stores tokens in place of those that they renew.
    pub(crate) fn store_renewed(&self, tokens: &Tokens, at: &str) -> Result<(), LoginError> {
        let old = self.text().ok().flatten().map(|(_, text)| text).unwrap_or_default();
        self.write(&Auth::renewed_json(&old, tokens, at))
    }

    /// The login to revoke: the current one, or else one in the file, which may be left from an earlier configuration.
    pub(crate) fn load_any(&self) -> Result<Auth, LoginError> {
        match self.load() {
            Ok(auth) if auth != Auth::default() => Ok(auth),
            loaded => match Auth::text(&self.home)? {
                Some(text) => Ok(Auth::parse(&self.home.auth_file(), &text)?),
                None => loaded,
            },
        }
    }

    /// Removes the login from every place that it may be in; false if there was none. The file goes first, because a
    /// keyring may fail, and a program or a system without one keeps no login there.
    pub(crate) fn remove(&self) -> Result<bool, LoginError> {
        let from_file = Auth::remove(&self.home)?;
        let Some(keyring) = self.keyring.as_ref().filter(|_| self.kind != CredentialsStore::File) else {
            return Ok(from_file);
        };
        let from_keyring = match self.call(keyring, |keyring, account| keyring.remove(account)) {
            Err(KeyringError::Absent(_)) => false,
            removed => removed?,
        };
        if from_keyring {
            self.mark();
        }
        Ok(from_file || from_keyring)
    }

    /// The place where a login was stored, for display.
    #[must_use]
    pub fn place(&self) -> String {
        if self.kind != CredentialsStore::File && !self.home.auth_file().exists() {
            return IN_KEYRING.to_owned();
        }
        self.home.auth_file().display().to_string()
    }

    /// Changes whenever one of our processes has changed the login.
    pub(crate) fn stamps(&self) -> (Stamp, Option<Stamp>) {
        let marker = (self.kind != CredentialsStore::File).then(|| Stamp::of(&self.home.run().join("auth.changed")));
        (Stamp::of(&self.home.auth_file()), marker)
    }

    /// The keyring that the configuration requires.
    fn keyring(&self) -> Result<Option<&Arc<dyn Keyring>>, LoginError> {
        match (self.kind, &self.keyring) {
            (CredentialsStore::File, _) => Ok(None),
            (CredentialsStore::Keyring, None) => Err(LoginError::NoKeyring),
            (CredentialsStore::Keyring | CredentialsStore::Auto, keyring) => Ok(keyring.as_ref()),
        }
    }

    /// The text of the login, and its place. In `auto` a file is newer than the keyring: storing a login in the keyring
    /// removes the file.
    fn text(&self) -> Result<Option<(Box<Path>, String)>, LoginError> {
        let keyring = self.keyring()?;
        if self.kind != CredentialsStore::Keyring
            && let Some(text) = Auth::text(&self.home)?
        {
            return Ok(Some((self.home.auth_file().into(), text)));
        }
        let Some(keyring) = keyring else { return Ok(None) };
        let found = match self.call(keyring, |keyring, account| keyring.get(account)) {
            Err(KeyringError::Absent(_)) if self.kind == CredentialsStore::Auto => None,
            found => found?,
        };
        Ok(found.map(|text| (Path::new(IN_KEYRING).into(), text)))
    }

    fn write(&self, login: &Json) -> Result<(), LoginError> {
        if let Some(keyring) = self.keyring()? {
            let text = login.to_string();
            match self.call(keyring, move |keyring, account| keyring.set(account, &text)) {
                Ok(()) => {
                    self.mark();
                    Auth::remove(&self.home)?;
                    return Ok(());
                }
                Err(_) if self.kind == CredentialsStore::Auto => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Auth::write(&self.home, login)?)
    }

    fn call<T: Send + 'static>(
        &self,
        keyring: &Arc<dyn Keyring>,
        work: impl FnOnce(&dyn Keyring, &str) -> Result<T, KeyringError> + Send + 'static,
    ) -> Result<T, KeyringError> {
        call(keyring, account(&self.home), work)
    }

    /// Notifies our other processes that the keyring has changed. If that fails, they notice when a token is rejected.
    fn mark(&self) {
        let folder = self.home.run();
        let _: std::io::Result<()> = std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(folder.join("auth.changed"), codex_wire::ids::fresh_uuid().to_string()));
    }
}

/// The account of a home in the keyring: the same as in other releases.
fn account(home: &Home) -> String {
    let path = home.path().canonicalize().unwrap_or_else(|_| home.path().to_owned());
    let digest = Sha256::digest(path.to_string_lossy().as_bytes());
    digest.iter().take(8).fold("cli|".to_owned(), |mut name, byte| {
        // Writing to a string cannot fail.
        let _ = write!(name, "{byte:02x}");
        name
    })
}
