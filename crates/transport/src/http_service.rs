//! HTTP: requests of authenticated programs, each passed to a service as a whole.
//!
//! The rules are those of the WebSocket listener, except that a page of this machine may name its origin: a request
//! needs the token in a header anyway, which no page can know.

use std::convert::Infallible;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, Request, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use tokio::time::timeout;

use crate::client_stream::TimedWriter;
use crate::limits::{Limits, Slot, Slots, TransportKind};
use crate::listener::Client;
use crate::proof::{Entrance, Entry};
use crate::ws::{is_own_name, unauthorized};

/// The maximum size of a request's headers, in bytes.
const HEAD_BYTES: usize = 16 * 1024;
/// The time limit of a connection without a request.
const BETWEEN_REQUESTS: Duration = Duration::from_secs(60);
/// Bodies of up to this length do not wait for room.
const SMALL_BODY: usize = 64 * 1024;
/// The time limit for the body of a request, and for room for it.
const BODY: Duration = Duration::from_secs(30);

/// Answers requests.
pub trait HttpService: Clone + Send + Sync + 'static {
    /// The body of a response.
    type Body: HttpBody<Data = Bytes, Error = Infallible> + Send + 'static;

    /// Answers one request. Its body is dropped when the client no longer reads it.
    fn answer(&self, request: Request<Bytes>) -> impl Future<Output = http::Response<Self::Body>> + Send;
}

impl<S, F, B> HttpService for S
where
    S: Fn(Request<Bytes>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = http::Response<B>> + Send,
    B: HttpBody<Data = Bytes, Error = Infallible> + Send + 'static,
{
    type Body = B;

    fn answer(&self, request: Request<Bytes>) -> impl Future<Output = http::Response<B>> + Send {
        self(request)
    }
}

/// The state of one connection.
struct Connection {
    entrance: Entrance,
    slots: Slots,
    limits: Limits,
    /// Its place, once a request was authenticated.
    place: Mutex<Option<Slot>>,
    admitted: Notify,
}

/// Serves a new connection until `stop` becomes true.
pub(crate) async fn serve<S: HttpService>(
    stream: TcpStream,
    client: Client,
    service: S,
    mut stop: watch::Receiver<bool>,
) {
    let Client { token, limits, slots, mut waiting, door, takes_bearer } = client;
    let entrance = Entrance::new(token, door, takes_bearer);
    let state = Connection { entrance, slots, limits, place: Mutex::default(), admitted: Notify::new() };
    let answered = service_fn(async |request| Ok::<_, Infallible>(state.answer(request, &service).await));
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(BETWEEN_REQUESTS)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(TimedWriter::new(stream, limits.stall)), answered);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = waiting.lost() => return,
        admitted = timeout(limits.handshake, state.admitted.notified()) => {
            if admitted.is_err() {
                return;
            }
        }
    }
    drop(waiting);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = async { drop(stop.wait_for(|is_over| *is_over).await) } => connection.as_mut().graceful_shutdown(),
    }
    // The listener limits how long the last response may take.
    let _: hyper::Result<()> = connection.await;
}

impl Connection {
    fn readiness(&self) -> Response {
        if let Some(why) = self.slots.unready() {
            return overloaded(format!("{why}\n"));
        }
        if self.slots.has_room(TransportKind::Ip) {
            "ready\n".into_response()
        } else {
            overloaded("too many connections; retry later\n".to_owned())
        }
    }

    async fn answer<S: HttpService>(&self, request: Request<Incoming>, service: &S) -> Response {
        if let Err(refusal) = self.check(request.headers(), request.uri()) {
            return refusal.into_response();
        }
        match request.uri().path() {
            "/healthz" => return "ok\n".into_response(),
            "/readyz" => return self.readiness(),
            _ => {}
        }
        match self.entrance.check(request.headers().get(AUTHORIZATION)) {
            Entry::Admitted => {}
            Entry::Challenged(challenge) => {
                return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)]).into_response();
            }
            Entry::Refused => return unauthorized(),
        }
        if let Err(full) = self.admit() {
            return overloaded(full);
        }
        let (head, body) = request.into_parts();
        match self.read(&head.headers, body).await {
            Ok(body) => service.answer(Request::from_parts(head, body)).await.map(Body::new),
            Err(refusal) => refusal.into_response(),
        }
    }

    /// Refuses web pages of others, and host names that others control.
    fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), (StatusCode, &'static str)> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let is_own = |host: &str| is_own_name(host, self.entrance.door());
        if let Some(origin) = text(ORIGIN) {
            let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            if !host.is_some_and(is_own) {
                return Err((StatusCode::FORBIDDEN, "requests of web pages are refused\n"));
            }
        }
        let host = text(HOST).or_else(|| uri.authority().map(http::uri::Authority::as_str));
        if !host.is_some_and(is_own) {
            return Err((StatusCode::FORBIDDEN, "this server goes by its IP address and by localhost alone\n"));
        }
        Ok(())
    }

    /// Reads the body of a request. Large ones wait for room, so that many connections take no more memory than one.
    async fn read(&self, headers: &HeaderMap, body: Incoming) -> Result<Bytes, (StatusCode, String)> {
        let most = self.limits.message_bytes;
        let too_large = || (StatusCode::PAYLOAD_TOO_LARGE, format!("a body has at most {most} bytes\n"));
        let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        let length = length.map_or(most, |length| usize::try_from(length).unwrap_or(usize::MAX));
        if headers.contains_key(CONTENT_LENGTH) && length > most {
            return Err(too_large());
        }
        let reading = async {
            let room = if length > SMALL_BODY { self.slots.room(length).await } else { None };
            let capacity = if headers.contains_key(CONTENT_LENGTH) { length } else { 0 };
            let bytes = collect(body, capacity, most).await?;
            Some(Bytes::from_owner(RequestBody { bytes, _room: room }))
        };
        match timeout(BODY, reading).await {
            Ok(read) => read.ok_or_else(too_large),
            Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body did not come in time\n".to_owned())),
        }
    }

    /// Takes a place for the connection with its first authenticated request.
    fn admit(&self) -> Result<(), String> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if place.is_none() {
            let slot = self.slots.serve(TransportKind::Ip, self.limits.quiet).map_err(|full| format!("{full}\n"))?;
            slot.keeper().keep();
            *place = Some(slot);
            self.admitted.notify_one();
        }
        Ok(())
    }
}

/// The body of a request, with the room that it takes.
struct RequestBody {
    bytes: Vec<u8>,
    _room: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for RequestBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Collects a body. The capacity is for its announced length, so that it is not copied while it grows.
async fn collect(body: Incoming, capacity: usize, most: usize) -> Option<Vec<u8>> {
    let (mut bytes, mut pieces) = (Vec::with_capacity(capacity), Body::new(body).into_data_stream());
    while let Some(piece) = pieces.next().await {
        let piece = piece.ok()?;
        if bytes.len() + piece.len() > most {
            return None;
        }
        bytes.extend_from_slice(&piece);
    }
    Some(bytes)
}

fn overloaded(why: String) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], why).into_response()
}
