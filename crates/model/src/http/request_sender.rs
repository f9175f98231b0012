//! Sends requests to a provider: its URL, the headers of every request, and a client that keeps connections open.

use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use bytes::Bytes;
use codex_wire::ids::ThreadId;
use reqwest::{
    Client, Response, Url,
    header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT},
};

use super::body::{ACCEPTED_ENCODINGS, ResponseBody};
use super::clients::{http_client, is_loopback, upgradable_client};
use crate::{
    Authorization, ModelError, Prompt, Provider, WireKind,
    error_response::{READ_LIMIT, error_of_response},
    redact::Secrets,
    retry::with_retries,
};

/// The parameter that states the version of the API to some providers.
const API_VERSION: &str = "api-version";

/// A changed login needs another address; many are never needed.
const MOST_ENDPOINTS: usize = 4;

/// The header that names the workspace of a login with `ChatGPT`.
const ACCOUNT: &str = "chatgpt-account-id";

/// The headers by which providers name a request.
const REQUEST_IDS: [&str; 4] = ["x-request-id", "request-id", "apim-request-id", "x-oai-request-id"];

/// The longest name of a request that is shown.
const LONGEST_ID: usize = 100;

#[derive(Debug)]
pub(super) struct RequestSender {
    pub(super) headers: HeaderMap,
    /// By the address that requests were authorized for: the provider's own, and the one that a login is bound to.
    endpoints: Mutex<Vec<(String, Arc<Endpoint>)>>,
}

/// One address, with the client of this process that keeps connections to it open.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) client: Client,
    pub(super) url: Url,
    pub(super) host: String,
}

impl Endpoint {
    fn new(provider: &Provider, base_url: &str) -> Result<Self, ModelError> {
        let url = request_url(provider, base_url, provider.wire.path())?;
        let host = match (url.host_str(), url.port_or_known_default()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            _ => provider.name.clone(),
        };
        let client = http_client(&url, provider.connect_timeout, provider.ca_certificates.as_deref())?;
        Ok(Self { client, url, host })
    }

    /// A client whose connections can become WebSockets.
    pub(super) fn upgradable_client(&self, provider: &Provider) -> Result<Client, ModelError> {
        upgradable_client(&self.url, provider.connect_timeout, provider.ca_certificates.as_deref())
    }
}

impl RequestSender {
    pub(super) fn new(provider: &Provider) -> Result<Self, ModelError> {
        Ok(Self { headers: headers(provider)?, endpoints: Mutex::default() })
    }

    /// The endpoint for a request with this authorization.
    pub(super) fn endpoint(&self, provider: &Provider, used: &Authorization) -> Result<Arc<Endpoint>, ModelError> {
        let base_url = used.base_url.as_ref().unwrap_or(&provider.base_url);
        let mut endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = endpoints.iter().find(|(of, _)| of == base_url) {
            return Ok(Arc::clone(known));
        }
        let endpoint = Arc::new(Endpoint::new(provider, base_url)?);
        endpoints.truncate(MOST_ENDPOINTS - 1);
        endpoints.push((base_url.clone(), Arc::clone(&endpoint)));
        Ok(endpoint)
    }

    /// Sends a request until a stream opens, within the provider's limits on attempts and silence. The request may
    /// depend on its account. Returns the response and the authorization that it was sent with.
    pub(super) async fn open(
        &self,
        provider: &Provider,
        prompt: &Prompt,
        body: impl Fn(Option<&str>) -> Vec<u8>,
    ) -> Result<(Response, Authorization), ModelError> {
        let headers = thread_headers(&self.headers, prompt.thread)?;
        let mut attempt = 0;
        with_retries(provider.request_max_retries, prompt.pace.as_deref(), || {
            attempt += 1;
            let attempt = attempt;
            let (headers, body) = (&headers, &body);
            async move { self.authorized(provider, headers, body, attempt).await }
        })
        .await
    }

