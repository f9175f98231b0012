//! Peers that must not get in: web pages, host names that others control, wrong tokens, and slow ones.

use std::net::SocketAddr;
use std::time::Duration;

use codex_transport::{Address, BindError, DialError, Options, Token, dial};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::world::{TOKEN, World};

/// The response of a server to a request.
pub(crate) async fn http(ip: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(ip).await.expect("it listens");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    // Only the headers matter.
    while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => break,
            Ok(read) => answer.extend_from_slice(&piece[..read]),
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// A WebSocket request with these headers besides the required ones.
fn knock(path: &str, headers: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
    )
}

async fn ws() -> (World, SocketAddr) {
    let mut world = World::new("", &json!([]));
    let address = world.listen("ws://127.0.0.1:0").await;
    let ip = address.ip().expect("it has one");
    (world, ip)
}

#[tokio::test]
async fn a_websocket_opens_for_the_token_alone() {
    let (mut world, ip) = ws().await;
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let host = format!("Host: {ip}\r\n");
    for (path, headers, status) in [
        ("/", format!("{host}{bearer}"), "101"),
        ("/", format!("Host: localhost:{}\r\n{bearer}", ip.port()), "101"),
        ("/", host.clone(), "401"),
        ("/", format!("{host}Authorization: Bearer {TOKEN}x\r\n"), "401"),
        ("/", format!("{host}Authorization: Bearer\r\n"), "401"),
        ("/", format!("{host}Authorization: Basic {TOKEN}\r\n"), "401"),
        // A token in an address ends up in logs and histories, so it is ignored there.
        (&format!("/?token={TOKEN}"), host.clone(), "401"),
        ("/", format!("{host}{bearer}Origin: http://{ip}\r\n"), "403"),
        ("/", format!("{host}{bearer}Origin: null\r\n"), "403"),
        ("/healthz", format!("{host}Origin: https://evil.example\r\n"), "403"),
        ("/nowhere", format!("{host}Origin: https://evil.example\r\n"), "403"),
        ("/", format!("Host: evil.example:{}\r\n{bearer}", ip.port()), "403"),
        ("/", format!("Host: 10.0.0.1\r\n{bearer}"), "403"),
        ("/readyz", "Host: evil.example\r\n".to_owned(), "403"),
        ("/", bearer.clone(), "403"),
        ("/nowhere", format!("{host}{bearer}"), "404"),
        ("/healthz", host.clone(), "200"),
        ("/readyz", host.clone(), "200"),
    ] {
        let answer = http(ip, &knock(path, &headers)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path} {headers}\n{answer}");
        assert!(!answer.contains(TOKEN), "the token is told to nobody");
    }
    world.end().await;
}

#[tokio::test]
async fn a_wrong_token_opens_no_transport() {
    let mut world = World::new("", &json!([]));
    let wrong = Token::new("another-token-0123456789").expect("it is one");
    for url in ["ws://127.0.0.1:0", "tcp://127.0.0.1:0", "grpc://127.0.0.1:0"] {
        let address = world.listen(url).await;
        let refused = dial(&address, Some(&wrong)).await.map(|_| ()).expect_err("it is refused");
        assert!(matches!(refused, DialError::Unproved { .. }), "{url}: {refused:?}");
        let refused = dial(&address, Some(&wrong.clone().sent())).await.map(|_| ()).expect_err("it is refused");
        assert!(matches!(refused, DialError::Refused { .. }), "{url}: {refused:?}");
        let refused = dial(&address, None).await.map(|_| ()).expect_err("it is refused");
        assert!(matches!(refused, DialError::NoToken { .. }), "{url}: {refused:?}");
        assert!(dial(&address, Some(&World::token())).await.is_ok(), "{url}");
    }
    world.end().await;
}

/// The answer of a stranger to what it was sent.
type Reply = fn(&[u8]) -> Vec<u8>;

/// A program at an address, and everything that it is sent. It answers with what `reply` says to each piece.
async fn stranger(reply: impl Fn(&[u8]) -> Vec<u8> + Send + 'static) -> (SocketAddr, mpsc::UnboundedReceiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let (address, (sent, received)) = (listener.local_addr().expect("it is bound"), mpsc::unbounded_channel());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut piece = [0; 8192];
            while let Ok(read @ 1..) = stream.read(&mut piece).await {
                let _: Result<(), _> = sent.send(piece[..read].to_vec());
                if stream.write_all(&reply(&piece[..read])).await.is_err() {
                    break;
                }
            }
        }
    });
    (address, received)
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

