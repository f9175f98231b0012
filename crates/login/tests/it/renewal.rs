//! Renewals: their time, their number, and concurrent processes.

use codex_config::{Auth, LoginConfig};
use codex_model::{Authorization, SharedCredentials};
use futures_util::future::join_all;

use crate::world::{BEGIN, World, openai};

fn credentials(accounts: &codex_login::Accounts) -> SharedCredentials {
    accounts.credentials(LoginConfig::default(), &openai())
}

fn token(authorization: &Authorization) -> String {
    authorization.bearer.as_ref().unwrap().expose().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_login_goes_to_chatgpt_with_its_account() {
    let world = World::new();
    let accounts = world.log_in().await;
    let found = credentials(&accounts).authorize().await.unwrap();
    assert_eq!(token(&found), world.tokens().access_token.reveal());
    assert_eq!(found.account.as_deref(), Some("acct-1"));
    assert_eq!(found.base_url.as_deref(), Some("https://chatgpt.com/backend-api/codex"));
    assert_eq!(world.issuer.renewals(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_login_goes_to_no_other_host() {
    let world = World::new();
    let accounts = world.log_in().await;
    let mut provider = openai();
    provider.base_url = Some("https://proxy.example.com/v1".to_owned());
    let error = accounts.credentials(LoginConfig::default(), &provider).authorize().await.unwrap_err();
    let said = "openai is not at chatgpt_base_url, and a ChatGPT login is sent nowhere else; use an API key";
    assert_eq!(error.to_string(), said);
    let login = LoginConfig { chatgpt_base_url: "https://proxy.example.com".to_owned(), ..LoginConfig::default() };
    let found = accounts.credentials(login, &provider).authorize().await.unwrap();
    assert_eq!(found.base_url.as_deref(), Some("https://proxy.example.com/v1"));
}

#[tokio::test(start_paused = true)]
async fn a_login_is_renewed_at_four_fifths_of_its_life_and_stored_first() {
    let world = World::new();
    let credentials = credentials(&world.log_in().await);
    let old = world.tokens();
    world.advance(2879);
    assert_eq!(token(&credentials.authorize().await.unwrap()), old.access_token.reveal());
    world.advance(1);
    let found = credentials.authorize().await.unwrap();
    let new = world.tokens();
    assert_eq!(token(&found), new.access_token.reveal());
    assert!(new.access_token != old.access_token && new.refresh_token != old.refresh_token);
    assert_eq!(new.account_id, old.account_id);
    assert!(world.stored().last_refresh.unwrap().starts_with("2027-01-15T08:48:00"));
    assert_eq!(world.issuer.renewals(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_refused_is_renewed_once() {
    let world = World::new();
    let credentials = credentials(&world.log_in().await);
    let used = credentials.authorize().await.unwrap();
    assert!(credentials.refused(&used).await);
    // Other tasks whose requests were rejected with the same token use the new one.
    assert!(credentials.refused(&used).await);
    assert_ne!(credentials.authorize().await.unwrap(), used);
    assert_eq!(world.issuer.renewals(), 1);
}

#[tokio::test(start_paused = true)]
async fn two_processes_with_fifty_threads_renew_once() {
    let world = World::new();
    world.log_in().await;
    for age in [3000, 4000] {
        let before = world.issuer.renewals();
        world.advance(age);
        let processes = [world.accounts(), world.accounts()];
        let all: Vec<_> = processes.iter().flat_map(|accounts| (0..50).map(move |_| credentials(accounts))).collect();
        let found = join_all(all.iter().map(|credentials| credentials.authorize())).await;
        let tokens: std::collections::BTreeSet<_> = found.into_iter().map(|found| token(&found.unwrap())).collect();
        assert_eq!(tokens.into_iter().collect::<Vec<_>>(), [world.tokens().access_token.reveal()]);
        assert_eq!(world.issuer.renewals(), before + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_fails_leaves_a_token_that_still_works_in_use() {
    let world = World::new();
    let credentials = credentials(&world.log_in().await);
    let old = world.tokens().access_token;
    world.advance(3000);
    world.set_down(true);
    assert_eq!(token(&credentials.authorize().await.unwrap()), old.reveal());
    world.set_down(false);
    // Not again immediately: every request would wait for it.
    assert_eq!(token(&credentials.authorize().await.unwrap()), old.reveal());
    world.advance(60);
    assert_ne!(token(&credentials.authorize().await.unwrap()), old.reveal());
    world.advance(9999);
    world.set_down(true);
    let error = credentials.authorize().await.unwrap_err().to_string();
    assert_eq!(error, "could not reach the login service at nowhere; check the network and the proxy settings");
}

#[tokio::test(start_paused = true)]
async fn a_refresh_token_that_was_used_before_ends_the_login() {
    let world = World::new();
    let credentials = credentials(&world.log_in().await);
    world.issuer.void(world.tokens().refresh_token.unwrap().reveal());
    world.advance(3000);
    assert!(credentials.authorize().await.is_ok(), "the access token still works");
    world.advance(3000);
    for _ in 0..3 {
        let error = credentials.authorize().await.unwrap_err().to_string();
        assert_eq!(error, "the login has ended (invalid_grant); log in again with `codex login`");
    }
    let asked = world.issuer.requests().iter().filter(|request| *request == "POST /oauth/token").count();
    assert_eq!(asked, 2, "once for the login, once for the renewal");
    world.log_in().await;
    assert!(credentials.authorize().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn tokens_renewed_by_another_program_are_used() {
    let world = World::new();
    let credentials = credentials(&world.log_in().await);
    let used = credentials.authorize().await.unwrap();
    // A program that does not know our lock: it has renewed the login, and its file appears while our renewal is
    // rejected.
    let mut theirs = world.tokens();
    world.issuer.void(theirs.refresh_token.as_ref().unwrap().reveal());
    theirs.access_token = codex_config::Secret::new("theirs");
    Auth::write(&world.home(), &Auth::tokens_json(&theirs, "2027-01-15T08:00:01Z")).unwrap();
    assert!(credentials.refused(&used).await);
    assert_eq!(token(&credentials.authorize().await.unwrap()), "theirs");
}

#[tokio::test(start_paused = true)]
async fn a_login_of_0_77_is_renewed_in_its_own_form() {
    let world = World::new();
    world.log_in().await;
    // As 0.77 writes it: no `auth_mode`.
    let file = std::fs::read_to_string(world.home().auth_file()).unwrap();
    let file = file.replace("  \"auth_mode\": \"chatgpt\",\n", "");
    std::fs::write(world.home().auth_file(), &file).unwrap();
    world.advance(3000);
    let credentials = credentials(&world.accounts());
    credentials.authorize().await.unwrap();
    let renewed: serde_json::Value = serde_json::from_slice(&std::fs::read(world.home().auth_file()).unwrap()).unwrap();
    let members: Vec<_> = renewed.as_object().unwrap().keys().collect();
    assert_eq!(members, ["OPENAI_API_KEY", "tokens", "last_refresh"]);
    let members: Vec<_> = renewed["tokens"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["id_token", "access_token", "refresh_token", "account_id"]);
    assert_eq!(world.issuer.renewals(), 1, "{BEGIN}");
}

#[tokio::test(start_paused = true)]
async fn the_limits_of_the_account_are_asked_for_with_its_token() {
    let world = World::new();
    let accounts = world.log_in().await;
    let login = LoginConfig { chatgpt_base_url: world.issuer.url().to_owned(), ..LoginConfig::default() };
    let limits = accounts.limits(&login).await.unwrap();
    let primary = limits.primary.unwrap();
    assert_eq!((primary.used_percent, primary.window_minutes), (12.0, Some(300)));
}

#[cfg(not(feature = "keyring"))]
#[tokio::test(start_paused = true)]
async fn a_keyring_that_this_build_lacks_is_an_error() {
    let world = World::new();
    let accounts = world.log_in().await;
    let login = LoginConfig { store: codex_config::CredentialsStore::Keyring, ..LoginConfig::default() };
    let error = accounts.credentials(login, &openai()).authorize().await.unwrap_err().to_string();
    assert!(error.contains("this build has no keyring; build it with `--features keyring`"), "{error}");
}
