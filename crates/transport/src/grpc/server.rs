//! The server's side of a call.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{PingPong, RecvStream};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use http::{Method, Request, Response};
use tokio::io::{AsyncWriteExt as _, DuplexStream, ReadHalf, duplex};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::stream::{receive, send_lines};
use super::{PATH, Status};
use crate::client_stream::{LAST_WORDS, together};
use crate::limits::{Limits, Slot, Slots, TransportKind};
use crate::listener::{Client, Service, host};
use crate::pipe::PIPE_BYTES;
use crate::proof::{Entrance, Entry};
use crate::ws::is_own_name;

/// The maximum number of concurrent calls on one connection. Each is a client.
const CALLS: u32 = 8;
/// The time that a connection may stay without a call after one has ended.
const BETWEEN_CALLS: Duration = Duration::from_secs(1);
/// The maximum size of the headers of a call, in bytes.
const HEAD_BYTES: u32 = 16 * 1024;

/// The data for authenticating calls.
struct Admission {
    entrance: Entrance,
    slots: Slots,
}

/// Serves a new connection.
pub(crate) async fn serve<S: Service>(stream: TcpStream, client: Client, service: S) {
    let Client { token, limits, slots, mut waiting, door, takes_bearer } = client;
    let deadline = Instant::now() + limits.handshake;
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(CALLS).max_header_list_size(HEAD_BYTES).max_send_buffer_size(PIPE_BYTES);
    let shaken = tokio::select! {
        shaken = timeout(limits.handshake, builder.handshake::<_, Bytes>(stream)) => shaken,
        () = waiting.lost() => return,
    };
    let Ok(Ok(mut connection)) = shaken else { return };
    let mut gone = std::pin::pin!(find_silent(connection.ping_pong(), limits));
    let reception = Admission { entrance: Entrance::new(token, door, takes_bearer), slots };
    let mut calls = JoinSet::new();
    // The calls of a connection are clients, the connection itself is not. It is unauthenticated until the first call
    // is accepted.
    let mut waiting = Some(waiting);
    let mut is_closing = false;
    loop {
        let is_known = waiting.is_none();
        tokio::select! {
            accepted = connection.accept() => match accepted {
                Some(Ok((request, respond))) => {
                    let entry = admit(&request, &reception, limits);
                    waiting = waiting.filter(|_| entry.is_err());
                    calls.spawn(call(request, respond, entry, limits, service.clone()));
                }
                Some(Err(_)) | None => break,
            },
            Some(_) = calls.join_next(), if !calls.is_empty() => {}
            // Refused calls do not extend the deadline.
            () = sleep_until(deadline), if !is_known => break,
            () = lost(waiting.as_mut()) => break,
            () = sleep(BETWEEN_CALLS), if is_known && calls.is_empty() => {
                if is_closing {
                    break;
                }
                connection.graceful_shutdown();
                is_closing = true;
            }
            () = &mut gone => break,
        }
    }
}

/// Resolves when an unauthenticated connection has lost its place.
async fn lost(waiting: Option<&mut Slot>) {
    match waiting {
        Some(place) => place.lost().await,
        None => std::future::pending().await,
    }
}

/// Resolves when the other side answers no ping.
async fn find_silent(pings: Option<PingPong>, limits: Limits) {
    let Some(mut pings) = pings else { return std::future::pending().await };
    loop {
        sleep(limits.ping).await;
        let patience = limits.silence.saturating_sub(limits.ping);
        if !matches!(timeout(patience, pings.ping(h2::Ping::opaque())).await, Ok(Ok(_))) {
            return;
        }
    }
}

/// The reason why a call is refused.
struct Refusal {
    status: Status,
    text: Cow<'static, str>,
    /// The server's part of an exchange of proofs.
    challenge: Option<String>,
}

impl Refusal {
    fn new(status: Status, text: impl Into<Cow<'static, str>>) -> Self {
        Self { status, text: text.into(), challenge: None }
    }
}

