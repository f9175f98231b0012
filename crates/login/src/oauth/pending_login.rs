//! A login to a server that waits for a browser.

use std::time::Duration;

use codex_config::Secret;
use reqwest::Url;
use serde_json::json;
use tokio::net::TcpListener;

use super::addresses::Allowed;
use super::client::Client;
use super::credentials::Credentials;
use super::discovery::{Discovered, discover};
use super::server_login::distinct;
use super::token_endpoint::TokenEndpoint;
use super::{Challenge, OauthError, ServerLogin};
use crate::browser::{BrowserFlow, ExpectedIssuer};
use crate::callback;
use crate::flow::receive_grant;
use crate::http::{Body, Request};
use crate::tokens::{Grant, send};

/// The time limit for the user in the browser: by default, and at most.
const USUAL_TIME: Duration = Duration::from_secs(5 * 60);
const MOST_TIME: Duration = Duration::from_secs(60 * 60);

/// The scope for a token that can be renewed while the user is away.
const OFFLINE: &str = "offline_access";

/// The wishes of a user who logs in.
#[derive(Debug, Clone, Default)]
pub struct LoginRequest {
    /// The scopes, in place of those of the configuration and of the server.
    pub scopes: Option<Vec<String>>,
    /// The time limit for the user.
    pub timeout: Option<Duration>,
}

/// A login that waits for a browser. Dropping it gives it up and frees the port.
#[derive(Debug)]
pub struct PendingServerLogin {
    login: ServerLogin,
    found: Discovered,
    client: Client,
    scopes: Vec<String>,
    flow: BrowserFlow,
    listener: TcpListener,
    url: String,
    timeout: Duration,
}

impl ServerLogin {
    /// Begins a login.
    pub async fn begin(&self, request: LoginRequest) -> Result<PendingServerLogin, OauthError> {
        let (server, http) = (&self.server, &*self.owner.http);
        let address = Allowed::server(&server.url)?;
        let challenge = match self.latest_challenge() {
            Some(challenge) => Some(challenge),
            None => self.probe().await,
        };
        let mut found = discover(http, &server.name, &address, challenge.as_ref()).await?;
        if let Some(resource) = &server.options.resource {
            found.resource.clone_from(resource);
        }
        let port = server.options.callback_port.or(server.callback_port).unwrap_or(0);
        let (listener, port) = callback::bind(&[port]).await?;
        let (name, is_required) = (found.issuer.issuer.clone(), found.issuer.names_itself);
        let flow = BrowserFlow::at("127.0.0.1", port, "/callback", Some(ExpectedIssuer { name, is_required }))?;
        let client = Client::choose(http, &found.issuer, &server.options, &self.owner.env, flow.redirect_uri()).await?;
        let scopes = self.scopes(request.scopes, challenge.as_ref(), &found).await;
        let url = authorization_url(&found, &client, &flow, &scopes);
        let timeout = request.timeout.unwrap_or(USUAL_TIME).min(MOST_TIME);
        Ok(PendingServerLogin { login: self.clone(), found, client, scopes, flow, listener, url, timeout })
    }

    /// Asks the server something harmless, to see the challenge. A server that cannot be reached has none.
    async fn probe(&self) -> Option<Challenge> {
        let ping = json!({"jsonrpc": "2.0", "id": 0, "method": "ping"});
        let request = Request::post(self.server.url.clone(), Body::Json(ping));
        let answer = send(&*self.owner.http, request).await.ok()?;
        (answer.status == 401).then(|| Challenge::of(answer.challenges.iter().map(String::as_str)))
    }

    /// The scopes to ask for: those of the user, or else of the configuration, of the challenge or of the server. After
    /// a request that needed more scopes, those that were granted before stay.
    async fn scopes(
        &self,
        wanted: Option<Vec<String>>,
        challenge: Option<&Challenge>,
        found: &Discovered,
    ) -> Vec<String> {
        if let Some(wanted) = wanted {
            return distinct(wanted);
        }
        let challenged = challenge.and_then(Challenge::scopes);
        let mut scopes = Vec::new();
        if challenge.is_some_and(Challenge::is_insufficient_scope) {
            scopes.extend(self.granted_scopes().await);
            scopes.extend(challenged.clone().unwrap_or_default());
        }
        let listed = || challenged.or_else(|| found.scopes.clone()).unwrap_or_default();
        scopes.extend(self.server.options.scopes.clone().unwrap_or_else(listed));
        if found.issuer.scopes.iter().any(|scope| scope == OFFLINE) {
            scopes.push(OFFLINE.to_owned());
        }
        distinct(scopes)
    }
}

fn authorization_url(found: &Discovered, client: &Client, flow: &BrowserFlow, scopes: &[String]) -> String {
    let mut url = found.issuer.authorization.clone();
    url.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", &client.id)
        .append_pair("resource", &found.resource)
        .extend_pairs(flow.parameters());
    if !scopes.is_empty() {
        url.query_pairs_mut().append_pair("scope", &scopes.join(" "));
    }
    url.into()
}

impl PendingServerLogin {
    /// The address that the user opens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Waits for the user, and stores the login.
    pub async fn finish(self) -> Result<(), OauthError> {
        let Self { login, found, client, scopes, flow, listener, url: _, timeout } = self;
        receive_grant(listener, flow, timeout, async |grant| redeem(&login, &found, client, scopes, &grant).await).await
    }
}

/// Exchanges a code and stores the login.
async fn redeem(
    login: &ServerLogin,
    found: &Discovered,
    client: Client,
    scopes: Vec<String>,
    grant: &Grant,
) -> Result<(), OauthError> {
    let (http, url, resource) = (&*login.owner.http, found.issuer.token.as_str(), Some(found.resource.as_str()));
    let issued = TokenEndpoint { http, url, client: &client, resource }.exchange(grant).await?;
    let mut credentials = Credentials {
        server_name: login.server.name.clone(),
        server_url: login.server.url.clone(),
        client,
        access_token: Secret::new(""),
        refresh_token: None,
        issued_at: None,
        expires_at: None,
        scopes,
        resource: Some(found.resource.clone()),
        token_endpoint: Some(found.issuer.token.to_string()),
        revocation_endpoint: found.issuer.revocation.as_ref().map(Url::to_string),
    };
    credentials.renew(issued, login.owner.now());
    login.store(credentials).await
}
