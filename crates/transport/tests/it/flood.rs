//! More clients than there is room for.

use std::collections::VecDeque;
use std::time::Duration;

use codex_transport::{Address, DialError, Slots, dial};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpStream, UnixStream};

use crate::client::Client;
use crate::strangers::http;
use crate::world::World;

async fn why(address: &Address) -> String {
    match dial(address, Some(&World::token())).await {
        Err(DialError::Refused { why, .. }) => why,
        Err(error) => panic!("{error:?}"),
        Ok(_) => panic!("there should be no room"),
    }
}

#[tokio::test]
async fn a_client_without_a_slot_is_refused_and_served_when_one_is_free() {
    let mut world = World::new("", &json!([]));
    world.slots = Slots::new(1);
    let unix = world.listen("unix://").await;
    let ws = world.listen("ws://127.0.0.1:0").await;
    let tcp = world.listen("tcp://127.0.0.1:0").await;
    let grpc = world.listen("grpc://127.0.0.1:0").await;
    let first = Client::connect(&ws, &World::token()).await;
    assert!(why(&ws).await.starts_with("503"), "{}", why(&ws).await);
    for address in [&tcp, &grpc] {
        let why = why(address).await;
        assert!(why.contains("at most 1 are served over IP addresses (--max-connections)"), "{why}");
    }
    let ip = ws.ip().expect("it has one");
    assert!(http(ip, &format!("GET /healthz HTTP/1.1\r\nHost: {ip}\r\n\r\n")).await.starts_with("HTTP/1.1 200"));
    assert!(http(ip, &format!("GET /readyz HTTP/1.1\r\nHost: {ip}\r\n\r\n")).await.starts_with("HTTP/1.1 503"));
    // Clients over IP addresses take no room from those over Unix sockets.
    let mut second = Client::connect(&unix, &World::token()).await;
    let refusal = read_refusal(&unix).await;
    assert_eq!(refusal["code"], -32001);
    assert!(refusal["message"].as_str().is_some_and(|text| text.contains("over Unix sockets")), "{refusal}");
    // Existing clients are served as before.
    second.ok("thread/list", json!({})).await;
    drop(first);
    Client::come_in(&tcp).await.ok("thread/list", json!({})).await;
    world.end().await;
}

/// The message to a client of a Unix socket before it has sent anything.
async fn read_refusal(unix: &Address) -> Value {
    let mut line = String::new();
    BufReader::new(stream(unix).await).read_line(&mut line).await.expect("a line");
    serde_json::from_str::<Value>(&line).expect("it is JSON")["error"].take()
}

async fn stream(unix: &Address) -> UnixStream {
    let Address::Unix(Some(path)) = unix else { panic!("it is a Unix socket") };
    UnixStream::connect(path).await.expect("it listens")
}

