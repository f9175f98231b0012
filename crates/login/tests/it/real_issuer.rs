//! The same flows with a real provider: `CODEX_TEST_OIDC` names its address, and `CODEX_TEST_OIDC_USER` a program that
//! opens a URL as a user would.

use std::time::Duration;

use codex_config::{Auth, Home, LoginConfig, Tokens};
use codex_login::{Accounts, Issuer, LoginError, LoginOptions, PORTS};
use codex_model::SharedCredentials;
use futures_util::future::join_all;
use tokio::process::Command;

use crate::world::{env, openai};

/// Opens a URL as a user would, to the end.
async fn open(user: &str, url: &str) {
    let mut words = user.split(' ');
    let mut command = Command::new(words.next().unwrap());
    let opened = command.args(words).args(["open", url]).output();
    let opened = tokio::time::timeout(Duration::from_secs(60), opened).await.unwrap().unwrap();
    assert!(opened.status.success(), "{opened:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_provider_is_understood() {
    let (Ok(url), Ok(user)) = (std::env::var("CODEX_TEST_OIDC"), std::env::var("CODEX_TEST_OIDC_USER")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let accounts = Accounts::new(&home, &env());
    let issuer = Issuer::new(Some(&url), None, &env());
    let options = LoginOptions { issuer, originator: "tests".into(), workspaces: Vec::new(), ports: PORTS.to_vec() };
    let tokens = || Auth::load(&home).unwrap().tokens.unwrap();

    let login = accounts.begin_browser(options.clone()).await.unwrap();
    let address = login.url().to_owned();
    let (ended, ()) = tokio::join!(login.finish(), open(&user, &address));
    ended.unwrap();
    let first = tokens();
    assert_eq!(first.account_id.as_deref(), Some("acct-alice"));

    let login = accounts.begin_browser(options.clone()).await.unwrap();
    drop(login);

    let login = accounts.begin_device(options.clone()).await.unwrap();
    let page = format!("{}?user_code={}", login.page(), login.user_code());
    let (ended, ()) = tokio::join!(login.finish(), open(&user, &page));
    ended.unwrap();
    let second = tokens();
    assert_ne!(first.access_token, second.access_token);

    // Two processes with fifty threads renew once, because the provider rejects a refresh token that is reused.
    let processes = [accounts.clone(), Accounts::new(&home, &env())];
    let all: Vec<SharedCredentials> = processes
        .iter()
        .flat_map(|accounts| (0..50).map(|_| accounts.credentials(LoginConfig::default(), &openai())))
        .collect();
    let first_used = all[0].authorize().await.unwrap();
    let renewed = join_all(all.iter().map(|credentials| credentials.refused(&first_used))).await;
    assert!(renewed.into_iter().all(|is_renewed| is_renewed));
    let third = tokens();
    assert!(third.access_token != second.access_token && third.refresh_token != second.refresh_token);

    // An expired token is renewed before it is used.
    let claims = codex_config::Claims::of(&third.access_token);
    let life = claims.expires_at.unwrap() - claims.issued_at.unwrap();
    assert!(life <= 10, "start the provider with access tokens that live for 5 s: these live for {life} s");
    tokio::time::timeout(Duration::from_secs(30), async {
        while tokens().access_token == third.access_token {
            all[0].authorize().await.unwrap();
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();

    // After a logout there is nothing to renew.
    let now = tokens();
    let (was_there, told) = accounts.log_out().await.unwrap();
    assert!(was_there);
    told.unwrap();
    assert_ended(&accounts, &home, &now).await;
    // A refresh token is used once: the second use ends the login.
    Auth::write(&home, &Auth::tokens_json(&first, "2026-01-01T00:00:00Z")).unwrap();
    assert_ne!(accounts.tokens(Some(&first.access_token)).await.unwrap().access_token, first.access_token);
    assert_ended(&accounts, &home, &first).await;
}

async fn assert_ended(accounts: &Accounts, home: &Home, tokens: &Tokens) {
    Auth::write(home, &Auth::tokens_json(tokens, "2026-01-01T00:00:00Z")).unwrap();
    let ended = accounts.tokens(Some(&tokens.access_token)).await;
    assert!(matches!(ended, Err(LoginError::Ended { .. })), "{ended:?}");
}