#[tokio::test]
async fn a_stranger_at_the_address_of_a_server_is_not_sent_the_token() {
    let nonsense: &[Reply] = &[
        |_| Vec::new(),
        |_| b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\n\r\n".to_vec(),
        |_| b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n".to_vec(),
        |_| b"{\"id\":0,\"result\":{}}\n\r\n\r\n".to_vec(),
        // It sends the client's own words back.
        <[u8]>::to_vec,
        |_| vec![b'x'; 8000],
    ];
    for (scheme, reply) in ["ws", "tcp"].iter().flat_map(|scheme| nonsense.iter().map(move |reply| (scheme, reply))) {
        let reply = *reply;
        let (ip, mut received) = stranger(reply).await;
        let address: Address = format!("{scheme}://{ip}").parse().expect("it is an address");
        let token = World::token();
        let first = tokio::select! {
            dialled = dial(&address, Some(&token)) => {
                assert!(dialled.is_err(), "{scheme}");
                received.try_recv().ok()
            }
            // One that says nothing is given up later.
            first = received.recv(), if reply(b"").is_empty() => first,
        };
        assert!(!contains(&first.expect("a nonce"), TOKEN), "{scheme}: the token was sent");
        assert!(received.try_recv().is_err(), "{scheme}: a stranger gets no proof");
        // With the user's word it is.
        let (ip, mut received) = stranger(|_| Vec::new()).await;
        let address: Address = format!("{scheme}://{ip}").parse().expect("it is an address");
        let token = World::token().sent();
        let sent = tokio::select! {
            _ = dial(&address, Some(&token)) => None,
            piece = received.recv() => piece,
        };
        assert!(contains(&sent.expect("something is sent"), TOKEN), "{scheme}");
    }
}

#[tokio::test]
async fn a_stranger_cannot_pass_an_exchange_on_to_another_server() {
    let (mut world, ip) = ws().await;
    let nonce = "0".repeat(64);
    let knock = |address: &str| {
        let hello = format!("Authorization: Codex-Proof nonce={nonce} address={address}\r\n");
        format!("GET / HTTP/1.1\r\nHost: {ip}\r\n{hello}\r\n")
    };
    let here = http(ip, &knock(&ip.to_string())).await;
    assert!(here.starts_with("HTTP/1.1 401 ") && here.contains("Codex-Proof nonce="), "{here}");
    let elsewhere = http(ip, &knock("127.0.0.1:1")).await;
    assert!(elsewhere.starts_with("HTTP/1.1 401 ") && !elsewhere.contains("Codex-Proof"), "{elsewhere}");
    world.end().await;
}

#[tokio::test]
async fn a_server_may_take_proofs_alone() {
    let mut world = World::new("", &json!([]));
    world.takes_bearer = false;
    for url in ["ws://127.0.0.1:0", "tcp://127.0.0.1:0", "grpc://127.0.0.1:0"] {
        let address = world.listen(url).await;
        let refused = dial(&address, Some(&World::token().sent())).await.map(|_| ()).expect_err("it is refused");
        assert!(matches!(refused, DialError::Refused { .. }), "{url}: {refused:?}");
        assert!(dial(&address, Some(&World::token())).await.is_ok(), "{url}");
    }
    world.end().await;
}

