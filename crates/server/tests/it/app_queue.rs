//! `thread/queue/*`: what clients see of the queue of a thread.

use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::{scripted, start};

fn text(text: &str) -> Value {
    json!({"items": [{"text": text}]})
}

fn hangs() -> Value {
    json!({"items": [{"text": "Working."}, {"hang": true}]})
}

fn entry(thread: &str, key: &str) -> Value {
    json!({"threadId": thread, "clientUserMessageId": key, "input": [{"type": "text", "text": key}]})
}

async fn add(client: &mut AppClient, thread: &str, key: &str) -> Value {
    let added = client.ok("thread/queue/add", entry(thread, key)).await;
    added["queuedSubmission"].clone()
}

async fn say(client: &mut AppClient, thread: &str, text: &str) -> Value {
    let input = json!([{"type": "text", "text": text}]);
    client.ok("turn/start", json!({"threadId": thread, "input": input})).await["turn"]["id"].clone()
}

/// The texts of the queue, and whether it is paused.
async fn list(client: &mut AppClient, thread: &str) -> (Vec<String>, bool) {
    let listed = client.ok("thread/queue/list", json!({"threadId": thread})).await;
    let texts = listed["data"].as_array().expect("entries").iter();
    let texts = texts.map(|entry| entry["input"][0]["text"].as_str().unwrap_or_default().to_owned()).collect();
    (texts, listed["isPaused"] == true)
}

