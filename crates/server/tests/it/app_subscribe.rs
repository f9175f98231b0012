//! Subscriptions by event number, and input with a key.

use std::io::Write as _;

use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::{scripted, start, turn};

fn text(text: &str) -> Value {
    json!({"items": [{"text": text}]})
}

fn said(thread: &str, key: &str) -> Value {
    json!({"threadId": thread, "input": [{"type": "text", "text": "go"}], "clientUserMessageId": key})
}

/// The numbered messages up to the first notification with this method, each with its number.
async fn numbered(client: &mut AppClient, until: &str) -> Vec<(u64, String)> {
    let mut seen = Vec::new();
    for message in client.messages_until(until).await {
        let method = message["method"].as_str().unwrap_or("answer").to_owned();
        if let Some(seq) = message["seq"].as_u64() {
            seen.push((seq, method));
        }
    }
    seen
}

fn is_rising(numbers: &[(u64, String)]) -> bool {
    numbers.windows(2).all(|pair| pair[0].0 < pair[1].0)
}

#[tokio::test]
async fn missed_events_are_repeated_by_number() {
    let script = json!([{"items": [{"text": "Hi there.", "deltas": ["Hi ", "there."]}]}]);
    let mut client = scripted("", &script).await;
    let thread = start(&mut client).await;
    let first = client.ok("thread/subscribe", json!({"threadId": thread})).await;
    assert_eq!(first["reset"], true, "the client has seen nothing yet");
    let caught_up = client.next_notification("thread/caughtUp").await;
    assert_eq!((&caught_up["seq"], &caught_up["logId"]), (&first["seq"], &first["logId"]));

    client.ok("turn/start", said(&thread, "a")).await;
    let seen = numbered(&mut client, "turn/completed").await;
    assert!(is_rising(&seen), "{seen:?}");
    assert_eq!(seen.last().map(|(_, method)| method.as_str()), Some("turn/completed"));

    for place in 0..seen.len() {
        let after = seen[place].0;
        let params = json!({"threadId": thread, "after": after, "logId": first["logId"]});
        let answer = client.ok("thread/subscribe", params).await;
        assert_eq!((&answer["reset"], &answer["thread"]["turns"]), (&json!(false), &json!([])));
        let again = numbered(&mut client, "thread/caughtUp").await;
        assert_eq!(again, seen[place + 1..], "after {after}");
    }
    client.end().await;
}

#[tokio::test]
async fn a_client_with_an_unknown_position_gets_the_whole_thread() {
    let mut client = scripted("", &json!([text(&"x".repeat(100_000)), text("short")])).await;
    let thread = start(&mut client).await;
    let log = client.ok("thread/subscribe", json!({"threadId": thread})).await["logId"].clone();
    turn(&mut client, &thread, "one").await;
    turn(&mut client, &thread, "two").await;
    for params in [
        json!({"threadId": thread, "after": 1 << 18, "logId": log}),
        json!({"threadId": thread, "after": 1_u64 << 50, "logId": log}),
        json!({"threadId": thread, "after": 0, "logId": "another"}),
        json!({"threadId": thread}),
    ] {
        client.next_notification("thread/caughtUp").await;
        let answer = client.ok("thread/subscribe", params.clone()).await;
        assert_eq!(answer["reset"], true, "{params}");
        let turns = answer["thread"]["turns"].as_array().expect("turns");
        assert_eq!(turns.len(), 2, "{params}");
        assert_eq!(turns[1]["items"][1]["text"], "short");
    }
    client.end_unread().await;
}

