//! Requests to an issuer, independent of the HTTP client.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use codex_config::{Env, Secret};
use futures_util::future::BoxFuture;
use reqwest::Url;
use serde_json::Value as Json;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// The time limit for a request, from its beginning to the end of its response.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum size of a response.
const MOST_BYTES: usize = 1024 * 1024;
const MOST_CHALLENGES: usize = 8;

/// A request. Its debug text contains only the address, because everything else may be a secret.
pub struct Request {
    /// Its address.
    pub url: String,
    pub body: Body,
    /// The token that it carries.
    pub bearer: Option<Secret>,
    /// The name and the password that it carries, joined by a colon.
    pub basic: Option<Secret>,
    /// The workspace that it names.
    pub account: Option<String>,
}

/// The body of a request.
pub enum Body {
    /// No body: a GET request.
    None,
    /// A form.
    Form(Vec<(&'static str, String)>),
    /// JSON.
    Json(Json),
}

/// A response. Its debug text contains only the status.
pub struct Answer {
    /// The status.
    pub status: u16,
    pub body: Vec<u8>,
    /// Its headers `WWW-Authenticate`.
    pub challenges: Vec<String>,
}

/// There was no response.
#[derive(Debug, thiserror::Error)]
#[error("could not reach {host}")]
pub struct HttpError {
    /// The host of the request.
    pub host: String,
    /// The cause.
    pub source: Box<dyn Error + Send + Sync>,
}

/// Sends requests.
pub trait Transport: Send + Sync {
    /// Sends a request. The response arrives within a bounded time.
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Answer, HttpError>>;
}

impl Request {
    /// A request that asks.
    #[must_use]
    pub fn get(url: String) -> Self {
        Self::post(url, Body::None)
    }

    /// A request with a body.
    #[must_use]
    pub fn post(url: String, body: Body) -> Self {
        Self { url, body, bearer: None, basic: None, account: None }
    }
}

impl Answer {
    /// Whether the request was granted.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(crate) fn json(&self) -> Option<Json> {
        serde_json::from_slice(&self.body).ok()
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.url.split('?').next().unwrap_or_default();
        f.debug_struct("Request").field("url", &address).finish_non_exhaustive()
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("status", &self.status).finish_non_exhaustive()
    }
}

/// The network.
#[derive(Debug)]
pub struct Network {
    /// A file of certificates to trust besides those of the system.
    ca_certificates: Option<PathBuf>,
}

impl Network {
    /// The network as the variables of a process have it.
    #[must_use]
    pub fn new(env: &Env) -> Self {
        Self { ca_certificates: env.ca_certificates() }
    }

    async fn ask(&self, url: Url, request: Request) -> Result<Answer, Box<dyn Error + Send + Sync>> {
        let client = codex_model::http_client(&url, CONNECT_TIMEOUT, self.ca_certificates.as_deref())?;
        let mut sent = match request.body {
            Body::None => client.get(url),
            Body::Form(fields) => {
                client.post(url).header("content-type", "application/x-www-form-urlencoded").body(form(&fields))
            }
            Body::Json(json) => client.post(url).header("content-type", "application/json").body(json.to_string()),
        };
        if let Some(token) = &request.bearer {
            sent = sent.bearer_auth(token.reveal());
        }
        if let Some(basic) = &request.basic {
            sent = sent.header("authorization", format!("Basic {}", STANDARD.encode(basic.reveal())));
        }
        if let Some(account) = &request.account {
            sent = sent.header("chatgpt-account-id", account);
        }
        let mut response =
            sent.header("accept", "application/json, text/event-stream").send().await.map_err(without_url)?;
        let status = response.status().as_u16();
        let texts = response.headers().get_all("www-authenticate").iter().filter_map(|value| value.to_str().ok());
        let challenges = texts.take(MOST_CHALLENGES).map(str::to_owned).collect();
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_stream = kind.starts_with("text/event-stream");
        let mut body = Vec::new();
        // A stream may never end.
        while !is_stream
            && body.len() < MOST_BYTES
            && let Some(chunk) = response.chunk().await.map_err(without_url)?
        {
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { status, body, challenges })
    }
}

impl Transport for Network {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Answer, HttpError>> {
        Box::pin(async move {
            let host = request.url.split('/').nth(2).unwrap_or_default().to_owned();
            let failed = |source| HttpError { host: host.clone(), source };
            let url = Url::parse(&request.url).map_err(|error| failed(error.into()))?;
            match tokio::time::timeout(TIMEOUT, self.ask(url, request)).await {
                Ok(answer) => answer.map_err(failed),
                Err(_) => Err(failed(format!("no answer within {} s", TIMEOUT.as_secs()).into())),
            }
        })
    }
}

/// An error without the address, whose parameters may contain a secret.
fn without_url(error: reqwest::Error) -> Box<dyn Error + Send + Sync> {
    Box::new(error.without_url())
}

/// The encoded form.
pub(crate) fn form(fields: &[(&'static str, String)]) -> String {
    let Ok(mut url) = Url::parse("http://localhost") else { return String::new() };
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}
