//! The login that requests to a server carry.
//!
//! Invariant: a request is sent at most twice: again only after a 401, and only with another token.

use codex_config::Secret;
use codex_login::{Challenge, OauthError, ServerLogin};
use reqwest::header::WWW_AUTHENTICATE;
use reqwest::{RequestBuilder, Response, StatusCode};

/// The login to a server, if a person can log in there.
pub(crate) struct Authorization(pub(crate) Option<ServerLogin>);

impl Authorization {
    /// Sends a request with the token of the login. A token that is refused is renewed once.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, String> {
        let Some(login) = &self.0 else { return sent(request, None).await };
        let again = request.try_clone();
        let token = login.token().await.map_err(|error| error.in_full())?;
        let mut response = sent(request, token.as_ref()).await?;
        if let (StatusCode::UNAUTHORIZED, Some(again)) = (response.status(), again) {
            match login.refused(token.as_ref(), challenge(&response)).await {
                Ok(renewed) => response = sent(again, Some(&renewed)).await?,
                // The server may say more about it.
                Err(OauthError::NotLoggedIn { .. }) => return Ok(response),
                Err(error) => return Err(error.in_full()),
            }
        }
        if response.status() == StatusCode::FORBIDDEN {
            let challenge = challenge(&response);
            if challenge.is_insufficient_scope() {
                return Err(login.lacks_scope(challenge).await.in_full());
            }
        }
        Ok(response)
    }

    /// A next step after a request that was refused.
    pub(crate) fn hint(&self) -> String {
        let Some(login) = &self.0 else { return "check its token".to_owned() };
        format!("run `codex mcp login {}`, or set its token", login.name())
    }
}

async fn sent(request: RequestBuilder, token: Option<&Secret>) -> Result<Response, String> {
    let request = token.into_iter().fold(request, |request, token| request.bearer_auth(token.reveal()));
    request.send().await.map_err(|error| codex_tools::full_message(&error.without_url()))
}

fn challenge(response: &Response) -> Challenge {
    Challenge::of(response.headers().get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok()))
}
