//! Tokens that a client supplies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use codex_config::{ExternalTokens, LoginConfig, Pending, Secret, TokenRefresher};
use futures_util::future::join_all;

use crate::world::{World, openai};

/// A client that supplies new tokens this many times.
struct Client {
    left: AtomicUsize,
    asked: AtomicUsize,
}

fn tokens(token: &str) -> ExternalTokens {
    ExternalTokens { access_token: Secret::new(token), account_id: "acct-9".to_owned(), plan: Some("team".to_owned()) }
}

impl TokenRefresher for Client {
    fn refresh<'a>(&'a self, account_id: &'a str) -> Pending<'a, Result<ExternalTokens, String>> {
        assert_eq!(account_id, "acct-9");
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let is_left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        Box::pin(async move { if is_left { Ok(tokens(&format!("canary-{number}"))) } else { Err("no\n".to_owned()) } })
    }
}

#[tokio::test(start_paused = true)]
async fn they_go_before_the_file_and_are_renewed_by_the_client() {
    let world = World::new();
    let accounts = world.log_in().await;
    let client = Arc::new(Client { left: AtomicUsize::new(1), asked: AtomicUsize::default() });
    accounts.use_external(tokens("canary-0"), client.clone());
    let credentials = accounts.credentials(LoginConfig::default(), &openai());
    let used = credentials.authorize().await.unwrap();
    assert_eq!(used.bearer.as_ref().unwrap().expose(), "canary-0");
    assert_eq!(used.account.as_deref(), Some("acct-9"));
    assert_eq!(accounts.auth().await.unwrap().plan.as_deref(), Some("team"));

    let refused = join_all((0..50).map(|_| credentials.refused(&used))).await;
    assert!(refused.into_iter().all(|is_renewed| is_renewed));
    assert_eq!(client.asked.load(Ordering::Relaxed), 1);
    let renewed = credentials.authorize().await.unwrap();
    assert_eq!(renewed.bearer.as_ref().unwrap().expose(), "canary-1");
    assert!(!credentials.refused(&renewed).await);
    assert_eq!(world.issuer.renewals(), 0);

    let file = std::fs::read_to_string(world.home().auth_file()).unwrap();
    assert!(!file.contains("canary-0") && !file.contains("canary-1\""), "they are in memory alone");
    let (_, told) = accounts.log_out().await.unwrap();
    told.unwrap();
    assert!(credentials.authorize().await.is_err());
}