/// Keeps as many silent connections to an address as possible, and replaces each that is closed.
async fn keep_flooding(address: Address) {
    let ip = address.ip().expect("it has one");
    let mut strangers: VecDeque<TcpStream> = VecDeque::new();
    loop {
        strangers.extend(TcpStream::connect(ip).await);
        if strangers.len() > 300 {
            strangers.pop_front();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_strangers_keeps_no_client_out() {
    let mut world = World::new("", &json!([]));
    (world.slots, world.limits.handshake) = (Slots::new(4), Duration::from_secs(1));
    let unix = world.listen("unix://").await;
    for url in ["tcp://127.0.0.1:0", "ws://127.0.0.1:0", "grpc://127.0.0.1:0"] {
        let flooded = world.listen(url).await;
        let ip = flooded.ip().expect("it has one");
        let mut strangers = Vec::new();
        for _ in 0..300 {
            strangers.push(TcpStream::connect(ip).await.expect("it listens"));
        }
        let flood = tokio::spawn(keep_flooding(flooded.clone()));
        for _ in 0..5 {
            for address in [&unix, &flooded] {
                Client::come_in(address).await.ok("thread/list", json!({})).await;
            }
        }
        flood.abort();
        for mut stranger in strangers {
            let mut rest = Vec::new();
            // Every one of them is closed, and a reset counts too.
            let _: std::io::Result<usize> = stranger.read_to_end(&mut rest).await;
            let rest = String::from_utf8_lossy(&rest);
            let is_told = rest.contains("connections that have not shown a token") || rest.contains("no token arrived");
            assert!(rest.is_empty() || is_told || url != "tcp://127.0.0.1:0", "{rest}");
        }
    }
    world.end().await;
}

#[tokio::test]
async fn a_silent_connection_is_evicted_for_a_client() {
    let mut world = World::new("", &json!([]));
    (world.slots, world.limits.quiet) = (Slots::new(2), Duration::ZERO);
    let unix = world.listen("unix://").await;
    let mut busy = Client::connect(&unix, &World::token()).await;
    for begun in [&b""[..], b"{\"id\":1,\"method\":\"initi"] {
        let mut quiet = stream(&unix).await;
        quiet.write_all(begun).await.expect("it reads");
        Client::come_in(&unix).await.ok("thread/list", json!({})).await;
        let end = quiet.read(&mut [0; 1]).await;
        assert!(matches!(end, Ok(0) | Err(_)), "it has made way");
    }
    busy.ok("thread/list", json!({})).await;
    world.end().await;
}

/// A client that leaves with unread messages.
async fn check_unread(url: &str) {
    let mut world = World::new("", &json!([{"repeat": true, "items": [{"hang": true}]}]));
    world.slots = Slots::new(1);
    let address = world.listen(url).await;
    for _ in 0..3 {
        let mut client = Client::come_in(&address).await;
        let thread = client.thread().await;
        client.say(&thread, "go").await;
        client.notification("turn/started").await;
        // The responses to these are never read.
        for _ in 0..100 {
            client.ask("thread/loaded/list", json!({})).await;
        }
        drop(client);
    }
    Client::come_in(&address).await.ok("thread/list", json!({})).await;
    world.end().await;
}

#[tokio::test]
async fn unread_messages_hold_no_room_over_a_unix_socket() {
    check_unread("unix://").await;
}

#[tokio::test]
async fn unread_messages_hold_no_room_over_tcp() {
    check_unread("tcp://127.0.0.1:0").await;
}

#[tokio::test]
async fn unread_messages_hold_no_room_over_websocket() {
    check_unread("ws://127.0.0.1:0").await;
}

#[tokio::test]
async fn unread_messages_hold_no_room_over_grpc() {
    check_unread("grpc://127.0.0.1:0").await;
}

#[tokio::test]
async fn a_second_call_of_a_grpc_connection_takes_a_slot_too() {
    let mut world = World::new("", &json!([]));
    world.slots = Slots::new(1);
    let grpc = world.listen("grpc://127.0.0.1:0").await;
    let stream = TcpStream::connect(grpc.ip().expect("it has one")).await.expect("it listens");
    let (client, connection) = h2::client::handshake(stream).await.expect("it speaks HTTP/2");
    tokio::spawn(connection);
    let mut client = client.ready().await.expect("it is ready");
    let mut open = Vec::new();
    for expected in [None, Some("8")] {
        let request = http::Request::post(
            grpc.to_string().replacen("grpc", "http", 1) + "/codex.app_server.v1.AppServer/Connect",
        )
        .header("content-type", "application/grpc")
        .header("authorization", format!("Bearer {}", crate::world::TOKEN))
        .body(())
        .expect("it is a request");
        let (response, sender) = client.send_request(request, false).expect("it is sent");
        let response = response.await.expect("it is answered");
        let status = response.headers().get("grpc-status").and_then(|value| value.to_str().ok());
        assert_eq!(status, expected);
        open.push((sender, response.into_body()));
    }
    drop(open);
    drop(client);
    world.end().await;
}