    /// Sends a request with the current authorization. If that is rejected and there is another one by then, the request
    /// is sent once more.
    async fn authorized(
        &self,
        provider: &Provider,
        headers: &HeaderMap,
        body: &impl Fn(Option<&str>) -> Vec<u8>,
        attempt: u32,
    ) -> Result<(Response, Authorization), ModelError> {
        let credentials = &provider.credentials;
        let used = credentials.authorize().await?;
        let bytes = Bytes::from(body(used.account.as_deref()));
        let sent = self.send(provider, authorize(headers, &used, provider)?, (bytes.clone(), attempt), &used).await;
        match sent {
            Err(ModelError::Unauthorized { status: 401, .. }) if credentials.refused(&used).await => {
                let renewed = credentials.authorize().await?;
                let is_same = renewed.account == used.account;
                let bytes = if is_same { bytes } else { Bytes::from(body(renewed.account.as_deref())) };
                let sent =
                    self.send(provider, authorize(headers, &renewed, provider)?, (bytes, attempt), &renewed).await;
                Ok((sent?, renewed))
            }
            sent => Ok((sent?, used)),
        }
    }

    async fn send(
        &self,
        provider: &Provider,
        headers: HeaderMap,
        (body, attempt): (Bytes, u32),
        used: &Authorization,
    ) -> Result<Response, ModelError> {
        let idle = provider.stream_idle_timeout;
        let endpoint = self.endpoint(provider, used)?;
        let request = endpoint.client.post(endpoint.url.clone()).headers(headers).body(body);
        let response = tokio::time::timeout(idle, request.send())
            .await
            .map_err(|_| ModelError::Idle { after: idle })?
            .map_err(|error| ModelError::Connect { host: endpoint.host.clone(), source: without_url(error) })?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(refused(provider, &endpoint, response, used, attempt).await)
    }
}

/// Reads the error response of a provider.
pub(super) async fn refused(
    provider: &Provider,
    endpoint: &Endpoint,
    response: Response,
    used: &Authorization,
    attempt: u32,
) -> ModelError {
    let headers = response.headers().clone();
    let details = details(endpoint, &headers, attempt);
    let status = response.status().as_u16();
    let (mut source, mut body) = (ResponseBody::new(response), Vec::new());
    // The part that arrived by the deadline is enough: the status alone tells most of it.
    let _ = tokio::time::timeout(provider.stream_idle_timeout, async {
        while body.len() < READ_LIMIT
            && let Ok(Some(chunk)) = source.chunk().await
        {
            body.extend_from_slice(&chunk);
        }
    })
    .await;
    body.truncate(READ_LIMIT);
    // A key is removed first, because the message is cut afterwards.
    let secrets = Secrets::of(provider, used);
    let text = secrets.remove(&String::from_utf8_lossy(&body));
    let error = error_of_response(status, |name| header_text(&headers, name), &text, SystemTime::now());
    error.with_details(&details).without(&secrets)
}

/// Details that help the provider's operators find a refused request. A local host is not
/// named.
fn details(endpoint: &Endpoint, headers: &HeaderMap, attempt: u32) -> Vec<String> {
    let id = REQUEST_IDS.iter().find_map(|name| header_text(headers, name)).filter(|id| id.len() <= LONGEST_ID);
    let host = (!is_loopback(&endpoint.url)).then(|| endpoint.host.clone());
    let known: Vec<String> = host.into_iter().chain(id.map(|id| format!("request ID {id}"))).collect();
    let again = (attempt > 1 && !known.is_empty()).then(|| format!("attempt {attempt}"));
    known.into_iter().chain(again).collect()
}

/// The text of a header, if it has one that is text.
pub(super) fn header_text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// An error without the URL, whose parameters may hold a key.
pub(super) fn without_url(error: reqwest::Error) -> Box<dyn Error + Send + Sync> {
    Box::new(error.without_url())
}

/// The URL of a request: the provider's, with a path and its parameters.
pub(super) fn request_url(provider: &Provider, base_url: &str, path: &[&str]) -> Result<Url, ModelError> {
    let wrong = |why: &str| ModelError::Url { url: base_url.to_owned(), why: why.to_owned() };
    let mut url = Url::parse(base_url.trim()).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it has to begin with http:// or https://"));
    }
    url.path_segments_mut().map_err(|()| wrong("it has no path"))?.pop_if_empty().extend(path);
    if !provider.query.is_empty() {
        url.query_pairs_mut().extend_pairs(&provider.query);
    }
    // The user's own header takes precedence over the table.
    if let Some(version) = provider.traits.api_version.as_ref().filter(|_| provider.wire != WireKind::Anthropic)
        && !provider.query.iter().any(|(name, _)| name == API_VERSION)
    {
        url.query_pairs_mut().append_pair(API_VERSION, version);
    }
    Ok(url)
}

