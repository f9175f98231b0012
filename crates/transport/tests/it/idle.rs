//! Threads that nobody listens to.

use std::time::Duration;

use serde_json::json;

use crate::client::Client;
use crate::world::{ASKS, World};

const HALF_AN_HOUR: Duration = Duration::from_secs(30 * 60);

#[tokio::test(start_paused = true)]
async fn a_thread_that_nobody_listens_to_is_unloaded_and_comes_back() {
    let mut world = World::new("", &json!([{"repeat": true, "items": [{"text": "Hi."}]}]));
    let server = world.server.clone();
    let unloading = tokio::spawn(async move { server.unload_idle(HALF_AN_HOUR).await });
    let mut leaver = Client::within(world.server.connect()).await;
    let left = leaver.thread().await;
    leaver.say(&left, "hello").await;
    leaver.notification("turn/completed").await;
    let mut stayer = Client::within(world.server.connect()).await;
    let kept = stayer.thread().await;
    drop(leaver);
    let loaded = async |client: &mut Client| client.ok("thread/loaded/list", json!({})).await["data"].take();
    tokio::time::sleep(Duration::from_secs(28 * 60)).await;
    assert_eq!(loaded(&mut stayer).await, json!([left, kept]));
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(loaded(&mut stayer).await, json!([kept]), "one that is listened to stays");
    let known = stayer.resume(&left).await;
    assert_eq!(known["turns"].as_array().map(Vec::len), Some(1));
    stayer.say(&left, "again").await;
    stayer.notification("turn/completed").await;
    unloading.abort();
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_nobody_listens_to_goes_on() {
    let call = json!({"items": [{"call": "shell", "args": {"command": ["touch", "out"]}}]});
    let mut world = World::new(ASKS, &json!([call, {"items": [{"text": "At last."}]}]));
    let server = world.server.clone();
    let unloading = tokio::spawn(async move { server.unload_idle(HALF_AN_HOUR).await });
    let mut client = Client::within(world.server.connect()).await;
    let thread = client.thread().await;
    client.say(&thread, "hello").await;
    client.request("item/commandExecution/requestApproval").await;
    drop(client);
    tokio::time::sleep(2 * HALF_AN_HOUR).await;
    let mut client = Client::within(world.server.connect()).await;
    assert_eq!(client.ok("thread/loaded/list", json!({})).await["data"], json!([thread]));
    unloading.abort();
    world.end().await;
}
