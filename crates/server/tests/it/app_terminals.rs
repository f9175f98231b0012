//! `thread/backgroundTerminals/*`.

use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::{scripted, start, turn};

const TERMINALS: &str = "sandbox_mode = 'danger-full-access'\napproval_policy = 'never'\nfeatures.unified_exec = true";

/// A thread whose model has left two commands running.
async fn two_terminals() -> (AppClient, String) {
    let run = |command: &str| json!({"call": "exec_command", "args": {"cmd": command, "yield_time_ms": 250}});
    let script = json!([
        {"items": [run("echo one; exec sleep 600"), run("echo two; exec sleep 600")]},
        {"items": [{"text": "They run."}]},
        {"items": [{"text": "Still."}]},
    ]);
    let mut client = scripted(TERMINALS, &script).await;
    let thread = start(&mut client).await;
    turn(&mut client, &thread, "run them").await;
    (client, thread)
}

async fn list(client: &mut AppClient, thread: &str) -> Vec<Value> {
    let list = client.ok("thread/backgroundTerminals/list", json!({"threadId": thread})).await;
    list["data"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn terminals_are_listed_and_ended_one_by_one() {
    let (mut client, thread) = two_terminals().await;
    let open = list(&mut client, &thread).await;
    assert_eq!(open.len(), 2, "{open:?}");
    assert!(open[0]["command"].as_str().is_some_and(|command| command.contains("echo one")), "{open:?}");
    let first = json!({"threadId": thread, "processId": open[0]["processId"]});
    assert_eq!(client.ok("thread/backgroundTerminals/terminate", first.clone()).await, json!({"terminated": true}));
    let ended = loop {
        let ended = client.next_notification("item/completed").await;
        if ended["item"]["id"] == open[0]["itemId"] {
            break ended;
        }
    };
    assert_eq!((&ended["item"]["status"], &ended["item"]["exitCode"]), (&json!("failed"), &json!(137)));
    assert_eq!(client.ok("thread/backgroundTerminals/terminate", first).await, json!({"terminated": false}));
    let odd = json!({"threadId": thread, "processId": "odd"});
    assert_eq!(client.ok("thread/backgroundTerminals/terminate", odd).await, json!({"terminated": false}));
    assert_eq!(list(&mut client, &thread).await, open[1..]);
    client.end_unread().await;
}

#[tokio::test]
async fn terminals_are_ended_all_at_once_and_the_thread_goes_on() {
    let (mut client, thread) = two_terminals().await;
    let paged = client.ok("thread/backgroundTerminals/list", json!({"threadId": thread, "limit": 1})).await;
    assert_eq!((paged["data"].as_array().map(Vec::len), &paged["nextCursor"]), (Some(1), &json!("1")));
    client.ok("thread/backgroundTerminals/clean", json!({"threadId": thread})).await;
    assert_eq!(list(&mut client, &thread).await, Vec::<Value>::new());
    turn(&mut client, &thread, "and now?").await;
    client.end_unread().await;
}