#[tokio::test]
async fn a_foreign_write_gives_the_log_another_id() {
    let mut client = scripted("", &json!([text("one"), text("two")])).await;
    let started = client.ok("thread/start", json!({})).await["thread"].clone();
    let thread = started["id"].as_str().expect("an id").to_owned();
    let before = client.ok("thread/subscribe", json!({"threadId": thread})).await["logId"].clone();
    client.ok("turn/start", said(&thread, "a")).await;
    let last = numbered(&mut client, "turn/completed").await.last().expect("a number").0;
    let position = json!({"threadId": thread, "after": last, "logId": before});
    assert_eq!(client.ok("thread/subscribe", position.clone()).await["reset"], false);
    client.next_notification("thread/caughtUp").await;

    let line = json!({"timestamp": "2026-01-02T03:04:05.006Z", "type": "unknown", "payload": {}});
    let mut file =
        std::fs::File::options().append(true).open(started["path"].as_str().expect("a path")).expect("a file");
    writeln!(file, "{line}").expect("it can be written");
    client.ok("turn/start", said(&thread, "b")).await;
    let warning = client.next_notification("warning").await["message"].clone();
    assert!(warning.as_str().is_some_and(|text| text.contains("was changed by another program")), "{warning}");
    client.next_notification("turn/completed").await;

    let answer = client.ok("thread/subscribe", position).await;
    let log = answer["logId"].as_str().expect("an id");
    assert_eq!(answer["reset"], true, "the client has not seen the foreign line");
    assert!(!log.starts_with(&thread), "numbers of the log before mean nothing in this one: {log}");
    assert_eq!(answer["thread"]["turns"].as_array().map(Vec::len), Some(2));
    client.end_unread().await;
}

#[tokio::test]
async fn a_question_waits_for_a_client_that_reconnects() {
    let asks = "approval_policy = 'untrusted'\nsandbox_mode = 'danger-full-access'";
    let command = json!({"items": [{"call": "shell", "args": {"command": ["sh", "-c", "echo ran > out"]}}]});
    let mut client = scripted(asks, &json!([command, text("Done.")])).await;
    let thread = start(&mut client).await;
    let subscribed = client.ok("thread/subscribe", json!({"threadId": thread})).await;
    client.ok("turn/start", said(&thread, "a")).await;
    client.next_request("item/commandExecution/requestApproval").await;
    client.ok("thread/unsubscribe", json!({"threadId": thread})).await;
    let params = json!({"threadId": thread, "after": subscribed["seq"], "logId": subscribed["logId"]});
    assert_eq!(client.ok("thread/subscribe", params).await["reset"], false);
    let (id, asked) = client.next_request("item/commandExecution/requestApproval").await;
    assert_eq!(asked["command"], "sh -c 'echo ran > out'");
    client.respond(id, json!({"result": {"decision": "accept"}})).await;
    client.next_notification("turn/completed").await;
    assert_eq!(std::fs::read_to_string(client.work("out")).ok().as_deref(), Some("ran\n"));
    client.end_unread().await;
}

#[tokio::test]
async fn a_thread_that_is_not_loaded_is_loaded_to_be_listened_to() {
    let mut client = scripted("", &json!([text("one"), text("two")])).await;
    let thread = start(&mut client).await;
    let log = client.ok("thread/subscribe", json!({"threadId": thread})).await["logId"].clone();
    client.next_notification("thread/caughtUp").await;
    turn(&mut client, &thread, "hello").await;
    client.ok("thread/unsubscribe", json!({"threadId": thread})).await;
    let answer = client.ok("thread/subscribe", json!({"threadId": thread, "after": 3 << 18, "logId": log})).await;
    assert_eq!(answer["reset"], true, "no line ends there");
    assert_ne!(answer["logId"], log);
    assert_eq!(answer["thread"]["turns"].as_array().map(Vec::len), Some(1));
    client.next_notification("thread/caughtUp").await;
    let missing = json!({"threadId": "00000000-0000-7000-8000-000000000000"});
    assert_eq!(client.refused("thread/subscribe", missing).await.0, -32600);
    client.end_unread().await;
}

