//! The keyring of the system, in builds that use it. The test changes the user's keyring, so it runs only on request.

use codex_config::{Auth, CredentialsStore, LoginConfig};
use codex_login::LoginStore;

use crate::world::World;

/// The variable that allows the test, for example in `dbus-run-session` with an unlocked `gnome-keyring-daemon`.
const ALLOWED: &str = "CODEX_TEST_KEYRING";

#[tokio::test]
async fn a_login_is_kept_in_the_keyring_of_the_system_and_removed_there() {
    if std::env::var_os(ALLOWED).is_none() {
        eprintln!("skipped: {ALLOWED} is not set");
        return;
    }
    let world = World::new();
    let env = codex_config::Env::process();
    let config = LoginConfig { store: CredentialsStore::Keyring, ..LoginConfig::default() };
    let store = LoginStore::of(&world.home(), &config);
    assert_eq!(store.load().unwrap(), Auth::default());
    for key in ["sk-one", "sk-two"] {
        store.store_api_key(key).unwrap();
        let stored = LoginStore::of(&world.home(), &config).load().unwrap();
        assert_eq!(stored.api_key.as_ref().map(codex_config::Secret::reveal), Some(key));
    }
    assert_eq!((store.place().as_str(), world.home().auth_file().exists()), ("the keyring", false));
    let accounts = codex_login::Accounts::of(store.clone(), &env);
    assert!(accounts.log_out().await.unwrap().0);
    assert!(!accounts.log_out().await.unwrap().0);
    assert_eq!(store.load().unwrap(), Auth::default());
}