#[tokio::test]
async fn http_requests_are_refused_over_tcp() {
    let mut world = World::new("", &json!([]));
    let ip = world.listen("tcp://127.0.0.1:0").await.ip().expect("it has one");
    let initialize = json!({"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "t", "version": "1"}}});
    for first in [
        format!("POST / HTTP/1.1\r\nHost: {ip}\r\n\r\n{initialize}\n"),
        format!("{initialize}\n"),
        format!("{{\"method\":\"authenticate\",\"params\":{{}}}}\n{initialize}\n"),
        format!("{}\n", "x".repeat(100_000)),
    ] {
        let mut stream = TcpStream::connect(ip).await.expect("it listens");
        stream.write_all(first.as_bytes()).await.expect("it reads");
        stream.shutdown().await.expect("it is open");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it is text");
        assert_eq!(answer.lines().count(), 1, "{answer}");
        assert!(answer.contains("authenticate") && !answer.contains("userAgent"), "{answer}");
    }
    world.end().await;
}

/// The response to a call.
async fn call(address: &Address, authority: Option<&str>, headers: &[(&str, &str)]) -> String {
    let stream = TcpStream::connect(address.ip().expect("it has one")).await.expect("it listens");
    let (client, connection) = h2::client::handshake(stream).await.expect("it speaks HTTP/2");
    tokio::spawn(connection);
    let ip = address.ip().expect("it has one").to_string();
    let uri = format!("http://{}/codex.app_server.v1.AppServer/Connect", authority.unwrap_or(&ip));
    let request = http::Request::post(uri).header("content-type", "application/grpc");
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let mut client = client.ready().await.expect("it is ready");
    let (response, _sender) = client.send_request(request.body(()).expect("a request"), false).expect("it is sent");
    let response = response.await.expect("it is answered");
    response.headers().get("grpc-status").map_or("open", |value| value.to_str().expect("a number")).to_owned()
}

#[tokio::test]
async fn a_call_needs_the_token_and_no_origin() {
    let mut world = World::new("", &json!([]));
    let address = world.listen("grpc://127.0.0.1:0").await;
    let bearer = format!("Bearer {TOKEN}");
    let bearer = ("authorization", bearer.as_str());
    assert_eq!(call(&address, None, &[bearer]).await, "open");
    assert_eq!(call(&address, None, &[]).await, "16");
    assert_eq!(call(&address, None, &[("authorization", "Bearer another-token-0123")]).await, "16");
    assert_eq!(call(&address, None, &[bearer, ("origin", "https://evil.example")]).await, "7");
    assert_eq!(call(&address, Some("evil.example"), &[bearer]).await, "7");
    world.end().await;
}

#[tokio::test]
async fn other_machines_are_accepted_only_on_request() {
    let world = World::new("", &json!([]));
    for url in ["ws://0.0.0.0:0", "tcp://[::]:0", "grpc://192.0.2.1:0"] {
        let refused = world.refused(url, world.options()).await;
        assert!(matches!(refused, BindError::Remote { .. }), "{url}: {refused:?}");
    }
    let refused = world.refused("ws://127.0.0.1:0", Options { token: None, ..world.options() }).await;
    assert!(matches!(refused, BindError::NoToken { .. }), "{refused:?}");
    let open = Options { allows_remote: true, ..world.options() };
    let address: Address = "ws://0.0.0.0:0".parse().expect("it is one");
    assert!(codex_transport::Listener::bind(&address, open).await.is_ok());
}

#[tokio::test]
async fn a_slow_handshake_is_cut_off() {
    let mut world = World::new("", &json!([]));
    world.limits.handshake = Duration::from_millis(100);
    for (url, begun) in [
        ("ws://127.0.0.1:0", &b"GET / HTTP/1.1\r\nHost: 127.0."[..]),
        ("ws://127.0.0.1:0", b""),
        ("tcp://127.0.0.1:0", b"{\"method\":\"authen"),
        ("grpc://127.0.0.1:0", b"PRI * HTTP/2.0\r\n"),
        ("grpc://127.0.0.1:0", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"),
    ] {
        let ip = world.listen(url).await.ip().expect("it has one");
        let mut stream = TcpStream::connect(ip).await.expect("it listens");
        stream.write_all(begun).await.expect("it reads");
        let mut rest = Vec::new();
        let end = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest)).await;
        assert!(end.is_ok(), "{url} {begun:?} is still open");
    }
    world.end().await;
}

#[tokio::test]
async fn refused_calls_win_no_time() {
    let mut world = World::new("", &json!([]));
    world.limits.handshake = Duration::from_millis(200);
    let address = world.listen("grpc://127.0.0.1:0").await;
    let ip = address.ip().expect("it has one");
    let stream = TcpStream::connect(ip).await.expect("it listens");
    let (mut client, connection) = h2::client::handshake(stream).await.expect("it speaks HTTP/2");
    tokio::spawn(connection);
    // Calls without a token, one after the other, until the server closes the connection.
    let calls = async {
        while let Ok(ready) = client.ready().await {
            client = ready;
            let request = http::Request::post(format!("http://{ip}/x")).body(()).expect("a request");
            let Ok((response, _)) = client.send_request(request, true) else { return };
            if response.await.is_err() {
                return;
            }
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(20), calls).await.is_ok(), "it goes on for ever");
    world.end().await;
}

/// Opens a WebSocket by hand, to send what no library would.
async fn open(ip: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(ip).await.expect("it listens");
    let headers = format!("Host: {ip}\r\nAuthorization: Bearer {TOKEN}\r\n");
    stream.write_all(knock("/", &headers).as_bytes()).await.expect("it reads");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("an answer"));
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    stream
}

