//! Logins to servers that clients have begun and that wait for their user.
//!
//! Invariant: at most one login to each server waits; a new one takes its place.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use codex_config::{AccountError, BegunLogin, Pending};
use codex_login::{LoginRequest, OauthError, ServerLogin};
use codex_tools::servers::ServerLoginRequest;
use tokio::sync::oneshot;

/// The logins that wait, by the name of the server: the id of each, and what ends it when it is dropped.
#[derive(Default)]
pub(crate) struct WaitingLogins(Mutex<HashMap<String, (String, oneshot::Sender<()>)>>);

/// Begins a login, which goes on by itself; `then` is called when it is stored.
pub(crate) async fn begin(
    waiting: Arc<WaitingLogins>,
    login: ServerLogin,
    request: ServerLoginRequest,
    then: impl FnOnce() + Send + 'static,
) -> Result<BegunLogin, AccountError> {
    let ServerLoginRequest { name, scopes, timeout } = request;
    waiting.remove(&name, None);
    let pending = login.begin(LoginRequest { scopes, timeout }).await.map_err(told)?;
    let (url, id) = (pending.url().to_owned(), codex_wire::ids::fresh_uuid().to_string());
    let (cancel, cancelled) = oneshot::channel();
    let (ended, end) = oneshot::channel();
    waiting.insert(name.clone(), id.clone(), cancel);
    let own = id.clone();
    tokio::spawn(async move {
        let result = tokio::select! {
            result = pending.finish() => result.map_err(told),
            _ = cancelled => Err(given_up()),
        };
        waiting.remove(&name, Some(&own));
        if result.is_ok() {
            then();
        }
        // Nobody may be left who wants to know.
        let _ = ended.send(result);
    });
    let end: Pending<'static, _> = Box::pin(async move { end.await.unwrap_or_else(|_| Err(given_up())) });
    Ok(BegunLogin { id, url, user_code: None, end })
}

impl WaitingLogins {
    fn insert(&self, name: String, id: String, cancel: oneshot::Sender<()>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name, (id, cancel));
    }

    /// Gives up the login to a server, if it is this one.
    fn remove(&self, name: &str, id: Option<&str>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(name).is_some_and(|(known, _)| id.is_none_or(|id| id == known)) {
            all.remove(name);
        }
    }
}

fn given_up() -> AccountError {
    AccountError { message: "Login was not completed".to_owned(), is_internal: false }
}

fn told(error: OauthError) -> AccountError {
    AccountError { message: error.in_full(), is_internal: !matches!(error, OauthError::Unsupported { .. }) }
}
