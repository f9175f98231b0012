//! The credentials of a provider: a key of the user, a key that a program prints, or the login.

use std::sync::Arc;

use codex_config::{Auth, Bearer, LoginConfig, ProviderConfig, Secret, TokenSource};
use codex_model::{Authorization, Credentials, ModelError, SharedCredentials};
use futures_util::future::BoxFuture;
use reqwest::Url;

use crate::flow::check_store;
use crate::key_program::KeyProgram;
use crate::{Accounts, LoginError};

/// The host whose models `ChatGPT` serves, if the user is logged in there.
const OPENAI_HOST: &str = "api.openai.com";

impl Accounts {
    /// The credentials of a provider. A login, a logout or a renewed token affects its next request.
    #[must_use]
    pub fn credentials(&self, login: LoginConfig, provider: &ProviderConfig) -> SharedCredentials {
        let program = provider.auth.clone();
        let program = program.map(|command| KeyProgram::new(&provider.name, command, self.env()));
        SharedCredentials::new(ProviderCredentials {
            accounts: self.clone(),
            login,
            provider: provider.clone(),
            program,
        })
    }
}

/// The credentials of one provider.
struct ProviderCredentials {
    accounts: Accounts,
    login: LoginConfig,
    provider: ProviderConfig,
    program: Option<KeyProgram>,
}

impl ProviderCredentials {
    async fn find(&self, refused: Option<&Authorization>) -> Result<Authorization, LoginError> {
        let refused = refused.and_then(|used| used.bearer.as_ref()).map(codex_model::Secret::expose);
        if let Some(program) = &self.program {
            return Ok(Authorization::bearer(program.key(refused).await?.reveal()));
        }
        let auth = self.auth().await?;
        let Some(bearer) = auth.bearer(&self.provider, self.accounts.env())? else {
            return Ok(Authorization::default());
        };
        let Bearer { token, source: TokenSource::Login { .. } } = bearer else {
            return Ok(Authorization::bearer(bearer.token.reveal()));
        };
        let base_url = self.base_url()?;
        let is_refused = refused == Some(token.reveal());
        let tokens = self.accounts.tokens(is_refused.then(|| Secret::new(token.reveal())).as_ref()).await?;
        let bearer = Authorization::bearer(tokens.access_token.reveal());
        Ok(Authorization { account: tokens.account(), base_url: Some(base_url), ..bearer })
    }

    /// The login, if the provider uses one.
    async fn auth(&self) -> Result<Arc<Auth>, LoginError> {
        if !self.provider.requires_openai_auth {
            return Ok(Arc::default());
        }
        check_store(&self.login)?;
        self.accounts.auth().await
    }

    /// The one address that a login is sent to: that of `ChatGPT`, whatever the provider's address is.
    fn base_url(&self) -> Result<String, LoginError> {
        let own = self.provider.base_url.as_deref().unwrap_or_default();
        let parsed = Url::parse(own).ok();
        let chatgpt = Url::parse(&self.login.chatgpt_base_url).ok();
        match (parsed, chatgpt) {
            (Some(own), _) if own.host_str() == Some(OPENAI_HOST) => Ok(self.login.models_url()),
            (Some(url), Some(chatgpt)) if url.origin() == chatgpt.origin() => Ok(own.to_owned()),
            _ => Err(LoginError::ForeignHost { provider: self.provider.name.clone() }),
        }
    }
}

impl Credentials for ProviderCredentials {
    fn authorize(&self) -> BoxFuture<'_, Result<Authorization, ModelError>> {
        Box::pin(async move { self.find(None).await.map_err(|error| unavailable(&error)) })
    }

    /// The token may be renewed, and the user may have logged in again since the request was sent.
    fn refused<'a>(&'a self, used: &'a Authorization) -> BoxFuture<'a, bool> {
        Box::pin(async move { self.find(Some(used)).await.is_ok_and(|now| now != *used) })
    }
}

fn unavailable(error: &LoginError) -> ModelError {
    let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    ModelError::Unavailable { message: format!("{error}{hint}") }
}
