//! The user's login as the credentials of a provider.

use std::sync::{Mutex, PoisonError};

use codex_config::{Auth, Env, Home, ProviderConfig};
use codex_files::Stamp;
use codex_model::{Authorization, Credentials, ModelError, Secret};
use futures_util::future::BoxFuture;

/// The key or token of a provider. The file of the login is read again when it has changed, so whoever logs in, out, or
/// renews a token changes the next request of every thread.
pub(crate) struct Login {
    provider: ProviderConfig,
    home: Home,
    env: Env,
    /// What was read last, and from which state of the file.
    known: Mutex<Option<(Option<Stamp>, Authorization)>>,
}

impl Login {
    /// The login of a provider.
    pub(crate) fn new(provider: &ProviderConfig, home: &Home, env: &Env) -> Self {
        Self { provider: provider.clone(), home: home.clone(), env: env.clone(), known: Mutex::default() }
    }

    /// The state of the file, if the provider cares what the file holds.
    fn stamp(&self) -> Option<Stamp> {
        self.provider.requires_openai_auth.then(|| Stamp::of(&self.home.auth_file()))
    }

    fn known(&self, stamp: Option<Stamp>) -> Option<Authorization> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().filter(|(of, _)| *of == stamp).map(|(_, authorization)| authorization.clone())
    }
}

impl Credentials for Login {
    fn authorize(&self) -> BoxFuture<'_, Result<Authorization, ModelError>> {
        Box::pin(async move {
            let stamp = self.stamp();
            if let Some(authorization) = self.known(stamp) {
                return Ok(authorization);
            }
            let (provider, home, env) = (self.provider.clone(), self.home.clone(), self.env.clone());
            let read = tokio::task::spawn_blocking(move || read(&provider, &home, &env)).await;
            let authorization = read.unwrap_or_else(|error| Err(unavailable(error.to_string())))?;
            *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((stamp, authorization.clone()));
            Ok(authorization)
        })
    }

    /// Somebody may have logged in again since the request was sent.
    fn refused<'a>(&'a self, used: &'a Authorization) -> BoxFuture<'a, bool> {
        Box::pin(async move { self.authorize().await.is_ok_and(|now| now != *used) })
    }
}

fn read(provider: &ProviderConfig, home: &Home, env: &Env) -> Result<Authorization, ModelError> {
    let login = if provider.requires_openai_auth { Auth::load(home) } else { Ok(Auth::default()) };
    match login.and_then(|auth| auth.bearer(provider, env)) {
        Ok(bearer) => {
            Ok(Authorization { bearer: bearer.map(|bearer| Secret::new(bearer.token.reveal())), account: None })
        }
        Err(error) => {
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            Err(unavailable(format!("{error}{hint}")))
        }
    }
}

fn unavailable(message: String) -> ModelError {
    ModelError::Unavailable { message }
}
