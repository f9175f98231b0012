//! Approvals for the session: a command, a folder and permissions. They belong to the loaded thread, so they outlive
//! connections, and end with the server.

use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::{scripted, start};

const CONFIG: &str =
    "approval_policy = 'on-request'\nsandbox_mode = 'read-only'\nfeatures.request_permissions_tool = true\n";
const QUESTIONS: [&str; 3] =
    ["item/commandExecution/requestApproval", "item/fileChange/requestApproval", "item/permissions/requestApproval"];

/// A turn that runs a command outside of the sandbox, changes a file, and asks for permissions.
fn turn(number: usize, outside: &std::path::Path) -> Vec<Value> {
    let command = json!({"command": ["sh", "-c", "echo ran"], "sandbox_permissions": "require_escalated"});
    let patch = format!("*** Begin Patch\n*** Add File: made-{number}\n+made\n*** End Patch\n");
    let permissions = json!({"file_system": {"write": [outside]}});
    let calls = [
        json!({"call": "shell", "args": command}),
        json!({"custom": "apply_patch", "input": patch}),
        json!({"call": "request_permissions", "args": {"reason": "to build", "permissions": permissions}}),
        json!({"text": "Done."}),
    ];
    calls.into_iter().map(|call| json!({"items": [call]})).collect()
}

/// Runs a turn, and answers each question for the session; returns the questions.
async fn run(client: &mut AppClient, thread: &str) -> Vec<String> {
    let input = json!([{"type": "text", "text": "go"}]);
    client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
    let mut asked = Vec::new();
    loop {
        let message = client.next().await;
        let Some(method) = message["method"].as_str() else { continue };
        if method == "turn/completed" {
            assert_eq!(message["params"]["turn"]["status"], "completed", "{message}");
            return asked;
        }
        let Some(id) = message["id"].as_i64() else { continue };
        asked.push(method.to_owned());
        let granted = json!({"permissions": message["params"]["permissions"], "scope": "session"});
        let decided = json!({"decision": "acceptForSession"});
        let is_permission = method == "item/permissions/requestApproval";
        client.respond(id, json!({"result": if is_permission { granted } else { decided }})).await;
    }
}

#[tokio::test]
async fn approvals_for_the_session_outlive_a_connection_and_end_with_the_server() {
    let holder = scripted(CONFIG, &json!([])).await;
    let outside = holder.work("outside");
    std::fs::create_dir_all(&outside).expect("a folder can be made");
    let script: Vec<Value> = (0..4).flat_map(|number| turn(number, &outside)).collect();
    std::fs::write(holder.home("script.json"), Value::from(script).to_string()).expect("a script can be written");

    let mut client = holder.another().await;
    let thread = start(&mut client).await;
    assert_eq!(run(&mut client, &thread).await, QUESTIONS, "each is asked once");
    client.end_unread().await;

    let mut client = holder.another().await;
    client.ok("thread/resume", json!({"threadId": thread})).await;
    assert_eq!(run(&mut client, &thread).await, [""; 0], "the thread is still loaded");
    client.end_unread().await;

    let mut client = holder.start_again().await;
    client.ok("thread/resume", json!({"threadId": thread})).await;
    assert_eq!(run(&mut client, &thread).await, QUESTIONS, "nothing is taken from the file");
    client.end_unread().await;
}
