//! Requests over HTTP: those of strangers, of web pages, and of clients that send too much or too slowly.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use codex_transport::{Address, HttpService, Limits, Listener, Options, Shortage, Slots, Token};
use http::{Request, Response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::strangers::http;
use crate::world::TOKEN;

/// Answers every request with the size of its body.
#[derive(Clone)]
struct Sizes;

impl HttpService for Sizes {
    type Body = Whole;

    async fn answer(&self, request: Request<Bytes>) -> Response<Whole> {
        Response::new(Whole(Some(request.into_body().len().to_string().into())))
    }
}

/// A body in one piece.
struct Whole(Option<Bytes>);

impl axum::body::HttpBody for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        std::task::Poll::Ready(self.0.take().map(|bytes| Ok(http_body::Frame::data(bytes))))
    }
}

struct Server {
    ip: SocketAddr,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Server {
    async fn start(limits: Limits, connections: usize) -> Self {
        let (token, slots) = (Token::new(TOKEN).ok(), Slots::new(connections));
        let options =
            Options { token, slots, limits, shortage: Shortage::default(), allows_remote: false, takes_bearer: true };
        let address = Address::http("127.0.0.1:0").expect("it is an address");
        let listener = Listener::bind(&address, options).await.expect("it can be listened on");
        let ip = listener.address().ip().expect("it has one");
        let stop = watch::Sender::new(false);
        let serving = tokio::spawn(listener.serve_http(Sizes, stop.subscribe()));
        Self { ip, stop, serving }
    }

    async fn end(self) {
        self.stop.send_replace(true);
        self.serving.await.expect("a listener does not panic");
    }
}

fn post(headers: &str, body: &str) -> String {
    format!("POST /mcp HTTP/1.1\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn a_request_needs_the_token_and_a_name_that_nobody_else_controls() {
    let server = Server::start(Limits::default(), 64).await;
    let ip = server.ip;
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let host = format!("Host: {ip}\r\n");
    for (headers, status) in [
        (format!("{host}{bearer}"), 200),
        (format!("Host: localhost:{}\r\n{bearer}", ip.port()), 200),
        // A page of this machine, which has the token.
        (format!("{host}{bearer}Origin: http://localhost:{}\r\n", ip.port()), 200),
        (format!("{host}{bearer}Origin: http://{ip}\r\n"), 200),
        (host.clone(), 401),
        (format!("{host}Authorization: Bearer {TOKEN}x\r\n"), 401),
        (format!("{host}Authorization: Basic {TOKEN}\r\n"), 401),
        (format!("{host}Origin: http://{ip}\r\n"), 401),
        (format!("{host}{bearer}Origin: https://evil.example\r\n"), 403),
        (format!("{host}{bearer}Origin: http://localhost.evil.example\r\n"), 403),
        (format!("{host}{bearer}Origin: null\r\n"), 403),
        (format!("{host}{bearer}Origin: file://localhost\r\n"), 403),
        (format!("Host: evil.example:{}\r\n{bearer}", ip.port()), 403),
        (format!("Host: 10.0.0.1\r\n{bearer}"), 403),
        (bearer.clone(), 403),
    ] {
        let answer = http(ip, &post(&headers, "body")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{headers}\n{answer}");
        assert!(!answer.contains(TOKEN), "the token is told to nobody");
    }
    let query = format!("POST /mcp?token={TOKEN} HTTP/1.1\r\n{host}Content-Length: 0\r\n\r\n");
    assert!(http(ip, &query).await.starts_with("HTTP/1.1 401 "), "a token in an address is ignored");
    for (path, status) in [("/healthz", 200), ("/readyz", 200)] {
        let answer = http(ip, &format!("GET {path} HTTP/1.1\r\n{host}\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path}\n{answer}");
    }
    server.end().await;
}

#[tokio::test]
async fn a_body_that_is_too_large_is_not_read() {
    let server = Server::start(Limits { message_bytes: 8, ..Limits::default() }, 64).await;
    let headers = format!("Host: {}\r\nAuthorization: Bearer {TOKEN}\r\n", server.ip);
    assert!(http(server.ip, &post(&headers, "12345678")).await.starts_with("HTTP/1.1 200 "));
    let announced = format!("POST /mcp HTTP/1.1\r\n{headers}Content-Length: 9999999999\r\n\r\n");
    assert!(http(server.ip, &announced).await.starts_with("HTTP/1.1 413 "));
    let chunked =
        format!("POST /mcp HTTP/1.1\r\n{headers}Transfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n0\r\n\r\n");
    assert!(http(server.ip, &chunked).await.starts_with("HTTP/1.1 413 "));
    server.end().await;
}

#[tokio::test]
async fn a_connection_without_the_token_does_not_stay() {
    let limits = Limits { handshake: Duration::from_millis(50), ..Limits::default() };
    let server = Server::start(limits, 64).await;
    let mut silent = TcpStream::connect(server.ip).await.expect("it listens");
    let mut wrong = TcpStream::connect(server.ip).await.expect("it listens");
    let refused = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n", server.ip);
    wrong.write_all(refused.as_bytes()).await.expect("it reads");
    let mut rest = Vec::new();
    // Both end without a word from the client, who could otherwise keep places for ever.
    silent.read_to_end(&mut rest).await.expect("it is closed");
    assert!(rest.is_empty());
    wrong.read_to_end(&mut rest).await.expect("it is closed");
    assert!(rest.starts_with(b"HTTP/1.1 401 "));
    server.end().await;
}

#[tokio::test]
async fn connections_are_counted_and_one_may_carry_many_requests() {
    let server = Server::start(Limits::default(), 1).await;
    let headers = format!("Host: {}\r\nAuthorization: Bearer {TOKEN}\r\n", server.ip);
    let mut first = TcpStream::connect(server.ip).await.expect("it listens");
    for _ in 0..3 {
        first
            .write_all(format!("POST /mcp HTTP/1.1\r\n{headers}Content-Length: 2\r\n\r\nhi").as_bytes())
            .await
            .expect("it reads");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n0\r\n\r\n") {
            assert!(first.read_buf(&mut answer).await.expect("it answers") > 0);
        }
    }
    assert!(http(server.ip, &post(&headers, "")).await.starts_with("HTTP/1.1 503 "));
    drop(first);
    while !http(server.ip, &post(&headers, "")).await.starts_with("HTTP/1.1 200 ") {}
    server.end().await;
}
