//! More clients than there is room for.

use codex_transport::{Address, DialError, Slots, dial};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
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
async fn who_finds_no_room_is_told_so_and_finds_it_when_somebody_leaves() {
    let mut world = World::new("", &json!([]));
    world.slots = Slots::new(2);
    let unix = world.listen("unix://").await;
    let ws = world.listen("ws://127.0.0.1:0").await;
    let tcp = world.listen("tcp://127.0.0.1:0").await;
    let grpc = world.listen("grpc://127.0.0.1:0").await;
    let mut first = Client::connect(&ws, &World::token()).await;
    let second = Client::connect(&unix, &World::token()).await;
    assert!(why(&ws).await.starts_with("503"), "{}", why(&ws).await);
    assert!(why(&tcp).await.contains("too many connections"));
    assert!(why(&grpc).await.contains("too many connections"));
    let Address::Unix(Some(path)) = &unix else { panic!("it is a Unix socket") };
    let mut line = String::new();
    BufReader::new(UnixStream::connect(path).await.expect("it listens")).read_line(&mut line).await.expect("a line");
    let refusal: Value = serde_json::from_str(&line).expect("it is JSON");
    assert_eq!(refusal["error"]["code"], -32001);
    let ip = ws.ip().expect("it has one");
    assert!(http(ip, &format!("GET /healthz HTTP/1.1\r\nHost: {ip}\r\n\r\n")).await.starts_with("HTTP/1.1 200"));
    assert!(http(ip, &format!("GET /readyz HTTP/1.1\r\nHost: {ip}\r\n\r\n")).await.starts_with("HTTP/1.1 503"));
    // Those who are there are served as before.
    first.ok("thread/list", json!({})).await;
    drop(second);
    // The server learns of it in its own time.
    let (input, output) = loop {
        match dial(&tcp, Some(&World::token())).await {
            Ok(connection) => break connection,
            Err(DialError::Refused { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error:?}"),
        }
    };
    Client::over(input, output).await.ok("thread/list", json!({})).await;
    world.end().await;
}

#[tokio::test]
async fn a_flood_of_strangers_keeps_no_client_out() {
    let mut world = World::new("", &json!([]));
    world.slots = Slots::new(4);
    world.limits.handshake = std::time::Duration::from_secs(2);
    let tcp = world.listen("tcp://127.0.0.1:0").await;
    let unix = world.listen("unix://").await;
    let ip = tcp.ip().expect("it has one");
    let mut flood = Vec::new();
    for _ in 0..100 {
        flood.push(TcpStream::connect(ip).await.expect("it listens"));
    }
    for address in [&tcp, &unix] {
        Client::connect(address, &World::token()).await.ok("thread/list", json!({})).await;
    }
    for _ in 0..300 {
        flood.push(TcpStream::connect(ip).await.expect("it listens"));
    }
    // Every one of them is cut off: those that wait in the lobby at their deadline, the others at once.
    let mut waited = 0;
    for stream in &mut flood {
        let mut rest = Vec::new();
        // A reset is an end too.
        let _: std::io::Result<usize> = stream.read_to_end(&mut rest).await;
        let rest = String::from_utf8_lossy(&rest);
        assert!(rest.is_empty() || rest.contains("no token came in time"), "{rest}");
        waited += usize::from(!rest.is_empty());
    }
    assert!((100..=256).contains(&waited), "{waited} have waited");
    Client::connect(&tcp, &World::token()).await.ok("thread/list", json!({})).await;
    world.end().await;
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
