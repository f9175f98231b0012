//! Questions of child agents over the app-server: who may answer them, and what an answer allows.

use codex_dialects::ProtocolRelease;
use serde_json::{Value, json};

use crate::app_agents::{call, client, say};
use crate::app_client::AppClient;
use crate::app_threads::start;

const ASKS: &str =
    "approval_policy = 'untrusted'\nsandbox_mode = 'danger-full-access'\nfeatures.subagent_tools = true\n";

/// A root whose agent runs a command that needs an approval.
fn asking_child() -> Value {
    json!([
        {"when": "id-await", "items": [{"text": "All done."}]},
        {"when": "id-spawn", "items": [call("id-await", "subagent_await", json!({}))]},
        {"when": "id-touch", "items": [{"text": "Made it."}]},
        {"when": "Make a file", "items": [call("id-touch", "shell", json!({"command": ["touch", "made"]}))]},
        {"items": [call("id-spawn", "subagent_spawn", json!({"prompt": "Make a file"}))]},
    ])
}

/// Reads up to the end of a turn of this thread.
async fn until_end(client: &mut AppClient, thread: &str) {
    loop {
        let message = client.next().await;
        if message["method"] == "turn/completed" && message["params"]["threadId"] == thread {
            return;
        }
    }
}

#[tokio::test]
async fn any_client_of_the_root_may_answer_the_question_of_a_child() {
    let mut first = client(ProtocolRelease::V0166, ASKS, &asking_child()).await;
    let root = start(&mut first).await;
    let mut second = first.another().await;
    second.ok("thread/resume", json!({"threadId": root})).await;
    say(&mut first, &root, "Have a file made.").await;
    let method = "item/commandExecution/requestApproval";
    let (mine, asked) = first.next_request(method).await;
    let (id, asked_too) = second.next_request(method).await;
    assert_eq!((&asked["threadId"], &asked["itemId"]), (&asked_too["threadId"], &asked_too["itemId"]));
    assert_ne!(asked["threadId"], json!(root), "the child asks");
    second.respond(id, json!({"result": {"decision": "accept"}})).await;
    let resolved = first.next_notification("serverRequest/resolved").await;
    assert_eq!((&resolved["threadId"], &resolved["requestId"]), (&asked["threadId"], &json!(mine)));
    until_end(&mut first, &root).await;
    assert!(first.work("made").exists());
    second.end_unread().await;
    first.end_unread().await;
}

/// The three kinds of calls that a person may approve for the rest of a session.
fn calls(name: &str, outside: &std::path::Path) -> Value {
    let command = json!({"command": ["sh", "-c", "echo ran"], "sandbox_permissions": "require_escalated"});
    let patch = format!("*** Begin Patch\n*** Add File: made-{name}\n+made\n*** End Patch\n");
    let permissions = json!({"reason": "to build", "permissions": {"file_system": {"write": [outside]}}});
    json!([
        call(&format!("{name}-command"), "shell", command),
        {"custom": "apply_patch", "id": format!("{name}-patch"), "input": patch},
        call(&format!("{name}-permissions"), "request_permissions", permissions),
    ])
}

const QUESTIONS: [&str; 3] =
    ["item/commandExecution/requestApproval", "item/fileChange/requestApproval", "item/permissions/requestApproval"];

/// Answers everything for the session up to the end of the root's turn, and returns who has asked what.
async fn questions(client: &mut AppClient, root: &str) -> Vec<(String, String)> {
    let mut asked = Vec::new();
    loop {
        let message = client.next().await;
        let (params, method) = (&message["params"], message["method"].as_str().unwrap_or_default());
        if method == "turn/completed" && params["threadId"] == root {
            return asked;
        }
        let Some(id) = message["id"].as_i64().filter(|_| !method.is_empty()) else { continue };
        asked.push((params["threadId"].as_str().unwrap_or_default().to_owned(), method.to_owned()));
        let granted = json!({"permissions": params["permissions"], "scope": "session"});
        let decided = json!({"decision": "acceptForSession"});
        let answer = if method == QUESTIONS[2] { granted } else { decided };
        client.respond(id, json!({"result": answer})).await;
    }
}

/// Neither a new agent nor a copy of the root, which knows that the root was allowed to, may do it without a question.
#[tokio::test]
async fn what_a_person_allows_an_agent_its_children_have_to_ask_for() {
    let config = "approval_policy = 'on-request'\nsandbox_mode = 'read-only'\nfeatures.subagent_tools = true\n\
                  features.request_permissions_tool = true\n";
    let mut client = client(ProtocolRelease::V0166, config, &json!([])).await;
    let outside = client.work("outside");
    std::fs::create_dir_all(&outside).expect("a folder can be made");
    let wait = |id: &str, agent: u64| json!([call(id, "subagent_await", json!({"agent_ids": [agent]}))]);
    let script = json!([
        {"when": "id-joined", "items": [{"text": "All done."}]},
        {"when": ["role\\\":\\\"child", "copy-command"], "items": [{"text": "Made it."}]},
        {"when": "role\\\":\\\"child", "items": calls("copy", &outside)},
        {"when": "id-fork", "items": wait("id-joined", 2)},
        {"when": "id-await", "items": [call("id-fork", "subagent_fork", json!({"prompt": "Make another"}))]},
        {"when": "id-spawn", "items": wait("id-await", 1)},
        {"when": "root-again-command", "items": [call("id-spawn", "subagent_spawn", json!({"prompt": "Make a file"}))]},
        {"when": "root-command", "items": calls("root-again", &outside)},
        {"when": "child-command", "items": [{"text": "Made it."}]},
        {"when": "Make a file", "items": calls("child", &outside)},
        {"items": calls("root", &outside)},
    ]);
    std::fs::write(client.home("script.json"), script.to_string()).expect("a script can be written");
    let root = start(&mut client).await;
    say(&mut client, &root, "Have files made.").await;
    let asked = questions(&mut client, &root).await;
    let by_asker: Vec<Vec<&str>> =
        asked.chunk_by(|one, next| one.0 == next.0).map(|same| same.iter().map(|asked| &*asked.1).collect()).collect();
    assert_eq!(by_asker, [QUESTIONS; 3], "{asked:#?}");
    assert_eq!(asked[0].0, root);
    assert!(asked[3].0 != root && asked[6].0 != root && asked[3].0 != asked[6].0, "{asked:#?}");
    client.end_unread().await;
}
