//! Logins in a keyring.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use codex_config::{Auth, CredentialsStore};
use codex_login::{Keyring, KeyringError, LoginError, LoginStore};

use crate::world::World;

/// An in-memory keyring. It can be locked, or missing.
#[derive(Default)]
pub(crate) struct MemoryKeyring {
    secrets: Mutex<BTreeMap<String, String>>,
    failure: Mutex<Option<KeyringError>>,
}

impl MemoryKeyring {
    pub(crate) fn fail(&self, failure: Option<KeyringError>) {
        *self.failure.lock().unwrap() = failure;
    }

    fn check(&self) -> Result<(), KeyringError> {
        self.failure.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    pub(crate) fn len(&self) -> usize {
        self.secrets.lock().unwrap().len()
    }
}

impl Keyring for MemoryKeyring {
    fn get(&self, account: &str) -> Result<Option<String>, KeyringError> {
        self.check()?;
        Ok(self.secrets.lock().unwrap().get(account).cloned())
    }

    fn set(&self, account: &str, secret: &str) -> Result<(), KeyringError> {
        self.check()?;
        self.secrets.lock().unwrap().insert(account.to_owned(), secret.to_owned());
        Ok(())
    }

    fn remove(&self, account: &str) -> Result<bool, KeyringError> {
        self.check()?;
        Ok(self.secrets.lock().unwrap().remove(account).is_some())
    }
}

fn world(kind: CredentialsStore) -> (World, Arc<MemoryKeyring>) {
    let keyring = Arc::new(MemoryKeyring::default());
    let mut world = World::new();
    world.kind = kind;
    world.keyring = Some(Arc::<MemoryKeyring>::clone(&keyring));
    (world, keyring)
}

pub(crate) fn absent() -> KeyringError {
    KeyringError::Absent("no bus".to_owned())
}

fn key(auth: &Auth) -> Option<&str> {
    auth.api_key.as_ref().map(codex_config::Secret::reveal)
}

#[tokio::test]
async fn a_login_in_the_keyring_is_renewed_and_removed_there() {
    let (world, keyring) = world(CredentialsStore::Keyring);
    // An older file is not read, and is removed when there is a login in the keyring.
    Auth::store_api_key(&world.home(), "sk-old").unwrap();
    assert_eq!(*world.accounts().auth().await.unwrap(), Auth::default());
    let accounts = world.log_in().await;
    let other = world.accounts();
    let first = other.tokens(None).await.unwrap();
    assert_eq!((keyring.len(), world.home().auth_file().exists()), (1, false));

    world.advance(2880);
    let renewed = accounts.tokens(None).await.unwrap();
    assert_ne!(renewed, first);
    assert_eq!(other.tokens(None).await.unwrap(), renewed, "the other process reads the keyring again");
    assert_eq!(world.issuer.renewals(), 1);

    let (was_there, told) = accounts.log_out().await.unwrap();
    told.unwrap();
    assert_eq!((was_there, keyring.len(), world.home().auth_file().exists()), (true, 0, false));
    assert_eq!(*other.auth().await.unwrap(), Auth::default());
}

#[test]
fn the_account_in_the_keyring_depends_on_the_home() {
    let keyring = Arc::new(MemoryKeyring::default());
    let (first, second) = (World::new(), World::new());
    for (world, key) in [(&first, "sk-1"), (&second, "sk-2")] {
        let shared: Arc<dyn Keyring> = Arc::<MemoryKeyring>::clone(&keyring);
        LoginStore::new(&world.home(), CredentialsStore::Keyring, Some(shared)).store_api_key(key).unwrap();
    }
    let names: Vec<String> = keyring.secrets.lock().unwrap().keys().cloned().collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let is_hex = |name: &str| name.len() == 16 && name.chars().all(|c| c.is_ascii_hexdigit());
    assert!(names.iter().all(|name| name.strip_prefix("cli|").is_some_and(is_hex)), "{names:?}");
}

#[test]
fn a_keyring_that_fails_is_an_error_unless_the_file_may_be_used() {
    let (world, keyring) = world(CredentialsStore::Keyring);
    let store = |kind| LoginStore::new(&world.home(), kind, world.keyring.clone());
    keyring.fail(Some(KeyringError::Failed("it is locked".to_owned())));
    for error in
        [store(CredentialsStore::Keyring).store_api_key("sk-1"), store(CredentialsStore::Keyring).load().map(drop)]
    {
        assert_eq!(error.unwrap_err().to_string(), "the keyring failed: it is locked");
    }
    assert!(!world.home().auth_file().exists());

    let auto = store(CredentialsStore::Auto);
    keyring.fail(Some(absent()));
    assert_eq!(auto.load().unwrap(), Auth::default());
    auto.store_api_key("sk-file").unwrap();
    assert_eq!(
        (key(&auto.load().unwrap()), auto.place()),
        (Some("sk-file"), world.home().auth_file().display().to_string())
    );
    // As soon as there is a keyring, the next login moves there.
    keyring.fail(None);
    assert_eq!(key(&auto.load().unwrap()), Some("sk-file"));
    auto.store_api_key("sk-ring").unwrap();
    assert_eq!((key(&auto.load().unwrap()), auto.place()), (Some("sk-ring"), "the keyring".to_owned()));
    assert!(!world.home().auth_file().exists());
    // A later login in the file takes precedence over the one in the keyring.
    keyring.fail(Some(absent()));
    auto.store_api_key("sk-later").unwrap();
    keyring.fail(None);
    assert_eq!(key(&auto.load().unwrap()), Some("sk-later"));
}

#[tokio::test]
async fn a_login_that_stays_in_a_locked_keyring_is_reported() {
    let (world, keyring) = world(CredentialsStore::Auto);
    let accounts = world.accounts();
    accounts.store_api_key("sk-1".to_owned()).await.unwrap();
    keyring.fail(Some(KeyringError::TimedOut));
    let error = accounts.log_out().await.unwrap_err();
    assert_eq!(error.to_string(), "the keyring did not answer within 60 seconds");
    keyring.fail(Some(absent()));
    assert!(!accounts.log_out().await.unwrap().0);
}

#[test]
fn a_build_without_a_keyring_uses_the_file_or_says_how_to_get_one() {
    let world = World::new();
    let auto = LoginStore::new(&world.home(), CredentialsStore::Auto, None);
    auto.store_api_key("sk-1").unwrap();
    assert_eq!(auto.place(), world.home().auth_file().display().to_string());
    let error = LoginStore::new(&world.home(), CredentialsStore::Keyring, None).load().unwrap_err();
    assert!(matches!(error, LoginError::NoKeyring));
    assert!(error.hint().unwrap().contains("--features keyring"));
}

#[tokio::test]
async fn a_logout_without_a_keyring_removes_the_file_and_revokes_its_tokens() {
    let mut world = World::new();
    world.log_in().await;
    assert!(world.home().auth_file().exists());
    world.kind = CredentialsStore::Keyring;
    let (was_there, told) = world.accounts().log_out().await.unwrap();
    told.unwrap();
    assert_eq!((was_there, world.home().auth_file().exists(), world.issuer.revoked().len()), (true, false, 1));
    assert!(!world.accounts().log_out().await.unwrap().0);

    // The same holds where the system has no keyring, and a file goes even if the keyring is locked.
    let (world, keyring) = self::world(CredentialsStore::Keyring);
    for (failure, expected) in [(absent(), Ok(true)), (KeyringError::TimedOut, Err(()))] {
        Auth::store_api_key(&world.home(), "sk-old").unwrap();
        keyring.fail(Some(failure));
        let left = world.accounts().log_out().await.map(|(was_there, _)| was_there).map_err(drop);
        assert_eq!((left, world.home().auth_file().exists()), (expected, false));
    }
}