fn headers(provider: &Provider) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED_ENCODINGS));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, header_value("user-agent", &provider.user_agent)?);
    headers.insert("originator", header_value("originator", &provider.originator)?);
    if let Some(version) = provider.traits.api_version.as_ref().filter(|_| provider.wire == WireKind::Anthropic) {
        headers.insert("anthropic-version", header_value("anthropic-version", version)?);
    }
    for (name, value) in &provider.headers {
        let key = HeaderName::try_from(name).map_err(|_| ModelError::Header { name: name.clone() })?;
        let mut value = header_value(name, value)?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

/// The headers of a request of a thread.
pub(super) fn thread_headers(headers: &HeaderMap, thread: ThreadId) -> Result<HeaderMap, ModelError> {
    let mut headers = headers.clone();
    let id = header_value("conversation_id", &thread.to_string())?;
    headers.entry("conversation_id").or_insert_with(|| id.clone());
    headers.entry("session_id").or_insert(id);
    Ok(headers)
}

/// The headers of a request with its key, unless the configuration authorizes requests in its own way.
pub(super) fn authorize(
    headers: &HeaderMap,
    authorization: &Authorization,
    provider: &Provider,
) -> Result<HeaderMap, ModelError> {
    let mut headers = headers.clone();
    let Some(key) = &authorization.bearer else { return Ok(headers) };
    let (name, text) = match &provider.traits.key_header {
        Some(name) => (name.as_str(), key.expose().to_owned()),
        None => (AUTHORIZATION.as_str(), format!("Bearer {}", key.expose())),
    };
    let header = HeaderName::try_from(name).map_err(|_| ModelError::Header { name: name.to_owned() })?;
    if !headers.contains_key(AUTHORIZATION) && !headers.contains_key(&header) {
        let mut value = header_value(name, &text)?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    if let Some(account) = &authorization.account {
        headers.insert(ACCOUNT, header_value(ACCOUNT, account)?);
    }
    Ok(headers)
}

fn header_value(name: &str, value: &str) -> Result<HeaderValue, ModelError> {
    HeaderValue::try_from(value).map_err(|_| ModelError::Header { name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_url(base_url: &str, query: &[(&str, &str)], expected: &str) {
        let mut provider = Provider::new("mock", base_url);
        provider.query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let shown = match request_url(&provider, base_url, &["responses"]) {
            Ok(url) => url.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn urls() {
        check_url("http://h/v1", &[], "http://h/v1/responses");
        check_url("https://h:8443/v1/", &[], "https://h:8443/v1/responses");
        check_url("http://h", &[("api-version", "1 2"), ("x", "&")], "http://h/responses?api-version=1+2&x=%26");
        check_url("http://h/a?b=c", &[("d", "e")], "http://h/a/responses?b=c&d=e");
    }

    #[test]
    fn wrong_urls_are_named() {
        check_url("h/v1", &[], r#"invalid provider URL "h/v1": relative URL without a base"#);
        check_url("ftp://h", &[], r#"invalid provider URL "ftp://h": it has to begin with http:// or https://"#);
        check_url("http://", &[], r#"invalid provider URL "http://": empty host"#);
    }

    #[test]
    fn wrong_headers_are_named_without_their_value() {
        let mut provider = Provider::new("mock", "http://h");
        provider.headers = vec![("x-key".to_owned(), "sec\nret".to_owned())];
        assert_eq!(
            headers(&provider).unwrap_err().to_string(),
            r#"invalid value or name of the request header "x-key""#
        );
        provider.headers = vec![("x key".to_owned(), "v".to_owned())];
        assert!(matches!(headers(&provider), Err(ModelError::Header { name }) if name == "x key"));
        let broken = Authorization::bearer("sec\nret");
        let refused = authorize(&HeaderMap::new(), &broken, &provider);
        assert!(matches!(refused, Err(ModelError::Header { name }) if name == "authorization"));
    }
}