#[tokio::test]
async fn a_queue_is_filled_paused_and_started_and_clients_agree() {
    let mut client = scripted("", &json!([hangs(), text("Two."), text("Three.")])).await;
    let thread = start(&mut client).await;
    let mut other = client.another().await;
    other.ok("thread/resume", json!({"threadId": thread})).await;
    let running = say(&mut client, &thread, "one").await;
    client.next_notification("item/agentMessage/delta").await;
    let first = add(&mut client, &thread, "two").await;
    assert_eq!((&first["clientUserMessageId"], &first["input"][0]["text"]), (&json!("two"), &json!("two")));
    assert_eq!(client.next_notification("thread/queue/changed").await, json!({"threadId": thread}));
    assert_eq!(other.next_notification("thread/queue/changed").await, json!({"threadId": thread}));
    let second = add(&mut other, &thread, "three").await;
    assert_eq!(add(&mut client, &thread, "three").await, second, "it is known");
    assert_eq!(list(&mut client, &thread).await, (vec!["two".to_owned(), "three".to_owned()], false));
    let page = client.ok("thread/queue/list", json!({"threadId": thread, "limit": 1})).await;
    assert_eq!((&page["data"], &page["nextCursor"]), (&json!([first]), &json!("1")));
    let ids = json!([second["id"], first["id"]]);
    client.ok("thread/queue/reorder", json!({"threadId": thread, "queuedSubmissionIds": ids})).await;
    let input = json!([{"type": "text", "text": "changed"}, {"type": "image", "url": "data:image/png;base64,AAAA"}]);
    let update = json!({"threadId": thread, "queuedSubmissionId": first["id"], "input": input});
    let updated = client.ok("thread/queue/update", update).await;
    assert_eq!(updated["queuedSubmission"]["input"][1]["type"], "image");
    let (code, message) = client.refused("thread/queue/start", json!({"threadId": thread})).await;
    assert_eq!((code, message.as_str()), (-32600, "a turn is running; the next entry starts when it is complete"));
    client.ok("turn/interrupt", json!({"threadId": thread, "turnId": running})).await;
    client.next_notification("turn/completed").await;
    assert_eq!(list(&mut other, &thread).await, (vec!["three".to_owned(), "changed".to_owned()], true));
    let started = client.ok("thread/queue/start", json!({"threadId": thread})).await;
    assert_eq!((&started["turn"]["id"], &started["turn"]["status"]), (&second["id"], &json!("inProgress")));
    let ended = client.next_notification("turn/completed").await;
    assert_eq!((&ended["turn"]["id"], &ended["turn"]["status"]), (&second["id"], &json!("completed")));
    let ended = client.next_notification("turn/completed").await;
    assert_eq!(ended["turn"]["id"], first["id"], "the next follows by itself");
    assert_eq!(list(&mut client, &thread).await, (Vec::new(), false));
    let read = client.ok("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    let item = &read["thread"]["turns"][2]["items"][0];
    assert_eq!((&item["clientId"], &item["content"][0]["text"]), (&json!("two"), &json!("changed")));
    other.end_unread().await;
    client.end_unread().await;
}

#[tokio::test]
async fn invalid_requests_about_a_queue_are_refused_with_a_reason() {
    let mut client = scripted("", &json!([hangs()])).await;
    let thread = start(&mut client).await;
    say(&mut client, &thread, "one").await;
    let kept = add(&mut client, &thread, "two").await;
    let with = |mut params: Value, member: &str, value: Value| {
        params[member] = value;
        params
    };
    let entry = || entry(&thread, "three");
    let named =
        |id: &Value| json!({"threadId": thread, "queuedSubmissionId": id, "input": [{"type": "text", "text": "x"}]});
    let order = |ids: Value| json!({"threadId": thread, "queuedSubmissionIds": ids});
    for (method, params, why) in [
        ("add", with(entry(), "input", json!([])), "input must not be empty"),
        ("add", with(entry(), "input", json!("text")), "invalid type"),
        ("add", with(entry(), "clientUserMessageId", json!("")), "clientUserMessageId has 0 bytes"),
        ("add", with(entry(), "clientUserMessageId", json!(null)), "invalid type"),
        ("update", named(&json!("nobody")), "queued submission not found: nobody"),
        ("update", with(named(&kept["id"]), "input", json!([])), "input must not be empty"),
        ("start", named(&json!("nobody")), "queued submission not found: nobody"),
        ("reorder", order(json!([])), "is missing"),
        ("reorder", order(json!([kept["id"], "nobody"])), "nobody is not an entry"),
        ("list", json!({"threadId": thread, "cursor": "x"}), "invalid cursor: x"),
        ("list", json!({"threadId": "01a1de41-111d-7e12-aa00-bf9eed2d536a"}), "thread not found"),
    ] {
        let (code, message) = client.refused(&format!("thread/queue/{method}"), params).await;
        assert!(code == -32600 && message.contains(why), "{method}: {code} {message}");
    }
    let delete = json!({"threadId": thread, "queuedSubmissionId": kept["id"]});
    assert_eq!(client.ok("thread/queue/delete", delete.clone()).await, json!({"deleted": true}));
    assert_eq!(client.ok("thread/queue/delete", delete).await, json!({"deleted": false}));
    client.end_unread().await;
}

#[tokio::test]
async fn a_queue_outlives_the_server_and_other_clients_see_ordinary_turns() {
    let mut client = scripted("", &json!([hangs()])).await;
    let thread = start(&mut client).await;
    say(&mut client, &thread, "one").await;
    client.next_notification("item/agentMessage/delta").await;
    add(&mut client, &thread, "two").await;
    std::fs::write(client.home("script.json"), json!([text("Two.")]).to_string()).expect("a script can be written");
    let mut client = client.start_again().await;
    client.ok("thread/resume", json!({"threadId": thread})).await;
    assert_eq!(list(&mut client, &thread).await, (vec!["two".to_owned()], true));
    let mut old = client.another().await;
    let listening = old.ok("addConversationListener", json!({"conversationId": thread})).await;
    assert!(listening["subscriptionId"].is_string());
    client.ok("thread/queue/start", json!({"threadId": thread})).await;
    client.next_notification("turn/completed").await;
    let told = old.messages_until("codex/event/task_complete").await;
    let said = told.iter().find(|message| message["method"] == "codex/event/user_message").expect("it is told");
    assert_eq!(said["params"]["msg"]["message"], "two");
    assert_eq!(list(&mut client, &thread).await, (Vec::new(), false));
    old.end_unread().await;
    client.end_unread().await;
}
