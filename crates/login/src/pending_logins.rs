//! The login as a server sees it: logins that wait for their user, by id.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use codex_config::{
    AccountError, AccountHost, Auth, AuthError, BegunLogin, Config, ExternalTokens, LoginConfig, LoginKind, Pending,
    Secret, TokenRefresher,
};
use codex_wire::tokens::RateLimitSnapshot;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::{Accounts, Issuer, LoginError, LoginOptions};

/// The variables that name another issuer for the logins of clients.
const ISSUER: &str = "CODEX_APP_SERVER_LOGIN_ISSUER";
const CLIENT_ID: &str = "CODEX_APP_SERVER_LOGIN_CLIENT_ID";

/// The time limit for a cancelled login to free its port.
const GIVING_UP: Duration = Duration::from_secs(2);

/// A login that waits for its user.
#[derive(Debug)]
pub(crate) struct WaitingLogin {
    cancel: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// The waiting logins, by id.
pub(crate) type WaitingLogins = HashMap<String, WaitingLogin>;

impl Accounts {
    fn waiting(&self) -> MutexGuard<'_, WaitingLogins> {
        self.waiting_logins().lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels all logins, so that the port is free for the next one.
    async fn give_up_all(&self) {
        let all: Vec<_> = self.waiting().drain().map(|(_, login)| login).collect();
        for WaitingLogin { cancel, task } in all {
            drop(cancel);
            let _ = timeout(GIVING_UP, task).await;
        }
    }

    /// Runs a login in the background until it ends or is cancelled.
    fn go_on(&self, login: impl Future<Output = Result<(), LoginError>> + Send + 'static) -> (String, Ended) {
        let id = codex_wire::ids::fresh_uuid().to_string();
        let (cancel, cancelled) = oneshot::channel();
        let (ended, end) = oneshot::channel();
        let (accounts, name) = (self.clone(), id.clone());
        let task = tokio::spawn(async move {
            let result = tokio::select! {
                result = login => result,
                _ = cancelled => Err(LoginError::Cancelled),
            };
            accounts.waiting().remove(&name);
            // The receiver may be gone.
            let _ = ended.send(result);
        });
        self.waiting().insert(id.clone(), WaitingLogin { cancel, task });
        (id, end)
    }
}

type Ended = oneshot::Receiver<Result<(), LoginError>>;

fn begun((id, end): (String, Ended), url: String, user_code: Option<String>) -> BegunLogin {
    let end = async move { end.await.unwrap_or(Err(LoginError::Cancelled)).map_err(told) };
    BegunLogin { id, url, user_code, end: Box::pin(end) }
}

/// The error for a client.
fn told(error: LoginError) -> AccountError {
    let hint = error.hint().map(|hint| format!("\n{hint}")).unwrap_or_default();
    let is_internal = matches!(
        error,
        LoginError::Auth(AuthError::Read { .. } | AuthError::Write { .. })
            | LoginError::System { .. }
            | LoginError::Locked
            | LoginError::Keyring(_)
            | LoginError::Connect { .. }
            | LoginError::Status { .. }
            | LoginError::Malformed { .. }
            | LoginError::Ports { .. }
    );
    let causes = std::iter::successors(std::error::Error::source(&error), |error| error.source());
    let said = causes.fold(error.to_string(), |said, cause| format!("{said}: {cause}"));
    AccountError { message: format!("{said}{hint}"), is_internal }
}

impl AccountHost for Accounts {
    fn begin<'a>(
        &'a self,
        kind: LoginKind,
        config: &'a Config,
        originator: &'a str,
    ) -> Pending<'a, Result<BegunLogin, AccountError>> {
        Box::pin(async move {
            let (issuer, client) = (self.env().text(ISSUER), self.env().text(CLIENT_ID));
            let issuer = Issuer::new(issuer.as_deref(), client.as_deref(), self.env());
            let options = LoginOptions::new(config, issuer, originator).map_err(told)?;
            self.give_up_all().await;
            match kind {
                LoginKind::Browser => {
                    let login = self.begin_browser(options).await.map_err(told)?;
                    let url = login.url().to_owned();
                    Ok(begun(self.go_on(login.finish()), url, None))
                }
                LoginKind::DeviceCode => {
                    let login = self.begin_device(options).await.map_err(told)?;
                    let (url, code) = (login.page(), login.user_code().to_owned());
                    Ok(begun(self.go_on(login.finish()), url, Some(code)))
                }
            }
        })
    }

    fn cancel(&self, id: &str) -> bool {
        self.waiting().remove(id).is_some()
    }

    fn store_key(&self, key: Secret) -> Pending<'_, Result<(), AccountError>> {
        Box::pin(async move { self.store_api_key(key.reveal().to_owned()).await.map_err(told) })
    }

    fn adopt(&self, tokens: ExternalTokens, refresher: Arc<dyn TokenRefresher>) {
        self.use_external(tokens, refresher);
    }

    fn log_out(&self) -> Pending<'_, Result<(), AccountError>> {
        // A login that could not be revoked expires by itself.
        Box::pin(async move { Self::log_out(self).await.map(drop).map_err(told) })
    }

    fn auth(&self) -> Pending<'_, Result<Arc<Auth>, AccountError>> {
        Box::pin(async move { Self::auth(self).await.map_err(told) })
    }

    fn renew(&self) -> Pending<'_, Result<(), AccountError>> {
        Box::pin(async move {
            let auth = Self::auth(self).await.map_err(told)?;
            let Some(tokens) = auth.tokens.as_ref().filter(|_| auth.is_chatgpt()) else { return Ok(()) };
            self.tokens(Some(&tokens.access_token)).await.map(drop).map_err(told)
        })
    }

    fn limits(&self, login: LoginConfig) -> Pending<'_, Result<RateLimitSnapshot, AccountError>> {
        Box::pin(async move { Self::limits(self, &login).await.map_err(told) })
    }
}
