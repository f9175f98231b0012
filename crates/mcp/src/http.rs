//! A server at an address: streamable HTTP, where each message is one request, and its answer is JSON or a stream.
//! Messages that a server sends by itself come on a stream of their own (`streams`).
//!
//! Invariants: keys go only to the origin of the configured URL; an answer that is too long, or a stream that breaks
//! off, ends only its own request.

mod streams;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use codex_config::{Env, McpAddress};
use codex_login::ServerLogin;
use futures_util::StreamExt as _;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use crate::authorization::Authorization;
use crate::connection::{Connection, Notice, Outgoing, RequestError, Shared};
use crate::event_stream::EventReader;
use crate::rpc::{self, Incoming};

const CONNECT: Duration = Duration::from_secs(10);
/// The time limit of a notification, and of the end of a session.
const NOTIFICATION: Duration = Duration::from_secs(10);
const FAREWELL: Duration = Duration::from_secs(1);
/// The maximum size of an answer, or of an event of a stream.
const MOST_ANSWER: usize = 16 * 1024 * 1024;
/// The number of bytes of an error page that are read, and that are shown.
const MOST_PAGE: usize = 64 * 1024;
const MOST_SHOWN: usize = 300;
/// The maximum number of waiting messages, and of open requests.
const MOST_QUEUED: usize = 64;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The member of `_meta` by which requests without a session are known.
const STATELESS_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// The exchange with a server. Dropping it ends all requests.
pub(crate) struct HttpSession {
    link: Arc<Link>,
    tasks: JoinSet<()>,
}

struct Link {
    client: Client,
    url: Url,
    headers: HeaderMap,
    authorization: Authorization,
    /// The id of the session, if the server has one, and the version of the protocol.
    session: Mutex<(Option<HeaderValue>, Option<HeaderValue>)>,
    /// Open requests, by number.
    open: Mutex<HashMap<u64, AbortHandle>>,
    /// Whether the server no longer knows the session.
    is_lost: AtomicBool,
    /// Whether the transport of 2024-11-05 may be tried.
    may_be_legacy: bool,
    /// The address for messages, with the transport of 2024-11-05.
    legacy: Mutex<Option<Url>>,
    /// The task that reads the stream of that transport.
    reading: Mutex<JoinSet<()>>,
}

/// The reason why the server has taken no message, and its status if it has answered.
struct PostError {
    status: Option<StatusCode>,
    why: String,
}

impl PostError {
    /// Whether the server would answer the same again.
    fn is_final(&self) -> bool {
        self.status.is_some_and(|status| status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS)
    }
}

impl From<String> for PostError {
    fn from(why: String) -> Self {
        Self { status: None, why }
    }
}

struct Queue(mpsc::Sender<Value>);

impl Outgoing for Queue {
    fn send(&self, message: Value) -> bool {
        self.0.try_send(message).is_ok()
    }
}

/// Prepares the exchange with a server. Nothing is sent yet.
pub(crate) fn start(
    address: &McpAddress,
    env: &Env,
    login: Option<ServerLogin>,
) -> Result<(HttpSession, Connection, mpsc::Receiver<Notice>), String> {
    let url = Url::parse(&address.url).map_err(|error| format!("`{}` is not a URL: {error}", address.url))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`{url}` is neither http nor https"));
    }
    let link = Arc::new(Link {
        client: client(&url, env)?,
        url,
        headers: headers(address, env)?,
        authorization: Authorization(login),
        session: Mutex::default(),
        open: Mutex::default(),
        is_lost: AtomicBool::new(false),
        may_be_legacy: address.legacy_sse,
        legacy: Mutex::default(),
        reading: Mutex::default(),
    });
    let (queue, queued) = mpsc::channel(MOST_QUEUED);
    let (connection, notices) = Connection::new(Box::new(Queue(queue)), None);
    let mut tasks = JoinSet::new();
    tasks.spawn(send_all(Arc::clone(&link), connection.downgrade(), queued));
    Ok((HttpSession { link, tasks }, connection, notices))
}

