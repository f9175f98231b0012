//! Threads without subscribers.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::world::{ASKS, World};

const HALF_AN_HOUR: Duration = Duration::from_secs(30 * 60);

#[tokio::test(start_paused = true)]
async fn a_thread_without_subscribers_is_unloaded_and_loaded_again() {
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

/// The loaded threads after everything without subscribers was unloaded.
async fn loaded_later(world: &World) -> Value {
    tokio::time::sleep(2 * HALF_AN_HOUR).await;
    let mut client = Client::within(world.server.connect()).await;
    client.ok("thread/loaded/list", json!({})).await["data"].take()
}

#[tokio::test]
async fn a_turn_without_subscribers_continues() {
    let mut world = World::new("", &json!([{"items": [{"hang": true}]}]));
    let mut client = Client::within(world.server.connect()).await;
    let thread = client.thread().await;
    client.say(&thread, "hello").await;
    client.notification("turn/started").await;
    client.thread().await;
    drop(client);
    // The other one is idle.
    while world.server.unload_unsubscribed().await == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.server.unload_unsubscribed().await, 0);
    let mut client = Client::within(world.server.connect()).await;
    assert_eq!(client.ok("thread/loaded/list", json!({})).await["data"], json!([thread]));
    world.end().await;
}

/// An approval request whose clients are gone does not keep a thread loaded, and unloading does not answer it.
async fn check_abandoned(decision: &str, at_once: bool) {
    let call = json!({"items": [{"call": "shell", "args": {"command": ["touch", "out"]}}]});
    let mut world = World::new(ASKS, &json!([call, {"items": [{"text": "At last."}]}]));
    let server = world.server.clone();
    let unloading = tokio::spawn(async move { server.unload_idle(HALF_AN_HOUR).await });
    let mut client = Client::within(world.server.connect()).await;
    let thread = client.thread().await;
    let turn = client.say(&thread, "hello").await;
    client.request("item/commandExecution/requestApproval").await;
    assert_eq!(world.server.unload_unsubscribed().await, 0, "somebody listens");
    drop(client);
    if at_once {
        // The subscriber takes a moment to close.
        while world.server.unload_unsubscribed().await == 0 {
            tokio::task::yield_now().await;
        }
    } else {
        assert_eq!(loaded_later(&world).await, json!([]));
    }
    // A command takes real time, and paused time would be over at once.
    tokio::time::resume();
    // The model of the reloaded thread starts its script from the beginning.
    std::fs::write(world.path("home/script.json"), json!([{"items": [{"text": "At last."}]}]).to_string())
        .expect("it can be written");
    let mut client = Client::within(world.server.connect()).await;
    let resumed = client.resume(&thread).await;
    let turns = resumed["turns"].as_array().expect("turns");
    assert_eq!((turns.len(), &turns[0]["id"], &turns[0]["status"]), (1, &json!(turn), &json!("inProgress")));
    let (id, _) = client.request("item/commandExecution/requestApproval").await;
    assert!(!world.path("work/out").exists(), "nobody has said yes yet");
    client.send(&json!({"id": id, "result": {"decision": decision}})).await;
    assert_eq!(client.notification("turn/completed").await["turn"]["status"], "completed");
    assert_eq!(world.path("work/out").exists(), decision == "accept");
    unloading.abort();
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_question_is_unloaded_and_asked_again() {
    check_abandoned("accept", false).await;
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_question_that_has_come_back_can_be_denied() {
    check_abandoned("decline", false).await;
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_question_is_unloaded_at_once_where_descriptors_run_short() {
    check_abandoned("accept", true).await;
}

#[tokio::test]
async fn the_output_of_a_call_next_to_an_abandoned_question_is_kept() {
    let call = |id: &str, argv: &[&str]| json!({"call": "shell", "id": id, "args": {"command": argv}});
    let both = json!([{"items": [call("asks", &["touch", "out"]), call("runs", &["echo", "kept"])]}]);
    let mut world = World::new(ASKS, &both);
    let mut client = Client::within(world.server.connect()).await;
    let thread = client.thread().await;
    client.say(&thread, "hello").await;
    while client.notification("item/completed").await["item"]["id"] != "runs" {}
    drop(client);
    while world.server.unload_unsubscribed().await == 0 {
        tokio::task::yield_now().await;
    }
    std::fs::write(world.path("home/script.json"), json!([{"items": [{"text": "At last."}]}]).to_string())
        .expect("it can be written");
    let mut client = Client::within(world.server.connect()).await;
    let path = client.resume(&thread).await["path"].take();
    let (id, _) = client.request("item/commandExecution/requestApproval").await;
    client.send(&json!({"id": id, "result": {"decision": "accept"}})).await;
    client.notification("turn/completed").await;
    let rollout = std::fs::read_to_string(path.as_str().expect("a path")).expect("it can be read");
    let lines = rollout.lines().map(|line| serde_json::from_str::<Value>(line).expect("every line is JSON"));
    let outputs = lines.filter(|line| line["payload"]["type"] == "function_call_output");
    let told: Vec<(Value, bool)> = outputs
        .map(|line| (line["payload"]["call_id"].clone(), line["payload"]["output"].to_string().contains("kept")))
        .collect();
    assert_eq!(told, [(json!("runs"), true), (json!("asks"), false)]);
    world.end().await;
}

/// A request that cannot be sent again waits for its answer, and is interrupted in the end. Returns the turn as it is
/// read then.
async fn check_interrupted(config: &str, script: &Value, ask: impl AsyncFnOnce(&mut Client, &str) -> String) -> Value {
    let mut world = World::new(config, script);
    let mut client = Client::within(world.server.connect()).await;
    let thread = client.thread().await;
    let turn = ask(&mut client, &thread).await;
    drop(client);
    let mut client = Client::within(world.server.connect()).await;
    assert_eq!(world.server.unload_unsubscribed().await, 0, "it would be lost");
    assert_eq!(client.ok("thread/loaded/list", json!({})).await["data"], json!([thread]));
    drop(client);
    tokio::time::pause();
    let server = world.server.clone();
    let unloading = tokio::spawn(async move { server.unload_idle(HALF_AN_HOUR).await });
    assert_eq!(loaded_later(&world).await, json!([]));
    tokio::time::resume();
    let mut client = Client::within(world.server.connect()).await;
    let mut resumed = client.resume(&thread).await;
    let turns = resumed["turns"].as_array_mut().expect("turns");
    assert_eq!((turns.len(), &turns[0]["id"], &turns[0]["status"]), (1, &json!(turn), &json!("interrupted")));
    let turn = turns[0].take();
    unloading.abort();
    world.end().await;
    turn
}

#[tokio::test]
async fn input_to_a_waiting_turn_is_kept_when_it_is_interrupted() {
    let call = json!({"items": [{"call": "shell", "args": {"command": ["touch", "out"]}}]});
    let turn = check_interrupted(ASKS, &json!([call]), async |client, thread| {
        let turn = client.say(thread, "hello").await;
        client.request("item/commandExecution/requestApproval").await;
        assert_eq!(client.say(thread, "and wait").await, turn, "it joins the turn");
        turn
    })
    .await;
    assert!(turn.to_string().contains("and wait"), "{turn}");
}

#[tokio::test]
async fn a_question_about_a_command_that_has_run_is_interrupted_in_the_end() {
    let call = json!({"items": [{"call": "shell", "args": {"command": ["touch", "x"]}}]});
    let config = "approval_policy = 'on-failure'\nsandbox_mode = 'read-only'\n";
    check_interrupted(config, &json!([call]), async |client, thread| {
        let turn = client.say(thread, "hello").await;
        client.request("item/commandExecution/requestApproval").await;
        turn
    })
    .await;
}
