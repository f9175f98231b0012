//! Threads that another process has open: they can be read and forked, and resuming one waits until it is free.

use std::path::PathBuf;

use codex_store::RolloutFile;
use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::{scripted, start, turn};

/// A thread with one turn that this client has released, its file, and the process that has it open now.
async fn held() -> (AppClient, String, PathBuf, RolloutFile) {
    let mut client = scripted("", &json!([{"items": [{"text": "one"}], "repeat": true}])).await;
    let thread = start(&mut client).await;
    turn(&mut client, &thread, "first").await;
    client.ok("thread/unsubscribe", json!({"threadId": thread})).await;
    client.next_notification("thread/closed").await;
    let read = client.ok("thread/read", json!({"threadId": thread})).await;
    let path = PathBuf::from(read["thread"]["path"].as_str().expect("a path"));
    let other = RolloutFile::reopen_in(&client.home(""), path.clone()).expect("nobody else has it open");
    (client, thread, path, other)
}

fn turns(answer: &Value) -> usize {
    answer["thread"]["turns"].as_array().map_or(0, Vec::len)
}

#[tokio::test]
async fn a_thread_that_is_being_released_is_waited_for_while_others_are_served() {
    for method in ["thread/resume", "resumeConversation"] {
        let (mut client, thread, path, other) = held().await;
        let params = if method == "thread/resume" { json!({"threadId": thread}) } else { json!({"path": path}) };
        let resuming = client.ask(method, params).await;
        let listed = client.ok("thread/list", json!({})).await;
        assert_eq!(listed["data"][0]["id"], json!(thread));
        drop(other);
        client.answer(resuming).await.unwrap_or_else(|error| panic!("{method}: {error}"));
        client.end_unread().await;
    }
}

#[tokio::test]
async fn a_thread_that_stays_open_elsewhere_is_read_and_copied_and_not_resumed() {
    let (mut client, thread, _, other) = held().await;
    let read = client.ok("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    assert_eq!(turns(&read), 1);
    let copy = client.ok("thread/fork", json!({"threadId": thread})).await;
    assert_eq!((turns(&copy), &copy["thread"]["forkedFromId"]), (1, &json!(thread)));
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let (code, message) = client.refused("thread/resume", json!({"threadId": thread})).await;
    let waited = begun.elapsed().as_millis();
    let told = format!("This thread is open in this process. Close it, or run `codex fork {thread}`");
    assert_eq!((code, message), (-32600, told));
    assert!((2000..2500).contains(&waited), "{waited} ms");
    drop(other);
    client.end_unread().await;
}