impl HttpSession {
    /// Ends the session on the server.
    pub(crate) async fn stop(mut self) {
        self.tasks.shutdown().await;
        let session = lock(&self.link.session).0.clone();
        if let Some(session) = session {
            let farewell = self.link.client.delete(self.link.url.clone()).headers(self.link.headers.clone());
            let farewell = self.link.authorization.send(farewell.header(SESSION, session));
            let _: Result<_, _> = timeout(FAREWELL, farewell).await;
        }
    }
}

/// The client of the program, which uses the user's proxies and certificates and sends keys to no other host.
fn client(url: &Url, env: &Env) -> Result<Client, String> {
    codex_model::http_client(url, CONNECT, env.ca_certificates().as_deref()).map_err(|error| {
        std::error::Error::source(&error).map_or(error.to_string(), |cause| format!("{error}: {cause}"))
    })
}

fn headers(address: &McpAddress, env: &Env) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let mut put = |name: &str, value: &str| {
        let header = HeaderName::try_from(name).map_err(|_| format!("`{name}` is not a header name"))?;
        let mut value =
            HeaderValue::try_from(value).map_err(|_| format!("the value of the header `{name}` is not text"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
        Ok::<_, String>(())
    };
    for (name, value) in &address.http_headers {
        put(name, value.reveal())?;
    }
    for (name, variable) in &address.env_http_headers {
        // A header without a value is left out: the server reports what is missing.
        if let Some(value) = env.text(variable) {
            put(name, &value)?;
        }
    }
    if let Some(variable) = &address.bearer_token_env_var {
        let token = env.text(variable).ok_or_else(|| format!("the variable {variable} with its token is not set"))?;
        put(AUTHORIZATION.as_str(), &format!("Bearer {token}"))?;
    }
    Ok(headers)
}

/// Sends messages in order: a notification before all that follow it, requests concurrently.
async fn send_all(link: Arc<Link>, connection: Weak<Shared>, mut queued: mpsc::Receiver<Value>) {
    let mut requests = JoinSet::new();
    while let Some(message) = queued.recv().await {
        while requests.try_join_next().is_some() {}
        if message["method"] == "notifications/cancelled" {
            let id = message["params"]["requestId"].as_u64();
            if let Some(open) = id.and_then(|id| lock(&link.open).remove(&id)) {
                open.abort();
            }
        }
        let is_request = message.get("method").is_some() && message.get("id").is_some();
        if let Some(id) = message["id"].as_u64().filter(|_| is_request) {
            let task = requests.spawn(exchange(Arc::clone(&link), connection.clone(), id, message));
            lock(&link.open).insert(id, task);
            continue;
        }
        // Nothing depends on the answer to a notification.
        drop(timeout(NOTIFICATION, link.post(&message)).await);
        if message["method"] == "notifications/initialized" && lock(&link.legacy).is_none() {
            requests.spawn(streams::listen(Arc::clone(&link), connection.clone()));
        }
    }
}

/// Sends a request, and passes on all messages of its answer.
async fn exchange(link: Arc<Link>, connection: Weak<Shared>, id: u64, message: Value) {
    let is_greeting = message["method"] == "initialize";
    let mut posted = link.post(&message).await;
    if let Err(refused) = &posted
        && is_greeting
        && link.may_be_legacy
        && refused.is_final()
    {
        posted = match streams::begin_legacy(&link, &connection).await {
            Ok(()) => link.post(&message).await,
            Err(why) => Err(format!("{}; {why}", refused.why).into()),
        };
    }
    let ended = match posted {
        // The answer comes on the one stream.
        Ok(_) if lock(&link.legacy).is_some() => return drop(lock(&link.open).remove(&id)),
        Ok(response) => {
            if is_greeting {
                lock(&link.session).0 = response.headers().get(SESSION).cloned();
            }
            let mut reader = streams::reader();
            let read = read(&link, &connection, is_greeting, response, &mut reader).await;
            if message["params"]["_meta"].get(STATELESS_VERSION).is_none() {
                streams::resume(&link, &connection, id, reader).await;
            }
            read
        }
        Err(error) => Err(error.why),
    };
    lock(&link.open).remove(&id);
    let Some(connection) = Connection::upgrade(&connection) else { return };
    // An earlier answer is not changed by this.
    let why = ended.err().unwrap_or_else(|| "the answer broke off".to_owned());
    connection.settle(id, Err(RequestError::Transport(why)));
    if link.is_lost.load(Ordering::Relaxed) {
        // The task of the server then starts another session.
        connection.end(": its session has expired");
    }
}

impl Link {
    async fn send(&self, request: RequestBuilder) -> Result<Response, String> {
        self.authorization.send(request).await
    }

    async fn post(&self, message: &Value) -> Result<Response, PostError> {
        let url = lock(&self.legacy).clone().unwrap_or_else(|| self.url.clone());
        let mut request = self
            .client
            .post(url)
            .headers(self.headers.clone())
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .body(message.to_string());
        let (session, version) = lock(&self.session).clone();
        let had_session = session.is_some();
        request = session.into_iter().fold(request, |request, session| request.header(SESSION, session));
        let params = &message["params"];
        match params["_meta"][STATELESS_VERSION].as_str() {
            Some(stateless) => {
                request =
                    request.header(VERSION, stateless).header(METHOD, message["method"].as_str().unwrap_or_default());
                let name = params["name"].as_str().or_else(|| params["uri"].as_str());
                request = name.into_iter().fold(request, |request, name| request.header(NAME, name));
            }
            None => request = version.into_iter().fold(request, |request, version| request.header(VERSION, version)),
        }
        let response = self.send(request).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status == StatusCode::NOT_FOUND && had_session {
            self.is_lost.store(true, Ordering::Relaxed);
        }
        let hint = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => format!("; {}", self.authorization.hint()),
            _ => String::new(),
        };
        let page = limited(response, MOST_PAGE).await.unwrap_or_default();
        let shown: String = String::from_utf8_lossy(&page).chars().take(MOST_SHOWN).collect();
        Err(PostError { status: Some(status), why: format!("the server answered {status}{hint}: {}", shown.trim()) })
    }
}