#[tokio::test]
async fn input_with_a_repeated_key_is_accepted_once() {
    let mut client = scripted("", &json!([text("one"), text("two")])).await;
    let thread = start(&mut client).await;
    let first = client.ok("turn/start", said(&thread, "a")).await["turn"]["id"].clone();
    let item = client.next_notification("item/completed").await;
    assert_eq!(item["item"]["clientId"], "a");
    client.next_notification("turn/completed").await;

    let again = client.ok("turn/start", said(&thread, "a")).await;
    assert_eq!((&again["turn"]["id"], &again["turn"]["status"]), (&first, &json!("completed")));
    assert_eq!(again["turn"]["items"][1]["text"], "one");

    // The key outlives the loaded thread.
    client.ok("thread/unsubscribe", json!({"threadId": thread})).await;
    let resumed = client.ok("thread/resume", json!({"threadId": thread})).await;
    assert_eq!(resumed["thread"]["turns"][0]["items"][0]["clientId"], "a");
    assert_eq!(client.ok("turn/start", said(&thread, "a")).await["turn"]["id"], first);
    let other = client.ok("turn/start", said(&thread, "b")).await["turn"]["id"].clone();
    assert_ne!(other, first);
    client.next_notification("turn/completed").await;
    let read = client.ok("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    assert_eq!(read["thread"]["turns"].as_array().map(Vec::len), Some(2));
    client.end_unread().await;
}

#[tokio::test]
async fn a_retry_while_the_turn_runs_names_the_turn_that_runs() {
    let asks = "approval_policy = 'untrusted'\nsandbox_mode = 'danger-full-access'";
    let command = json!({"items": [{"call": "shell", "args": {"command": ["sh", "-c", "echo ran > out"]}}]});
    let mut client = scripted(asks, &json!([command, text("Done.")])).await;
    let thread = start(&mut client).await;
    let first = client.ok("turn/start", said(&thread, "a")).await["turn"]["id"].clone();
    let (id, _) = client.next_request("item/commandExecution/requestApproval").await;
    let again = client.ok("turn/start", said(&thread, "a")).await;
    assert_eq!((&again["turn"]["id"], &again["turn"]["status"]), (&first, &json!("inProgress")));
    client.respond(id, json!({"result": {"decision": "accept"}})).await;
    let completed = client.next_notification("turn/completed").await;
    assert_eq!(completed["turn"]["id"], first);
    let rest = client.end_with_rest().await;
    let messages = rest.iter().filter(|message| message["params"]["item"]["type"] == "userMessage").count();
    assert_eq!(messages, 2, "one message, begun and whole");
}

#[tokio::test]
async fn open_requests_are_listed_for_each_client_with_its_own_ids() {
    let asks = "approval_policy = 'untrusted'\nsandbox_mode = 'danger-full-access'";
    let command = json!({"items": [{"call": "shell", "args": {"command": ["sh", "-c", "echo ran > out"]}}]});
    let mut client = scripted(asks, &json!([command, text("Done.")])).await;
    let thread = start(&mut client).await;
    let of = json!({"threadId": thread});
    assert_eq!(client.ok("serverRequest/list", of.clone()).await["data"], json!([]));
    client.ok("turn/start", said(&thread, "a")).await;
    let (id, asked) = client.next_request("item/commandExecution/requestApproval").await;
    let listed = client.ok("serverRequest/list", of.clone()).await["data"].clone();
    assert_eq!((&listed[0]["id"], &listed[0]["method"]), (&json!(id), &json!("item/commandExecution/requestApproval")));
    assert_eq!((&listed[0]["params"]["itemId"], listed.as_array().map(Vec::len)), (&asked["itemId"], Some(1)));

    let mut other = client.another().await;
    other.ok("thread/subscribe", of.clone()).await;
    let (theirs, again) = other.next_request("item/commandExecution/requestApproval").await;
    assert_eq!(again["itemId"], asked["itemId"]);
    other.respond(theirs, json!({"result": {"decision": "accept"}})).await;
    assert_eq!(client.next_notification("serverRequest/resolved").await["requestId"], json!(id));
    client.next_notification("turn/completed").await;
    other.next_notification("turn/completed").await;
    assert_eq!(client.ok("serverRequest/list", of).await["data"], json!([]));
    other.end_unread().await;
    client.end_unread().await;
}

#[tokio::test]
async fn notifications_for_all_clients_reach_all() {
    let mut client = scripted("", &json!([text("one")])).await;
    let mut other = client.another().await;
    let thread = start(&mut client).await;
    turn(&mut client, &thread, "hello").await;
    client.ok("thread/name/set", json!({"threadId": thread, "name": "Greeting"})).await;
    for client in [&mut client, &mut other] {
        assert_eq!(client.next_notification("thread/name/updated").await["threadName"], "Greeting");
    }
    client.ok("thread/archive", json!({"threadId": thread})).await;
    for client in [&mut client, &mut other] {
        assert_eq!(client.next_notification("thread/archived").await["threadId"], json!(thread));
    }
    let unloaded = other.next_notification("thread/status/changed").await;
    assert_eq!(unloaded["status"], json!({"type": "notLoaded"}));
    other.end().await;
    client.end_unread().await;
}

#[tokio::test]
async fn a_client_that_has_seen_everything_is_numbered_from_now_on() {
    let mut client = scripted("", &json!([text("one"), text("two"), text("three")])).await;
    let thread = start(&mut client).await;
    turn(&mut client, &thread, "go").await;
    let answer = client.ok("thread/subscribe", json!({"threadId": thread, "fromNow": true})).await;
    assert_eq!((&answer["reset"], &answer["thread"]["turns"]), (&json!(false), &json!([])));
    let caught_up = client.next_notification("thread/caughtUp").await;
    assert_eq!((&caught_up["seq"], &caught_up["logId"]), (&answer["seq"], &answer["logId"]));
    client.ok("turn/start", said(&thread, "b")).await;
    let second = numbered(&mut client, "turn/completed").await;
    assert!(is_rising(&second) && second[0].0 > answer["seq"].as_u64().expect("a number"), "{second:?}");
    // Exactly the second turn is missed by a client that has seen the first one.
    let mut other = client.another().await;
    let params = json!({"threadId": thread, "after": answer["seq"], "logId": answer["logId"]});
    assert_eq!(other.ok("thread/subscribe", params).await["reset"], false);
    let missed = other.names_until("thread/caughtUp").await;
    assert_eq!(missed.iter().filter(|name| *name == "turn/started").count(), 1, "{missed:?}");
    // Somebody who has not opened the thread gets all of it.
    let mut third = client.another().await;
    let answer = third.ok("thread/subscribe", json!({"threadId": thread, "fromNow": true})).await;
    assert_eq!((&answer["reset"], answer["thread"]["turns"].as_array().map(Vec::len)), (&json!(true), Some(2)));
    third.end_unread().await;
    other.end_unread().await;
    client.end_unread().await;
}

#[tokio::test]
async fn a_client_catches_up_with_a_server_that_has_forgotten_its_beginning() {
    let mut client = scripted("", &json!([text("one"), text(&"two ".repeat(40_000)), text("three")])).await;
    let thread = start(&mut client).await;
    turn(&mut client, &thread, "go").await;
    let seen = client.ok("thread/subscribe", json!({"threadId": thread})).await;
    let mut client = client.start_again().await;
    client.ok("thread/resume", json!({"threadId": thread})).await;
    let params = json!({"threadId": thread, "after": seen["seq"], "logId": seen["logId"]});
    for missed in [0, 1] {
        let mut other = client.another().await;
        assert_eq!(other.ok("thread/subscribe", params.clone()).await["reset"], false);
        let told = other.names_until("thread/caughtUp").await;
        assert_eq!(told.iter().filter(|name| *name == "turn/completed").count(), missed, "{told:?}");
        other.end_unread().await;
        if missed == 0 {
            // More than it keeps in memory.
            turn(&mut client, &thread, "go on").await;
        }
    }
    client.end_unread().await;
}

#[tokio::test]
async fn a_thread_that_was_looked_at_before_its_first_turn_is_found_with_it() {
    let mut client = scripted("", &json!([text("one")])).await;
    let thread = start(&mut client).await;
    let answer = client.ok("thread/subscribe", json!({"threadId": thread, "fromNow": true})).await;
    assert_eq!(answer["thread"]["preview"], "");
    turn(&mut client, &thread, "go").await;
    let listed = client.ok("thread/list", json!({})).await;
    assert_eq!(listed["data"][0]["preview"], "go", "{listed}");
    let mut other = client.another().await;
    let resumed = other.ok("thread/resume", json!({"threadId": thread, "excludeTurns": true})).await;
    assert_eq!(resumed["thread"]["preview"], "go");
    other.end_unread().await;
    client.end_unread().await;
}
