//! Questions that outlive the program that asked them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::{scripted, start};

const ASKS: &str = "approval_policy = 'untrusted'\nsandbox_mode = 'danger-full-access'";

fn text(text: &str) -> Value {
    json!({"items": [{"text": text}]})
}

fn command(call: &str, line: &str) -> Value {
    json!({"call": "shell", "id": call, "args": {"command": ["sh", "-c", line]}})
}

/// The file of a thread at the moment when it asks, as a crash would leave it, and the thread's id.
async fn crashed(script: &Value, questions: usize) -> (tempfile::TempDir, PathBuf, String) {
    let mut client = scripted(ASKS, script).await;
    let thread = start(&mut client).await;
    let input = json!([{"type": "text", "text": "go"}]);
    client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
    for _ in 0..questions {
        client.next_request("item/commandExecution/requestApproval").await;
    }
    let path = client.ok("thread/read", json!({"threadId": thread})).await["thread"]["path"].clone();
    let path = PathBuf::from(path.as_str().expect("a path"));
    let kept = tempfile::tempdir().expect("a folder can be made");
    let copy = kept.path().join(path.file_name().expect("a name"));
    std::fs::copy(&path, &copy).expect("a file can be copied");
    client.end_unread().await;
    (kept, copy, thread)
}

/// A client whose home contains that file.
async fn after(config: &str, script: &Value, rollout: &Path) -> AppClient {
    let client = scripted(config, script).await;
    let folder = client.home("sessions/2026/01/01");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    std::fs::copy(rollout, folder.join(rollout.file_name().expect("a name"))).expect("a file can be copied");
    client
}

#[tokio::test]
async fn a_question_is_asked_again_after_a_crash_and_the_turn_continues() {
    let asking = json!([{"items": [command("call-a", "echo ran > out")]}]);
    let (_kept, rollout, thread) = crashed(&asking, 1).await;
    let mut client = after(ASKS, &json!([text("Done.")]), &rollout).await;
    let work = client.work("");
    let resumed = client.ok("thread/resume", json!({"threadId": thread, "cwd": work})).await;
    assert_eq!(resumed["thread"]["status"], json!({"type": "active", "activeFlags": ["waitingOnApproval"]}));
    let turns = resumed["thread"]["turns"].as_array().expect("turns");
    assert_eq!((turns.len(), &turns[0]["status"]), (1, &json!("inProgress")));
    let (id, asked) = client.next_request("item/commandExecution/requestApproval").await;
    assert_eq!((&asked["itemId"], &asked["turnId"]), (&json!("call-a"), &turns[0]["id"]));
    client.respond(id, json!({"result": {"decision": "accept"}})).await;
    let completed = client.next_notification("turn/completed").await;
    assert_eq!((&completed["turn"]["id"], &completed["turn"]["status"]), (&turns[0]["id"], &json!("completed")));
    assert_eq!(std::fs::read_to_string(client.work("out")).ok().as_deref(), Some("ran\n"));
    let read = client.ok("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    let items = read["thread"]["turns"][0]["items"].as_array().expect("items");
    let kinds: Vec<&str> = items.iter().filter_map(|item| item["type"].as_str()).collect();
    assert_eq!(kinds, ["userMessage", "commandExecution", "agentMessage"], "one turn, and nothing twice");
    client.end_unread().await;
}

#[tokio::test]
async fn every_question_of_an_answer_is_asked_again_and_can_be_denied() {
    let both = json!([{"items": [command("call-a", "echo a > a"), command("call-b", "echo b > b")]}]);
    let (_kept, rollout, thread) = crashed(&both, 2).await;
    let mut client = after(ASKS, &json!([text("Done.")]), &rollout).await;
    let work = client.work("");
    client.ok("thread/resume", json!({"threadId": thread, "cwd": work})).await;
    for _ in 0..2 {
        let (id, _) = client.next_request("item/commandExecution/requestApproval").await;
        client.respond(id, json!({"result": {"decision": "decline"}})).await;
    }
    assert_eq!(client.next_notification("turn/completed").await["turn"]["status"], "completed");
    assert!(!client.work("a").exists() && !client.work("b").exists());
    client.end_unread().await;
}

#[tokio::test]
async fn a_looser_policy_does_not_answer_an_old_question() {
    let asking = json!([{"items": [command("call-a", "echo ran > out")]}]);
    let (_kept, rollout, thread) = crashed(&asking, 1).await;
    let mut client = after(ASKS, &json!([text("Done.")]), &rollout).await;
    let wish = json!({"threadId": thread, "cwd": client.work(""), "approvalPolicy": "never"});
    let resumed = client.ok("thread/resume", wish).await;
    assert_eq!(resumed["thread"]["status"], json!({"type": "idle"}));
    let input = json!([{"type": "text", "text": "and now?"}]);
    client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
    client.next_notification("turn/completed").await;
    assert!(!client.work("out").exists(), "what nobody has approved does not run");
    client.end_unread().await;
}

#[tokio::test]
async fn a_turn_that_was_revived_can_be_interrupted() {
    let asking = json!([{"items": [command("call-a", "echo ran > out")]}]);
    let (_kept, rollout, thread) = crashed(&asking, 1).await;
    let mut client = after(ASKS, &json!([text("Done.")]), &rollout).await;
    let resumed = client.ok("thread/resume", json!({"threadId": thread, "cwd": client.work("")})).await;
    let turn = resumed["thread"]["turns"][0]["id"].clone();
    client.next_request("item/commandExecution/requestApproval").await;
    client.ok("turn/interrupt", json!({"threadId": thread, "turnId": turn})).await;
    assert_eq!(client.next_notification("turn/completed").await["turn"]["status"], "interrupted");
    client.ok("turn/start", json!({"threadId": thread, "input": [{"type": "text", "text": "go on"}]})).await;
    assert_eq!(client.next_notification("turn/completed").await["turn"]["status"], "completed");
    client.end_unread().await;
}