/// Room for a call that is allowed, or the refusal.
fn admit(request: &Request<RecvStream>, reception: &Admission, limits: Limits) -> Result<Slot, Refusal> {
    check(request, reception)?;
    let place = reception.slots.serve(TransportKind::Ip, limits.quiet);
    place.map_err(|full| Refusal::new(Status::ResourceExhausted, full.to_string()))
}

/// Serves one call.
async fn call<S: Service>(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    entry: Result<Slot, Refusal>,
    limits: Limits,
    service: S,
) {
    let mut response = Response::new(());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    let place = match entry {
        Ok(place) => place,
        Err(Refusal { status, text, challenge }) => {
            put_status(response.headers_mut(), status, &text);
            let challenge = challenge.and_then(|challenge| HeaderValue::from_str(&challenge).ok());
            response.headers_mut().extend(challenge.map(|challenge| (WWW_AUTHENTICATE, challenge)));
            // A client that has left needs no response.
            let _: Result<_, h2::Error> = respond.send_response(response, true);
            return;
        }
    };
    let Ok(mut sender) = respond.send_response(response, false) else { return };
    let (near, far) = duplex(PIPE_BYTES);
    let (from_service, mut to_service) = tokio::io::split(near);
    let (input, output) = tokio::io::split(far);
    // The server ends the call, unless the client does.
    let status = Arc::new(AtomicU8::new(Status::Unavailable as u8));
    let reading = async {
        let read = receive(request.into_body(), &mut to_service, limits.message_bytes).await;
        status.store(read as u8, Ordering::Relaxed);
        // Signals the end of the input to the service.
        let _: std::io::Result<()> = to_service.shutdown().await;
        std::future::pending::<()>().await;
    };
    // A client that closed its side receives responses; one that cancelled the call does not.
    let ended = Arc::clone(&status);
    let is_gone = move |_: &ReadHalf<DuplexStream>| ended.load(Ordering::Relaxed) != Status::Ok as u8;
    let serving = host(&service, (input, is_gone), Box::new(output), place);
    let exchange = async {
        tokio::select! {
            () = serving => {}
            () = reading => {}
        }
    };
    let sending = async {
        if send_lines(from_service, usize::MAX, &mut sender, limits.stall).await.is_ok() {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from(u16::from(status.load(Ordering::Relaxed))));
            let _: Result<(), h2::Error> = sender.send_trailers(trailers);
        }
    };
    // Whichever ends first, remaining messages are written and the client's input is read.
    together(sending, exchange, LAST_WORDS).await;
}

fn put_status(headers: &mut HeaderMap, status: Status, text: &str) {
    headers.insert("grpc-status", HeaderValue::from(u16::from(status as u8)));
    headers.extend(HeaderValue::from_str(text).map(|text| (HeaderName::from_static("grpc-message"), text)));
}

/// Whether a call is accepted, or how it is refused.
fn check(request: &Request<RecvStream>, reception: &Admission) -> Result<(), Refusal> {
    let headers = request.headers();
    if headers.contains_key(ORIGIN) {
        return Err(Refusal::new(Status::PermissionDenied, "requests of web pages are refused"));
    }
    let host = request.uri().authority().map(http::uri::Authority::as_str);
    if !host.is_some_and(|host| is_own_name(host, reception.entrance.door())) {
        let text = "this server goes by its IP address and by localhost alone";
        return Err(Refusal::new(Status::PermissionDenied, text));
    }
    let refusal = "the metadata authorization must carry the token: Bearer TOKEN";
    match reception.entrance.check(headers.get(AUTHORIZATION)) {
        Entry::Admitted => {}
        Entry::Challenged(challenge) => {
            let unproved = Refusal::new(Status::Unauthenticated, "prove that you know the token");
            return Err(Refusal { challenge: Some(challenge), ..unproved });
        }
        Entry::Refused => return Err(Refusal::new(Status::Unauthenticated, refusal)),
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_grpc = kind == "application/grpc" || kind == "application/grpc+proto";
    if request.method() != Method::POST || request.uri().path() != PATH || !is_grpc {
        let text = "the one method is codex.app_server.v1.AppServer/Connect";
        return Err(Refusal::new(Status::Unimplemented, text));
    }
    Ok(())
}
