//! WebSocket: one message per text frame, for programs and never for web pages.
//!
//! A page can make a browser connect to any port of this machine. So a request with an origin is refused, a request
//! with a host name that others control is refused, and everybody else needs the token in a header, which no page can
//! set.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{AUTHORIZATION, HOST, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadHalf, duplex};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{interval, timeout};
use tokio_tungstenite::tungstenite;

use crate::client_stream::{LAST_WORDS, together};
use crate::limits::{Full, Limits, Slot, Slots, TransportKind};
use crate::listener::{Client, Service, host};
use crate::pipe::{Lines, PIPE_BYTES, write_line};
use crate::proof::{Entrance, Entry};

/// The maximum size of a request's headers, in bytes.
const HEAD_BYTES: usize = 16 * 1024;
/// The time limit of the closing handshake.
const LEAVE_TAKING: Duration = Duration::from_secs(1);

/// The state of a client before it is admitted.
#[derive(Clone)]
struct Admission {
    entrance: Arc<Entrance>,
    slots: Slots,
    limits: Limits,
    /// Receives the connection when the client is admitted.
    inside: Arc<Mutex<Option<oneshot::Sender<Admitted>>>>,
}

/// An admitted client and its place.
type Admitted = (WebSocket, Slot);

/// Serves a new connection.
pub(crate) async fn serve<S: Service>(stream: TcpStream, client: Client, service: S) {
    let Client { token, limits, slots, mut waiting, door, takes_bearer } = client;
    let entrance = Arc::new(Entrance::new(token, door, takes_bearer));
    let (inside, let_in) = oneshot::channel();
    let inside = Arc::new(Mutex::new(Some(inside)));
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.handshake)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(
            TokioIo::new(stream),
            TowerToHyperService::new(router(Admission { entrance, slots, limits, inside })),
        )
        .with_upgrades();
    let entrance = async { connection.await.ok().zip(let_in.await.ok()) };
    let entered = tokio::select! {
        // The deadline covers everything before a client is admitted, however slowly it arrives.
        entered = timeout(limits.handshake, entrance) => entered.ok().flatten(),
        () = waiting.lost() => None,
    };
    if let Some(((), (socket, place))) = entered {
        drop(waiting);
        converse(socket, limits, place, service).await;
    }
}

fn router(reception: Admission) -> Router {
    Router::new()
        .route("/", get(upgrade))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .layer(from_fn_with_state(reception.clone(), guard))
        .with_state(reception)
}

/// Refuses web pages, on every path.
async fn guard(State(reception): State<Admission>, request: Request, next: Next) -> Response {
    if request.headers().contains_key(ORIGIN) {
        return (StatusCode::FORBIDDEN, "requests of web pages are refused\n").into_response();
    }
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    if !host.is_some_and(|host| is_own_name(host, reception.entrance.door())) {
        return (StatusCode::FORBIDDEN, "this server goes by its IP address and by localhost alone\n").into_response();
    }
    next.run(request).await
}

/// Whether a client uses a host name for this machine that nobody else controls.
pub(crate) fn is_own_name(host: &str, door: Option<SocketAddr>) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let is_local = door.is_some_and(|door| door.ip().is_loopback());
    let ip = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name).parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback() || !is_local)
}

async fn ready(State(reception): State<Admission>) -> Response {
    if let Some(why) = reception.slots.unready() {
        return (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], format!("{why}\n")).into_response();
    }
    if reception.slots.has_room(TransportKind::Ip) {
        "ready\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], "too many connections; retry later\n").into_response()
    }
}

/// The refusal of a request that does not authenticate its client.
pub(crate) fn unauthorized() -> Response {
    let text = "the header Authorization must carry the token: Bearer TOKEN\n";
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], text).into_response()
}

fn overloaded(full: Full) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], format!("{full}\n")).into_response()
}

async fn upgrade(
    State(reception): State<Admission>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    match reception.entrance.check(headers.get(AUTHORIZATION)) {
        Entry::Admitted => {}
        Entry::Challenged(challenge) => {
            return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)]).into_response();
        }
        Entry::Refused => return unauthorized(),
    }
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let place = match reception.slots.serve(TransportKind::Ip, reception.limits.quiet) {
        Ok(place) => place,
        Err(full) => return overloaded(full),
    };
    let inside = reception.inside.lock().unwrap_or_else(PoisonError::into_inner).take();
    let most = reception.limits.message_bytes;
    upgrade.max_message_size(most).max_frame_size(most).on_upgrade(async move |socket| {
        if let Some(inside) = inside {
            // Nobody waits for it if the client took too long.
            let _: Result<(), Admitted> = inside.send((socket, place));
        }
    })
}

