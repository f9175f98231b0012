//! `approvalPolicy: {"granular": {…}}`: a switch for each kind of question.

use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::{lines, scripted};

const CONFIG: &str = "sandbox_mode = 'read-only'\nfeatures.request_permissions_tool = true\n";

fn policy(sandbox: bool, rules: bool, permissions: bool) -> Value {
    json!({"granular": {"sandbox_approval": sandbox, "rules": rules, "skill_approval": false,
        "request_permissions": permissions, "mcp_elicitations": true}})
}

/// A turn that leaves the sandbox, runs what a rule wants asked about, looks dangerous, writes where the sandbox does
/// not let it, and asks for permissions.
fn turn(outside: &std::path::Path) -> Vec<Value> {
    let leaves = json!({"command": ["sh", "-c", "echo ran"], "sandbox_permissions": "require_escalated"});
    let patch = "*** Begin Patch\n*** Add File: made\n+made\n*** End Patch\n";
    let permissions = json!({"reason": "to build", "permissions": {"file_system": {"write": [outside]}}});
    let calls = [
        json!({"call": "shell", "args": leaves}),
        json!({"call": "shell", "args": {"command": ["true", "ruled"]}}),
        json!({"call": "shell", "args": {"command": ["rm", "-rf", "gone"]}}),
        json!({"custom": "apply_patch", "input": patch}),
        json!({"call": "request_permissions", "args": permissions}),
        json!({"text": "Done."}),
    ];
    calls.into_iter().map(|call| json!({"items": [call]})).collect()
}

async fn prepared(turns: usize) -> AppClient {
    let client = scripted(CONFIG, &json!([])).await;
    let outside = client.work("outside");
    std::fs::create_dir_all(&outside).expect("a folder can be made");
    let script: Vec<Value> = (0..turns).flat_map(|_| turn(&outside)).collect();
    std::fs::write(client.home("script.json"), Value::from(script).to_string()).expect("a script can be written");
    std::fs::create_dir(client.home("rules")).expect("a folder can be made");
    let rule = "prefix_rule(pattern=[\"true\", \"ruled\"], decision=\"prompt\")\n";
    std::fs::write(client.home("rules/own.rules"), rule).expect("a file can be written");
    client
}

/// Runs a turn, and declines every question; returns what was asked about.
async fn run(client: &mut AppClient, thread: &str, policy: Option<&Value>) -> Vec<String> {
    let input = json!([{"type": "text", "text": "go"}]);
    client.ok("turn/start", json!({"threadId": thread, "input": input, "approvalPolicy": policy})).await;
    let mut asked = Vec::new();
    loop {
        let message = client.next().await;
        let Some(method) = message["method"].as_str() else { continue };
        if method == "turn/completed" {
            assert_eq!(message["params"]["turn"]["status"], "completed", "{message}");
            return asked;
        }
        let Some(id) = message["id"].as_i64() else { continue };
        let command = message["params"]["command"].as_str().map(str::to_owned);
        asked.push(command.unwrap_or_else(|| method.to_owned()));
        let is_permission = method == "item/permissions/requestApproval";
        let none = json!({"permissions": {}, "scope": "turn"});
        client.respond(id, json!({"result": if is_permission { none } else { json!({"decision": "decline"}) }})).await;
    }
}

/// The outputs that the model was given.
async fn outputs(client: &mut AppClient, thread: &str) -> Vec<String> {
    let lines = lines(client, thread).await.into_iter();
    lines.filter_map(|line| line["payload"]["output"].as_str().map(str::to_owned)).collect()
}

const COMMANDS: [&str; 4] = ["sh -c 'echo ran'", "true ruled", "rm -rf gone", "item/fileChange/requestApproval"];

#[tokio::test]
async fn each_switch_decides_whether_its_questions_are_asked() {
    let mut client = prepared(4).await;
    let started = client.ok("thread/start", json!({"approvalPolicy": policy(true, true, true)})).await;
    let thread = started["thread"]["id"].as_str().expect("a name").to_owned();
    let permissions = "item/permissions/requestApproval";
    assert_eq!(run(&mut client, &thread, None).await, [&COMMANDS[..], &[permissions]].concat());
    let without_rules = policy(true, false, true);
    let asked = run(&mut client, &thread, Some(&without_rules)).await;
    assert_eq!(asked, [COMMANDS[0], COMMANDS[2], COMMANDS[3], permissions]);
    assert_eq!(run(&mut client, &thread, Some(&policy(false, true, false))).await, [COMMANDS[1]]);
    let nothing = run(&mut client, &thread, Some(&policy(false, false, false))).await;
    assert_eq!(nothing, Vec::<String>::new());
    let last = outputs(&mut client, &thread).await.split_off(15);
    for (output, switch) in
        last.iter().zip(["sandbox_approval", "rules", "sandbox_approval", "sandbox_approval", "request_permissions"])
    {
        assert!(output.contains(&format!("`{switch}` is off in the approval policy")), "{switch}: {output}");
    }
    assert_eq!(last.len(), 5);
    client.end_unread().await;
}

#[tokio::test]
async fn a_granular_policy_is_told_as_it_was_given_and_survives_a_restart() {
    let mut client = scripted("", &json!([{"items": [{"text": "Done."}]}])).await;
    let given = json!({"granular": {"sandbox_approval": true, "rules": false, "mcp_elicitations": true}});
    let started = client.ok("thread/start", json!({"approvalPolicy": given})).await;
    assert_eq!(started["approvalPolicy"], policy(true, false, false));
    let thread = started["thread"]["id"].as_str().expect("a name").to_owned();
    assert_eq!(run(&mut client, &thread, None).await, Vec::<String>::new());
    let mut client = client.start_again().await;
    let resumed = client.ok("thread/resume", json!({"threadId": thread})).await;
    assert_eq!(resumed["approvalPolicy"], policy(true, false, false));
    let now = json!({"threadId": thread, "approvalPolicy": policy(true, true, true)});
    let forked = client.ok("thread/fork", now).await;
    assert_eq!(forked["approvalPolicy"], policy(true, true, true));
    client.end_unread().await;
}

#[tokio::test]
async fn a_granular_policy_of_the_file_counts_and_is_shown() {
    let table = "approval_policy = { granular = { sandbox_approval = false, rules = true, mcp_elicitations = true } }";
    let mut client = scripted(table, &json!([])).await;
    let expected = policy(false, true, false);
    assert_eq!(client.ok("thread/start", json!({})).await["approvalPolicy"], expected);
    let read = client.ok("config/read", json!({})).await;
    let shown = json!({"granular": {"sandbox_approval": false, "rules": true, "mcp_elicitations": true}});
    assert!(read["config"]["approval_policy"] == expected || read["config"]["approval_policy"] == shown, "{read}");
    let over = json!({"approval_policy": "never"});
    assert_eq!(client.ok("thread/start", json!({"config": over})).await["approvalPolicy"], "never");
    client.end_unread().await;
}

#[tokio::test]
async fn a_granular_policy_without_a_switch_that_it_needs_is_refused() {
    let mut client = scripted("", &json!([])).await;
    let wrong = json!({"approvalPolicy": {"granular": {"sandbox_approval": true, "mcp_elicitations": true}}});
    let (code, message) = client.refused("thread/start", wrong).await;
    assert_eq!(code, -32600);
    assert!(message.starts_with("Invalid request: missing field `rules`"), "{message}");
    client.end().await;
}
