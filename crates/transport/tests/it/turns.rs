//! The same turn over every transport.

use serde_json::json;

use crate::client::Client;
use crate::world::World;

/// A client sends a message and receives the whole answer, including a large message in both directions.
async fn check(url: &str) {
    let long = "x".repeat(300_000);
    let mut world = World::new("", &json!([{"items": [{"text": "Hi there."}]}, {"items": [{"text": long}]}]));
    let mut client =
        if url == "memory" { Client::within(world.server.connect()).await } else { world.client(url).await };
    let thread = client.thread().await;
    client.say(&thread, "hello").await;
    assert_eq!(client.notification("turn/completed").await["turn"]["status"], "completed");
    client.say(&thread, &"y".repeat(3_000_000)).await;
    client.notification("turn/completed").await;
    let known = client.resume(&thread).await;
    let texts: Vec<usize> = known["turns"][1]["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| item["text"].as_str().or_else(|| item["content"][0]["text"].as_str()).map_or(0, str::len))
        .collect();
    assert_eq!(texts, [3_000_000, 300_000]);
    // A message with line breaks in it is one message where frames allow that, and nothing gets out of step.
    assert_eq!(client.ok("thread/loaded/list", json!({})).await["data"], json!([thread]));
    drop(client);
    world.end().await;
}

#[tokio::test]
async fn over_a_unix_socket() {
    check("unix://").await;
}

#[tokio::test]
async fn over_websocket() {
    check("ws://127.0.0.1:0").await;
}

#[tokio::test]
async fn over_tcp() {
    check("tcp://127.0.0.1:0").await;
}

#[tokio::test]
async fn over_grpc() {
    check("grpc://127.0.0.1:0").await;
}

#[tokio::test]
async fn within_the_program() {
    check("memory").await;
}

#[tokio::test]
async fn two_clients_of_one_thread_both_see_its_turn() {
    let script = json!([{"items": [{"text": "Hi there.", "deltas": ["Hi ", "there."]}]}]);
    let mut world = World::new("", &script);
    let mut first = world.client("unix://").await;
    let mut second = world.client("ws://127.0.0.1:0").await;
    let mut third = world.client("grpc://127.0.0.1:0").await;
    let thread = first.thread().await;
    assert_eq!(second.resume(&thread).await["id"], json!(thread));
    assert_eq!(third.resume(&thread).await["id"], json!(thread));
    let turn = second.say(&thread, "hello").await;
    for client in [&mut first, &mut second, &mut third] {
        assert_eq!(client.notification("turn/started").await["turn"]["id"], json!(turn));
        for delta in ["Hi ", "there."] {
            assert_eq!(client.notification("item/agentMessage/delta").await["delta"], delta);
        }
        assert_eq!(client.notification("turn/completed").await["turn"]["id"], json!(turn));
    }
    world.end().await;
}
