//! The identity of this program at an authorization server: a configured client, a document that describes it, or a client that
//! is registered for one login.

use codex_config::{Env, McpOauth, Secret};
use serde::Deserialize;
use serde_json::json;

use super::OauthError;
use super::metadata::AuthorizationServer;
use crate::LoginError;
use crate::http::{Body, Request, Transport};
use crate::tokens::{granted, send};

/// The way in which a client authenticates when it asks for tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuthMethod {
    /// It is a public client: PKCE alone protects the code.
    None,
    Basic,
    Post,
}

impl AuthMethod {
    const ALL: [Self; 3] = [Self::None, Self::Basic, Self::Post];

    /// Its name in metadata.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
        }
    }

    pub(super) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// A client of an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<Secret>,
    pub(super) method: AuthMethod,
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    #[serde(default)]
    client_secret: Option<String>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
}

impl Client {
    /// Chooses the client: the configured one, the document at a configured address if the server reads such, and else
    /// one that is registered now.
    pub(super) async fn choose(
        http: &dyn Transport,
        issuer: &AuthorizationServer,
        options: &McpOauth,
        env: &Env,
        redirect_uri: &str,
    ) -> Result<Self, OauthError> {
        match options.client_id.as_deref() {
            Some(id) if !is_document(id) || issuer.takes_client_documents => {
                let variable = options.client_secret_env_var.as_deref();
                let secret = variable.map(|variable| {
                    let missing = || OauthError::NoSecret { variable: variable.to_owned() };
                    env.text(variable).map(Secret::new).ok_or_else(missing)
                });
                Self::of(issuer, id.to_owned(), secret.transpose()?, None)
            }
            Some(_) | None => Self::register(http, issuer, redirect_uri).await,
        }
    }

    async fn register(
        http: &dyn Transport,
        issuer: &AuthorizationServer,
        redirect_uri: &str,
    ) -> Result<Self, OauthError> {
        let name = || issuer.issuer.clone();
        let Some(endpoint) = &issuer.registration else {
            return Err(OauthError::NoRegistration { issuer: name() });
        };
        let wanted = AuthMethod::ALL.into_iter().find(|method| supports(issuer, *method));
        let wanted = wanted.ok_or_else(|| OauthError::NoAuthMethod { issuer: name() })?;
        let body = json!({
            "client_name": "Codex",
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": wanted.name(),
        });
        let answer = send(http, Request::post(endpoint.to_string(), Body::Json(body))).await?;
        let registered: Registered = serde_json::from_value(granted(answer)?)
            .map_err(|_| LoginError::Malformed { what: "it is not a registration" })?;
        let secret = registered.client_secret.filter(|secret| !secret.is_empty()).map(Secret::new);
        Self::of(issuer, registered.client_id, secret, registered.token_endpoint_auth_method.as_deref())
    }

    /// A client with the way to authenticate that it was assigned, or that suits it.
    fn of(
        issuer: &AuthorizationServer,
        id: String,
        secret: Option<Secret>,
        assigned: Option<&str>,
    ) -> Result<Self, OauthError> {
        let assigned = assigned.and_then(AuthMethod::by_name);
        let usual = if secret.is_some() {
            [AuthMethod::Basic, AuthMethod::Post, AuthMethod::None]
        } else {
            [AuthMethod::None; 3]
        };
        let suits = |method: &AuthMethod| supports(issuer, *method);
        let method = assigned.or_else(|| usual.into_iter().find(suits)).unwrap_or(usual[0]);
        if method != AuthMethod::None && secret.is_none() {
            return Err(OauthError::NoAuthMethod { issuer: issuer.issuer.clone() });
        }
        Ok(Self { id, secret, method })
    }
}

/// Whether a client id is the address of a document that describes the client.
fn is_document(id: &str) -> bool {
    id.starts_with("https://")
}

/// A server that does not say which ways it supports is taken to support all.
fn supports(issuer: &AuthorizationServer, method: AuthMethod) -> bool {
    issuer.auth_methods.as_ref().is_none_or(|names| names.iter().any(|name| name == method.name()))
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::*;

    #[track_caller]
    fn check(supported: Option<&[&str]>, secret: bool, assigned: Option<&str>, expected: Option<AuthMethod>) {
        let mut issuer = AuthorizationServer::at_host_of(&Url::parse("https://a.example").unwrap());
        issuer.auth_methods = supported.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let client = Client::of(&issuer, "c".to_owned(), secret.then(|| Secret::new("s")), assigned);
        assert_eq!(client.ok().map(|client| client.method), expected, "{supported:?} {secret} {assigned:?}");
    }

    #[test]
    fn the_way_to_authenticate_suits_server_and_client() {
        use AuthMethod::{Basic, None as Public, Post};
        check(None, false, None, Some(Public));
        check(None, true, None, Some(Basic));
        check(Some(&["client_secret_post", "private_key_jwt"]), true, None, Some(Post));
        check(Some(&["none"]), true, None, Some(Public));
        check(Some(&["client_secret_basic"]), true, Some("client_secret_post"), Some(Post));
        check(Some(&["client_secret_basic"]), false, Some("client_secret_basic"), None);
        check(Some(&["private_key_jwt"]), true, Some("private_key_jwt"), Some(Basic));
    }
}