/// Passes on the messages of an answer: one as JSON, or those of a stream.
async fn read(
    link: &Link,
    connection: &Weak<Shared>,
    is_greeting: bool,
    response: Response,
    reader: &mut EventReader,
) -> Result<(), String> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("text/event-stream") {
        return streams::follow(link, connection, is_greeting, response, reader).await.map(drop);
    }
    deliver(link, connection, is_greeting, &limited(response, MOST_ANSWER).await?);
    Ok(())
}

fn deliver(link: &Link, connection: &Weak<Shared>, is_greeting: bool, bytes: &[u8]) {
    let (Some(connection), Some(message)) = (Connection::upgrade(connection), rpc::read(bytes)) else { return };
    if let Incoming::Answer { result: Ok(said), .. } = &message
        && let Some(version) = said["protocolVersion"].as_str().filter(|_| is_greeting)
    {
        lock(&link.session).1 = HeaderValue::try_from(version).ok();
    }
    connection.receive(message);
}

/// A body, if it is not too long.
async fn limited(response: Response, most: usize) -> Result<Vec<u8>, String> {
    let (mut bytes, mut body) = (Vec::new(), response.bytes_stream());
    while let Some(chunk) = body.next().await {
        bytes.extend_from_slice(&chunk.map_err(|error| codex_tools::full_message(&error.without_url()))?);
        if bytes.len() > most {
            return Err(format!("the answer has more than {most} bytes"));
        }
    }
    Ok(bytes)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one assignment, so a panic elsewhere cannot have left a partial one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
