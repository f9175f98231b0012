//! Logins with a code on another device.

use codex_config::Account;
use tokio::time::Instant;

use crate::world::{BEGIN, World, env, openai};

#[tokio::test(start_paused = true)]
async fn a_login_waits_for_the_user_and_is_stored() {
    let world = World::new();
    world.issuer.set_polls(&[(403, "authorization_pending"), (404, "unknown"), (503, "busy")]);
    let login = world.accounts().begin_device(world.options()).await.unwrap();
    assert_eq!((login.user_code(), login.page()), ("ABCD-1234", "http://localhost:9/codex/device".to_owned()));
    let begin = Instant::now();
    login.finish().await.unwrap();
    assert_eq!(begin.elapsed().as_secs(), 4);
    let stored = world.stored();
    assert_eq!(stored.mode.as_deref(), Some("chatgpt"));
    assert!(stored.last_refresh.as_deref().unwrap().starts_with("2027-01-15T08:00:00"), "{BEGIN} {stored:?}");
    assert_eq!(world.tokens().account_id.as_deref(), Some("acct-1"));
    let account = Account::Chatgpt { email: Some("user@example.com".into()), plan: Some("pro".into()) };
    assert_eq!(stored.account(&openai(), &env()), Some(account));
}

#[tokio::test(start_paused = true)]
async fn slow_down_is_permanent() {
    let world = World::new();
    world.issuer.set_polls(&[(400, "slow_down"), (403, "authorization_pending"), (403, "authorization_pending")]);
    let begin = Instant::now();
    world.log_in().await;
    assert_eq!(begin.elapsed().as_secs(), 1 + 6 + 6 + 6);
}

#[tokio::test(start_paused = true)]
async fn a_denied_or_late_login_stores_nothing() {
    for (polls, said) in [
        (vec![(403, "access_denied")], "the login was refused: access_denied"),
        (vec![(400, "expired_token")], "the login was not completed within 15 minutes"),
        (vec![(403, "authorization_pending"); 1000], "the login was not completed within 15 minutes"),
    ] {
        let world = World::new();
        world.issuer.set_polls(&polls);
        let login = world.accounts().begin_device(world.options()).await.unwrap();
        let begin = Instant::now();
        assert_eq!(login.finish().await.unwrap_err().to_string(), said);
        assert!(begin.elapsed().as_secs() <= 15 * 60);
        assert_eq!(world.stored().tokens, None);
    }
}

#[tokio::test]
async fn an_issuer_without_device_codes_is_reported() {
    let world = World::new();
    world.issuer.without_device_login();
    let error = world.accounts().begin_device(world.options()).await.unwrap_err();
    assert_eq!(error.to_string(), "http://localhost:9 does not support device codes");
}

#[tokio::test(start_paused = true)]
async fn a_login_for_another_workspace_is_not_stored() {
    let world = World::new();
    let mut options = world.options();
    options.workspaces = vec!["acct-2".to_owned()];
    let login = world.accounts().begin_device(options.clone()).await.unwrap();
    let error = login.finish().await.unwrap_err().to_string();
    assert_eq!(error, "the login is for another workspace than forced_chatgpt_workspace_id allows");
    assert_eq!(world.stored().tokens, None);
    options.workspaces.push("acct-1".to_owned());
    world.accounts().begin_device(options).await.unwrap().finish().await.unwrap();
    assert!(world.stored().is_chatgpt());
}

#[tokio::test(start_paused = true)]
async fn logging_out_revokes_the_login_and_works_without_a_network() {
    let world = World::new();
    let accounts = world.log_in().await;
    let token = world.tokens().refresh_token.unwrap();
    let (was_there, told) = accounts.log_out().await.unwrap();
    assert!(was_there && told.is_ok());
    assert_eq!(world.issuer.revoked(), [token.reveal()]);
    assert!(!world.home().auth_file().exists());

    let accounts = world.log_in().await;
    world.set_down(true);
    let (was_there, told) = accounts.log_out().await.unwrap();
    assert!(was_there);
    assert_eq!(told.unwrap_err().to_string(), "could not reach the login service at nowhere");
    assert!(!world.home().auth_file().exists());
    let (was_there, told) = accounts.log_out().await.unwrap();
    assert!(!was_there && told.is_ok());
}
