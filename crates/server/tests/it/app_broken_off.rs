//! Interrupted answers as clients see them.

use std::path::{Path, PathBuf};

use codex_log::draft::Drafts;
use codex_log::{AgentMessage, Body, Delta, Event, ItemId, Seq, TurnId};
use codex_wire::ids::ThreadId;
use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::{scripted, start};

/// A thread whose only turn was interrupted in the middle of an answer.
struct Interrupted {
    client: AppClient,
    thread: String,
    turn: String,
    path: PathBuf,
    /// The messages to the client, without deltas.
    told: Vec<String>,
}

async fn interrupted() -> Interrupted {
    let items = json!([{"text": "whole"}, {"text": "half", "done": false}, {"hang": true}]);
    let mut client = scripted("", &json!([{"items": items}])).await;
    let thread = start(&mut client).await;
    let input = json!([{"type": "text", "text": "go"}]);
    let answer = client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
    let turn = answer["turn"]["id"].as_str().expect("a name").to_owned();
    while client.next_notification("item/agentMessage/delta").await["delta"] != "half" {}
    client.ask("turn/interrupt", json!({"threadId": thread, "turnId": turn})).await;
    let told = client.names_until("turn/completed").await;
    let read = client.ok("thread/read", json!({"threadId": thread})).await;
    let path = read["thread"]["path"].as_str().expect("a path").into();
    Interrupted { client, thread, turn, path, told }
}

fn texts(items: &Value) -> Vec<&str> {
    let items = items.as_array().into_iter().flatten();
    items.filter(|item| item["type"] == "agentMessage").filter_map(|item| item["text"].as_str()).collect()
}

/// Checks that every way to read the thread shows the partial answer.
async fn check_shown(client: &mut AppClient, thread: &str) {
    let read = client.ok("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    let turn = &read["thread"]["turns"][0];
    assert_eq!((texts(&turn["items"]), &turn["status"]), (vec!["whole", "half"], &json!("interrupted")));
    let listed = client.ok("thread/turns/list", json!({"threadId": thread, "itemsView": "full"})).await;
    assert_eq!(texts(&listed["data"][0]["items"]), ["whole", "half"], "{listed}");
    let items = client.ok("thread/items/list", json!({"threadId": thread})).await;
    let items: Value = items["data"].as_array().into_iter().flatten().map(|entry| entry["item"].clone()).collect();
    assert_eq!(texts(&items), ["whole", "half"]);
}

#[tokio::test]
async fn an_interrupted_answer_is_in_the_history_and_not_notified() {
    let Interrupted { mut client, thread, told, .. } = interrupted().await;
    let count = |wanted: &str| told.iter().filter(|name| *name == wanted).count();
    assert_eq!((count("item/started"), count("item/completed")), (3, 2), "{told:?}");
    check_shown(&mut client, &thread).await;
    let mut client = client.start_again().await;
    check_shown(&mut client, &thread).await;
    let resumed = client.ok("thread/resume", json!({"threadId": thread})).await;
    assert_eq!(texts(&resumed["thread"]["turns"][0]["items"]), ["whole", "half"]);
    client.end_unread().await;
}

/// The draft file next to the rollout of a thread.
fn beside(path: &Path) -> PathBuf {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
    path.with_file_name(format!("rollout-{}.partial", stem.rsplit('-').next().expect("an id has parts")))
}

/// Leaves a thread as it was when its answer broke off: without the later lines, and with the draft file.
fn kill(path: &Path, turn: &str) {
    let text = std::fs::read_to_string(path).expect("it can be read");
    let end = text.find("\"item_interrupted\"").and_then(|place| text[..place].rfind('\n')).expect("it broke off") + 1;
    std::fs::write(path, &text[..end]).expect("it can be written");
    let (mut drafts, mut lines) = (Drafts::default(), Vec::new());
    let item = ItemId::new("half");
    let begun = Body::ItemStarted(AgentMessage::empty(item.clone()).into());
    for body in [begun, Body::ItemDelta { item, delta: Delta::Text("half".into()) }] {
        let turn = Some(TurnId::new(turn));
        let event = Event { thread: ThreadId::unknown(), seq: Seq::default(), at_ms: 0, turn, body };
        drafts.take(&event, end as u64);
    }
    drafts.write(&mut lines);
    std::fs::write(beside(path), lines).expect("it can be written");
}

#[tokio::test]
async fn an_answer_that_was_cut_off_by_a_crash_is_shown_before_and_after_the_thread_continues() {
    let Interrupted { client, thread, turn, path, .. } = interrupted().await;
    let mut client = client.start_again_after(|| kill(&path, &turn)).await;
    check_shown(&mut client, &thread).await;
    let beside = beside(&path);
    assert!(beside.exists(), "to read a thread changes nothing");
    let resumed = client.ok("thread/resume", json!({"threadId": thread})).await;
    assert_eq!(texts(&resumed["thread"]["turns"][0]["items"]), ["whole", "half"]);
    assert!(!beside.exists());
    check_shown(&mut client, &thread).await;
    client.end_unread().await;
}

#[tokio::test]
async fn a_client_that_reconnects_receives_the_partial_answer() {
    let items = json!([{"text": "whole"}, {"text": "half", "done": false}, {"hang": true}]);
    let mut client = scripted("", &json!([{"items": items}])).await;
    let thread = start(&mut client).await;
    let subscribed = client.ok("thread/subscribe", json!({"threadId": thread})).await;
    let input = json!([{"type": "text", "text": "go"}]);
    client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
    while client.next_notification("item/agentMessage/delta").await["delta"] != "half" {}
    let mut client = client.start_again().await;
    let after = json!({"threadId": thread, "after": subscribed["seq"], "logId": subscribed["logId"]});
    assert_eq!(client.ok("thread/subscribe", after).await["reset"], false);
    let told = client.messages_until("thread/caughtUp").await;
    let of_answers = |method: &str| -> Vec<String> {
        let items = told.iter().filter(|message| message["method"] == method).map(|told| &told["params"]["item"]);
        let texts = items.filter(|item| item["type"] == "agentMessage").filter_map(|item| item["text"].as_str());
        texts.map(str::to_owned).collect()
    };
    assert_eq!(of_answers("item/started"), ["", "half"]);
    assert_eq!(of_answers("item/completed"), ["whole"]);
    client.end_unread().await;
}