/// The server's close code, and the number of pings before it.
async fn closed(stream: &mut TcpStream) -> (u16, usize) {
    let mut pings = 0;
    loop {
        let kind = stream.read_u8().await.expect("a frame");
        let length = stream.read_u8().await.expect("a frame");
        let mut payload = vec![0; usize::from(length)];
        stream.read_exact(&mut payload).await.expect("a frame");
        match kind {
            0x89 => pings += 1,
            0x88 => return (u16::from_be_bytes([payload[0], payload[1]]), pings),
            kind => panic!("a frame of kind {kind:x}"),
        }
    }
}

#[tokio::test]
async fn frames_that_break_the_rules_close_the_connection_with_the_reason() {
    let (mut world, ip) = ws().await;
    let size = (32_u64 * 1024 * 1024 + 1).to_be_bytes();
    let oversized = [&[0x81, 0xff][..], &size, &[0, 0, 0, 0]].concat();
    for (frame, code) in [
        (oversized, 1009),
        (b"\x82\x81\0\0\0\0x".to_vec(), 1003),
        (b"\x81\x82\0\0\0\0\xff\xfe".to_vec(), 1007),
        (b"\x8f\x80\0\0\0\0".to_vec(), 1002),
        (b"\x88\x82\0\0\0\0\x03\xe8".to_vec(), 1000),
    ] {
        let mut stream = open(ip).await;
        stream.write_all(&frame).await.expect("it reads");
        assert_eq!(closed(&mut stream).await.0, code, "{frame:?}");
    }
    world.end().await;
}

#[tokio::test]
async fn a_client_without_pongs_is_dropped() {
    let mut world = World::new("", &json!([]));
    (world.limits.ping, world.limits.silence) = (Duration::from_millis(20), Duration::from_millis(200));
    let ip = world.listen("ws://127.0.0.1:0").await.ip().expect("it has one");
    let (code, pings) = closed(&mut open(ip).await).await;
    assert_eq!(code, 1008);
    assert!(pings > 0, "it was asked first");
    world.end().await;
}

#[tokio::test]
async fn a_message_over_the_limit_ends_a_call_and_is_skipped_in_lines() {
    let mut world = World::new("", &json!([]));
    let grpc = world.listen("grpc://127.0.0.1:0").await;
    let stream = TcpStream::connect(grpc.ip().expect("it has one")).await.expect("it listens");
    let (client, connection) = h2::client::handshake(stream).await.expect("it speaks HTTP/2");
    tokio::spawn(connection);
    let uri = format!("http://{}/codex.app_server.v1.AppServer/Connect", grpc.ip().expect("it has one"));
    let request = http::Request::post(uri)
        .header("content-type", "application/grpc")
        .header("authorization", format!("Bearer {TOKEN}"));
    let mut client = client.ready().await.expect("it is ready");
    let (response, mut sender) = client.send_request(request.body(()).expect("a request"), false).expect("it is sent");
    let mut body = response.await.expect("it is answered").into_body();
    sender.send_data(bytes::Bytes::from_static(b"\0\x7f\xff\xff\xff"), false).expect("it is sent");
    assert!(body.data().await.is_none(), "nothing is said to it");
    let trailers = body.trailers().await.expect("they come").expect("there are some");
    assert_eq!(trailers["grpc-status"], "8");
    let mut lines = world.client("unix://").await;
    let long = "x".repeat(33 * 1024 * 1024);
    let refused = lines.call("thread/list", json!({"cursor": long})).await.expect_err("it is refused");
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("was skipped")), "{refused}");
    lines.ok("thread/list", json!({})).await;
    world.end().await;
}
