//! Answers over a WebSocket, which stays open for the next request of its thread. A provider remembers the last answer
//! of a connection, so a request sends only the items that came since.
//!
//! Invariants: a connection carries one answer at a time, belongs to one thread, and is used only with the authorization
//! that it was opened with. The first failure of a connection ends the use of WebSockets with this provider: HTTP
//! answers the request at once, and all later ones.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use codex_wire::ids::ThreadId;
use codex_wire::tokens::RateLimitSnapshot;
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_TYPE, HeaderValue, UPGRADE};
use reqwest::{StatusCode, Upgraded};
use serde::Deserialize;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{Error as WebSocketError, ProtocolError::ResetWithoutClosingHandshake};
use tokio_tungstenite::tungstenite::handshake::{client::generate_key, derive_accept_key};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::Shared;
use super::chains::Chains;
use super::request_sender::{RequestSender, authorize, header_text, thread_headers, without_url};
use crate::limits::rate_limits;
use crate::sse::EVENT_LIMIT;
use crate::{Authorization, ModelError, Prompt, Provider, WireKind};

/// The version of the protocol that is asked for.
const BETA: (&str, &str) = ("openai-beta", "responses_websockets=2026-02-06");

/// The longest use of a connection; providers end one after an hour.
const LONGEST_USE: Duration = Duration::from_secs(55 * 60);

/// The time that a connection waits for the next request of its thread.
const LONGEST_REST: Duration = Duration::from_secs(5 * 60);

/// The number of connections that wait for the next request of their threads. The oldest is dropped for another.
const MOST_RESTING: usize = 16;

/// The WebSockets of a provider.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    has_failed: AtomicBool,
    resting: Arc<Mutex<RestingSockets>>,
}

/// The connections that wait for the next requests of their threads.
#[derive(Debug, Default)]
struct RestingSockets {
    list: Vec<Resting>,
    /// Whether a task closes those that wait too long.
    has_sweeper: bool,
}

/// A connection that waits for the next request of its thread.
#[derive(Debug)]
struct Resting {
    thread: ThreadId,
    since: Instant,
    socket: Socket,
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Socket {
    stream: WebSocketStream<Upgraded>,
    /// The last answer, which the provider remembers as long as the connection is open.
    pub(super) chains: Chains,
    used: Authorization,
    opened: Instant,
    /// The rate limits that the provider sent when the connection was opened.
    rate_limits: RateLimitSnapshot,
}

/// An answer that has begun.
pub(super) struct SocketAnswer {
    pub(super) socket: Socket,
    pub(super) used: Authorization,
    /// The first event, which is not decoded yet.
    pub(super) first: Utf8Bytes,
    pub(super) rate_limits: RateLimitSnapshot,
}

/// The reason why an answer did not begin.
enum Failure {
    /// The connection does not work.
    Connection(Box<dyn Error + Send + Sync>),
    /// The provider rejects the request, not the connection.
    Rejected(Box<dyn Error + Send + Sync>),
}

impl Sockets {
    /// Whether requests go over WebSockets.
    pub(super) fn are_used(&self, provider: &Provider) -> bool {
        provider.supports_websockets && provider.wire == WireKind::Responses && !self.has_failed.load(Ordering::Relaxed)
    }

    /// Uses HTTP from now on.
    pub(super) fn give_up(&self, error: &dyn std::fmt::Display) {
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            tracing::warn!(%error, "the WebSocket failed; requests use HTTP from now on");
        }
    }

    /// The open connection of a thread.
    fn take(&self, thread: ThreadId, used: &Authorization) -> Option<Socket> {
        let mut resting = lock(&self.resting);
        resting.drop_expired();
        let place = resting.list.iter().position(|it| it.thread == thread)?;
        Some(resting.list.swap_remove(place).socket).filter(|socket| socket.used == *used)
    }

    /// Keeps a connection for the next request of its thread.
    pub(super) fn keep(&self, thread: ThreadId, socket: Socket) {
        let mut resting = lock(&self.resting);
        resting.list.retain(|it| it.thread != thread);
        if resting.list.len() == MOST_RESTING {
            resting.list.remove(0);
        }
        resting.list.push(Resting { thread, since: Instant::now(), socket });
        if !std::mem::replace(&mut resting.has_sweeper, true) {
            tokio::spawn(sweep(Arc::downgrade(&self.resting)));
        }
    }
}

impl RestingSockets {
    fn drop_expired(&mut self) {
        self.list.retain(|it| it.since.elapsed() < LONGEST_REST && it.socket.opened.elapsed() < LONGEST_USE);
    }
}

/// Closes connections that wait too long, until there are none.
async fn sweep(resting: Weak<Mutex<RestingSockets>>) {
    loop {
        tokio::time::sleep(LONGEST_REST).await;
        let Some(resting) = resting.upgrade() else { return };
        let mut resting = lock(&resting);
        resting.drop_expired();
        resting.has_sweeper = !resting.list.is_empty();
        if !resting.has_sweeper {
            return;
        }
    }
}

fn lock(resting: &Mutex<RestingSockets>) -> MutexGuard<'_, RestingSockets> {
    // Every change leaves the list whole, so a panic elsewhere does no harm.
    resting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends a request over a WebSocket. None if HTTP has to answer it.