/// Forwards frames as lines and lines as frames until either side is done.
async fn converse<S: Service>(socket: WebSocket, limits: Limits, place: Slot, service: S) {
    let (sink, stream) = socket.split();
    let (near, far) = duplex(PIPE_BYTES);
    let (from_service, to_service) = tokio::io::split(near);
    let (input, output) = tokio::io::split(far);
    // The server closes the connection, unless the client does.
    let code = AtomicU16::new(close_code::AWAY);
    let reading = async {
        code.store(read(stream, to_service, limits).await, Ordering::Relaxed);
        std::future::pending::<()>().await;
    };
    // A client that has sent a close frame receives nothing more.
    let serving = host(&service, (input, |_: &ReadHalf<DuplexStream>| true), Box::new(output), place);
    let exchange = async {
        tokio::select! {
            () = serving => {}
            () = reading => {}
        }
    };
    // Whichever ends first, remaining messages are written and the client's input is read.
    together(write(sink, from_service, &code, limits), exchange, LAST_WORDS).await;
}

/// Forwards frames until the client is done, and returns the close code.
async fn read<W: AsyncWrite + Unpin>(mut stream: SplitStream<WebSocket>, mut output: W, limits: Limits) -> u16 {
    let code = loop {
        match timeout(limits.silence, stream.next()).await {
            Ok(Some(Ok(Message::Text(text)))) => {
                if write_line(&mut output, text.as_bytes()).await.is_err() {
                    break close_code::AWAY;
                }
            }
            Ok(Some(Ok(Message::Binary(_)))) => break close_code::UNSUPPORTED,
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => {}
            Ok(Some(Ok(Message::Close(_))) | None) => break close_code::NORMAL,
            Ok(Some(Err(error))) => break code_of(error),
            // It answers no ping.
            Err(_) => break close_code::POLICY,
        }
    };
    // Signals the end of the input to the service.
    let _: std::io::Result<()> = output.shutdown().await;
    code
}

fn code_of(error: axum::Error) -> u16 {
    match error.into_inner().downcast_ref::<tungstenite::Error>() {
        Some(tungstenite::Error::Capacity(_)) => close_code::SIZE,
        Some(tungstenite::Error::Utf8(_)) => close_code::INVALID,
        _ => close_code::PROTOCOL,
    }
}

/// Forwards lines until the service is done, and closes.
async fn write<R: AsyncRead + Unpin>(
    mut sink: SplitSink<WebSocket, Message>,
    input: R,
    code: &AtomicU16,
    limits: Limits,
) {
    let mut lines = Lines::new(input, usize::MAX);
    let mut pings = interval(limits.ping);
    pings.tick().await;
    let reason = loop {
        let message = tokio::select! {
            line = lines.next() => match line.ok().flatten().map(|line| Utf8Bytes::try_from(Bytes::from(line))) {
                Some(Ok(text)) => Message::Text(text),
                Some(Err(_)) => break close_code::ERROR,
                None => break code.load(Ordering::Relaxed),
            },
            _ = pings.tick() => Message::Ping(Bytes::new()),
        };
        if !matches!(timeout(limits.stall, sink.send(message)).await, Ok(Ok(()))) {
            return;
        }
    };
    let goodbye = Message::Close(Some(CloseFrame { code: reason, reason: Utf8Bytes::default() }));
    let leaving = async {
        // The library answers the client's close frame; it only has to be flushed.
        if sink.send(goodbye).await.is_err() {
            let _: Result<(), axum::Error> = sink.close().await;
        }
    };
    let _: Result<(), _> = timeout(LEAVE_TAKING, leaving).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_others_control_are_foreign() {
        let local = "127.0.0.1:80".parse().ok();
        for host in ["127.0.0.1:80", "127.0.0.1", "localhost:9", "LOCALHOST", "[::1]:80", "[::1]", "127.9.9.9"] {
            assert!(is_own_name(host, local), "{host}");
        }
        for host in
            ["evil.example", "evil.example:80", "localhost.evil.example", "10.0.0.1:80", "", ":80", "127.0.0.1.evil"]
        {
            assert!(!is_own_name(host, local), "{host}");
        }
        let open = "0.0.0.0:80".parse().ok();
        assert!(is_own_name("10.0.0.1:80", open) && !is_own_name("evil.example", open));
    }
}
