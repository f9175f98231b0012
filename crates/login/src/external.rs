//! Tokens that a client supplies: kept in memory, and renewed by asking that client.

use std::sync::Arc;
use std::time::Duration;

use codex_config::{Auth, Secret, Tokens};
pub use codex_config::{ExternalTokens, TokenRefresher};
use tokio::time::timeout;

use crate::{Accounts, LoginError};

/// The time limit for the client to supply new tokens.
const CLIENT_TIME: Duration = Duration::from_secs(30);

/// The maximum length of a client's error that is passed on.
const LONGEST_WHY: usize = 200;

/// The tokens of a client, and the client to ask for new ones.
#[derive(Clone)]
pub(crate) struct External {
    auth: Arc<Auth>,
    refresher: Arc<dyn TokenRefresher>,
}

impl External {
    fn new(tokens: ExternalTokens, refresher: Arc<dyn TokenRefresher>) -> Self {
        let ExternalTokens { access_token, account_id, plan } = tokens;
        let tokens = Tokens { id_token: None, access_token, refresh_token: None, account_id: Some(account_id) };
        let mode = Some("chatgptAuthTokens".to_owned());
        let auth = Arc::new(Auth { mode, tokens: Some(tokens), plan, ..Auth::default() });
        Self { auth, refresher }
    }

    pub(crate) fn auth(&self) -> Arc<Auth> {
        Arc::clone(&self.auth)
    }
}

impl Accounts {
    /// Uses the tokens of a client from now on, until the next logout or login.
    pub fn use_external(&self, tokens: ExternalTokens, refresher: Arc<dyn TokenRefresher>) {
        *self.external() = Some(External::new(tokens, refresher));
    }

    /// Asks the client for new tokens, unless others have arrived meanwhile.
    pub(crate) async fn refresh_external(&self, refused: &Tokens) -> Result<Tokens, LoginError> {
        let _turn = self.turn().await;
        let Some(External { auth, refresher, .. }) = self.external().clone() else {
            return Err(LoginError::NotRenewable);
        };
        let now = auth.tokens.clone().ok_or(LoginError::NotRenewable)?;
        if now.access_token != refused.access_token {
            return Ok(now);
        }
        let account = refused.account_id.clone().unwrap_or_default();
        let refreshed = timeout(CLIENT_TIME, refresher.refresh(&account)).await;
        let refreshed =
            refreshed.unwrap_or_else(|_| Err(format!("it did not answer within {} s", CLIENT_TIME.as_secs())));
        let tokens = refreshed.map_err(|why| LoginError::Client { why: shown(&why, &now.access_token) })?;
        let external = External::new(tokens, refresher);
        let tokens = external.auth.tokens.clone().ok_or(LoginError::NotRenewable)?;
        *self.external() = Some(external);
        Ok(tokens)
    }
}

/// The client's error, shortened and without the token.
fn shown(why: &str, token: &Secret) -> String {
    let why: String = why.chars().filter(|c| !c.is_control()).take(LONGEST_WHY).collect();
    if why.contains(token.reveal()) { "it refused".to_owned() } else { why }
}