pub(super) async fn open(shared: &Shared, sender: &RequestSender, prompt: &Prompt) -> Option<SocketAnswer> {
    // HTTP reports the error if there is no authorization.
    let used = shared.provider.credentials.authorize().await.ok()?;
    if let Some(socket) = shared.sockets.take(prompt.thread, &used) {
        // The provider may have closed the connection meanwhile, or forgotten its last answer.
        if let Ok(answer) = begin(shared, socket, prompt).await {
            return Some(answer);
        }
    }
    let failure = match connect(shared, sender, prompt.thread, used).await {
        Ok(socket) => match begin(shared, socket, prompt).await {
            Ok(answer) => return Some(answer),
            Err(failure) => failure,
        },
        Err(failure) => failure,
    };
    match failure {
        Failure::Connection(error) => shared.sockets.give_up(&error),
        Failure::Rejected(error) => tracing::debug!(%error, "the request is repeated over HTTP"),
    }
    None
}

/// Opens a connection.
async fn connect(
    shared: &Shared,
    sender: &RequestSender,
    thread: ThreadId,
    used: Authorization,
) -> Result<Socket, Failure> {
    let provider = &shared.provider;
    let failed = |error: ModelError| Failure::Connection(error.into());
    let endpoint = sender.endpoint(provider, &used).map_err(failed)?;
    let client = endpoint.upgradable_client(provider).map_err(failed)?;
    let mut headers =
        authorize(&thread_headers(&sender.headers, thread).map_err(failed)?, &used, provider).map_err(failed)?;
    let key = generate_key();
    for name in [CONTENT_TYPE, ACCEPT, ACCEPT_ENCODING] {
        headers.remove(name);
    }
    headers.entry(BETA.0).or_insert(HeaderValue::from_static(BETA.1));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert("sec-websocket-version", HeaderValue::from_static("13"));
    headers
        .insert("sec-websocket-key", HeaderValue::try_from(&key).map_err(|error| Failure::Connection(error.into()))?);
    let opening = async {
        let response = client.get(endpoint.url.clone()).headers(headers).send().await;
        let response = response.map_err(|error| Failure::Connection(without_url(error)))?;
        match response.status() {
            StatusCode::SWITCHING_PROTOCOLS => {}
            // HTTP renews the authorization, and the next request may use a WebSocket again.
            status @ StatusCode::UNAUTHORIZED => return Err(Failure::Rejected(status.to_string().into())),
            status => return Err(Failure::Connection(format!("the provider answered {status}").into())),
        }
        let accepted = header_text(response.headers(), "sec-websocket-accept");
        if accepted != Some(derive_accept_key(key.as_bytes()).as_str()) {
            return Err(Failure::Connection("the provider does not speak WebSocket".into()));
        }
        let rate_limits = rate_limits(|name| header_text(response.headers(), name), SystemTime::now());
        let upgraded = response.upgrade().await.map_err(|error| Failure::Connection(without_url(error)))?;
        Ok((upgraded, rate_limits))
    };
    let opened = timeout(provider.connect_timeout, opening).await;
    let (upgraded, rate_limits) =
        opened.unwrap_or_else(|_| Err(Failure::Connection("it took too long to open".into())))?;
    let config = WebSocketConfig::default().max_message_size(Some(EVENT_LIMIT)).max_frame_size(Some(EVENT_LIMIT));
    let stream = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
    Ok(Socket { stream, chains: Chains::default(), used, opened: Instant::now(), rate_limits })
}

/// Sends a request, and waits for the first event of its answer.
async fn begin(shared: &Shared, mut socket: Socket, prompt: &Prompt) -> Result<SocketAnswer, Failure> {
    let idle = shared.provider.stream_idle_timeout;
    let mut format = shared.format(socket.used.account.as_deref());
    format.is_message = true;
    format.follows = socket.chains.followed(prompt.thread, &prompt.input, &format);
    let body = String::from_utf8(shared.provider.wire.encode(prompt, &format));
    let body = body.map_err(|error| Failure::Connection(error.into()))?;
    match timeout(idle, socket.stream.send(Message::text(body))).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(Failure::Connection(error.into())),
        Err(_) => return Err(Failure::Connection(ModelError::Idle { after: idle }.into())),
    }
    let first = socket.next(idle).await.map_err(|error| Failure::Connection(error.into()))?;
    if is_error(&first) {
        // Its message may repeat a key, and HTTP reports it.
        return Err(Failure::Rejected("the provider rejects the request".into()));
    }
    let (used, rate_limits) = (socket.used.clone(), socket.rate_limits.clone());
    Ok(SocketAnswer { socket, used, first, rate_limits })
}

/// Whether an event says that the request is rejected.
fn is_error(event: &str) -> bool {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(rename = "type", borrow)]
        kind: Option<std::borrow::Cow<'a, str>>,
    }
    serde_json::from_str::<Kind<'_>>(event).is_ok_and(|event| event.kind.as_deref() == Some("error"))
}

impl Socket {
    /// The data of the next event. Anything else that the provider sends does not count as a sign of life.
    pub(super) async fn next(&mut self, idle: Duration) -> Result<Utf8Bytes, ModelError> {
        let reading = async {
            loop {
                match self.stream.next().await {
                    Some(Ok(Message::Text(text))) => return Ok(text),
                    Some(Ok(Message::Close(_)) | Err(WebSocketError::Protocol(ResetWithoutClosingHandshake)))
                    | None => {
                        return Err(ModelError::Disconnected { source: None });
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(ModelError::Disconnected { source: Some(error.into()) }),
                }
            }
        };
        timeout(idle, reading).await.unwrap_or(Err(ModelError::Idle { after: idle }))
    }
}
