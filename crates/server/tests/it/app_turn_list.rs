//! A thread's turns and items page by page, shell commands of the user, and items that a client supplies.

use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::{scripted, start, turn};

fn text(text: &str) -> Value {
    json!({"items": [{"text": text}]})
}

/// A thread with three turns, and their ids.
async fn three_turns() -> (AppClient, String, Vec<String>) {
    let mut client = scripted("", &json!([text("one"), text("two"), text("three")])).await;
    let thread = start(&mut client).await;
    let mut turns = Vec::new();
    for said in ["a", "b", "c"] {
        turns.push(turn(&mut client, &thread, said).await);
    }
    (client, thread, turns)
}

fn names(list: &Value) -> Vec<&str> {
    list["data"].as_array().into_iter().flatten().filter_map(|turn| turn["id"].as_str()).collect()
}

#[tokio::test]
async fn turns_come_in_pages_newest_first() {
    let (mut client, thread, turns) = three_turns().await;
    let first = client.ok("thread/turns/list", json!({"threadId": thread, "limit": 2})).await;
    assert_eq!(names(&first), [&turns[2], &turns[1]]);
    let shown: Vec<&Value> = first["data"][0]["items"].as_array().expect("items").iter().collect();
    assert_eq!((shown.len(), &first["data"][0]["itemsView"]), (2, &json!("summary")));
    let next = json!({"threadId": thread, "limit": 2, "cursor": first["nextCursor"], "itemsView": "notLoaded"});
    let second = client.ok("thread/turns/list", next).await;
    assert_eq!((names(&second), &second["nextCursor"]), (vec![turns[0].as_str()], &Value::Null));
    assert_eq!(second["data"][0]["items"], json!([]));
    let back = json!({"threadId": thread, "sortDirection": "asc", "cursor": second["backwardsCursor"]});
    assert_eq!(names(&client.ok("thread/turns/list", back).await), [&turns[0], &turns[1], &turns[2]]);
    let (code, why) = client.refused("thread/turns/list", json!({"threadId": thread, "cursor": "x"})).await;
    assert_eq!((code, why.as_str()), (-32600, "invalid cursor: x"));
    client.end_unread().await;
}

#[tokio::test]
async fn items_come_in_pages_oldest_first_also_of_a_thread_that_is_not_loaded() {
    let (mut client, thread, turns) = three_turns().await;
    client.ok("thread/unsubscribe", json!({"threadId": thread})).await;
    let all = client.ok("thread/items/list", json!({"threadId": thread})).await;
    let said = |entry: &Value| match entry["item"]["type"].as_str() {
        Some("userMessage") => entry["item"]["content"][0]["text"].clone(),
        _ => entry["item"]["text"].clone(),
    };
    let texts: Vec<Value> = all["data"].as_array().expect("items").iter().map(said).collect();
    assert_eq!(texts, ["a", "one", "b", "two", "c", "three"]);
    let of = json!({"threadId": thread, "turnId": turns[1], "sortDirection": "desc"});
    let one = client.ok("thread/items/list", of).await;
    assert_eq!(one["data"].as_array().map(Vec::len), Some(2));
    assert_eq!((&one["data"][0]["turnId"], said(&one["data"][0])), (&json!(turns[1]), json!("two")));
    let anchor = json!({"type": "item", "itemId": one["data"][1]["item"]["id"]});
    let after = client.ok("thread/items/list", json!({"threadId": thread, "turnId": turns[1], "cursor": anchor})).await;
    assert_eq!(said(&after["data"][0]), "two");
    let (_, why) = client.refused("thread/items/list", json!({"threadId": thread, "cursor": anchor})).await;
    assert_eq!(why, "a cursor that names an item needs `turnId`");
    client.end_unread().await;
}

#[tokio::test]
async fn a_command_of_the_users_own_runs_in_a_turn_and_the_model_learns_of_it() {
    let strict = "approval_policy = 'untrusted'\nsandbox_mode = 'read-only'";
    let mut client = scripted(strict, &json!([text("An echo.")])).await;
    let thread = start(&mut client).await;
    client.ok("thread/shellCommand", json!({"threadId": thread, "command": "echo mine > out; cat out"})).await;
    let begun = client.next_notification("item/started").await;
    assert_eq!((&begun["item"]["source"], &begun["item"]["status"]), (&json!("userShell"), &json!("inProgress")));
    let ended = client.next_notification("item/completed").await;
    assert_eq!((&ended["item"]["aggregatedOutput"], &ended["item"]["exitCode"]), (&json!("mine\n"), &json!(0)));
    client.next_notification("turn/completed").await;
    turn(&mut client, &thread, "What did I run?").await;
    let read = client.ok("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    assert_eq!(read["thread"]["preview"], "What did I run?");
    let turns = read["thread"]["turns"].as_array().expect("turns");
    assert_eq!((turns.len(), &turns[0]["items"][0]["source"]), (2, &json!("userShell")));
    let rollout = std::fs::read_to_string(read["thread"]["path"].as_str().expect("a path")).expect("a file");
    assert!(rollout.contains("<user_shell_command>\\n<command>\\necho mine > out; cat out\\n</command>"), "{rollout}");
    client.end_unread().await;
}

#[tokio::test]
async fn a_command_of_the_users_own_can_be_stopped_and_waits_for_no_turn() {
    let mut client = scripted("", &json!([])).await;
    let thread = start(&mut client).await;
    let run = |command: &str| json!({"threadId": thread, "command": command});
    client.ok("thread/shellCommand", run("sleep 1000")).await;
    client.next_notification("item/started").await;
    let (_, why) = client.refused("thread/shellCommand", run("true")).await;
    assert_eq!(why, "a turn is running; wait for its end or interrupt it");
    assert_eq!(client.refused("thread/shellCommand", run(" ")).await.1, "command must not be empty");
    client.ok("turn/interrupt", json!({"threadId": thread})).await;
    assert_eq!(client.next_notification("turn/completed").await["turn"]["status"], "interrupted");
    client.end_unread().await;
}

#[tokio::test]
async fn items_that_a_client_brings_along_are_part_of_the_conversation() {
    let mut client = scripted("", &json!([text("ok")])).await;
    let thread = start(&mut client).await;
    let item = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Remember 42."}]});
    client.ok("thread/inject_items", json!({"threadId": thread, "items": [item]})).await;
    let path = client.ok("thread/read", json!({"threadId": thread})).await["thread"]["path"].clone();
    let rollout = std::fs::read_to_string(path.as_str().expect("a path")).expect("a file");
    assert!(rollout.contains("Remember 42."));
    let (code, why) = client.refused("thread/inject_items", json!({"threadId": thread, "items": [item, 5]})).await;
    assert!(code == -32600 && why.starts_with("Invalid request: item 1: "), "{why}");
    client.end_unread().await;
}
