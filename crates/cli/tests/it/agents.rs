//! Child agents of `exec`, `proto` and the MCP server: their questions, and what they use.

use serde_json::{Value, json};

use crate::program::{Place, say};

const CONFIG: &str = "model_provider = 'scripted'\napproval_policy = 'untrusted'\n\
                      sandbox_mode = 'danger-full-access'\nfeatures.subagent_tools = true\n\
                      [model_providers.scripted]\nscript = 'answers.json'\n";

/// A place whose root starts an agent and waits for it. The agent runs a command that needs an approval.
fn place() -> Place {
    let script = json!([
        {"when": "id-await", "items": [{"text": "All done."}]},
        {"when": "id-spawn", "items": [{"call": "subagent_await", "id": "id-await", "args": {}}]},
        {"when": "id-touch", "items": [{"text": "Made it."}]},
        {"when": "Make a file", "items": [{"call": "shell", "id": "id-touch", "args": {"command": ["touch", "made"]}}]},
        {"items": [{"call": "subagent_spawn", "id": "id-spawn", "args": {"prompt": "Make a file"}}]},
    ]);
    Place::new().file("home/answers.json", &script.to_string()).file("home/config.toml", CONFIG)
}

const EXEC: [&str; 3] = ["exec", "--json", "--skip-git-repo-check"];

#[test]
fn exec_asks_the_questions_of_a_child() {
    let place = place();
    let mut codex = place.start(&[&EXEC[..], &["--approvals", "stdio", "Have a file made."]].concat());
    let asked: Value = serde_json::from_str(&codex.line_with("approval.requested")).expect("it is JSON");
    assert_eq!(asked["id"], "id-touch");
    let child = asked["thread_id"].as_str().expect("the child is named").to_owned();
    codex.send(&format!("{}\n", json!({"id": "id-touch", "thread_id": child, "decision": "approved"})));
    let run = codex.wait();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("All done.") && place.path("project/made").exists(), "{}", run.stdout);
}

#[test]
fn a_child_that_nobody_can_answer_is_denied() {
    let place = place();
    let asks = ["-c", "approval_policy=untrusted", "--approvals", "deny"];
    let run = place.run(&[&EXEC[..], &asks, &["Have a file made."]].concat(), "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("All done.") && !place.path("project/made").exists(), "{}", run.stdout);
}

#[test]
fn the_requests_of_a_child_count_against_the_limits() {
    let place = place();
    // The root needs three, and the child two.
    let limited = |most| place.run(&[&EXEC[..], &["--max-requests", most, "Have a file made."]].concat(), "").code;
    assert_eq!((limited("5"), limited("4")), (Some(0), Some(4)));
}

#[test]
fn proto_asks_the_questions_of_a_child() {
    let place = place();
    let mut codex = place.start(&["proto"]);
    codex.send(&say("1", "Have a file made."));
    let asked = codex.until("exec_approval_request");
    assert_eq!(asked["msg"]["call_id"], "id-touch");
    assert!(asked["session_id"].is_string(), "{asked}");
    codex.send("{\"id\":\"2\",\"op\":{\"type\":\"exec_approval\",\"id\":\"id-touch\",\"decision\":\"approved\"}}\n");
    codex.until("task_complete");
    assert!(place.path("project/made").exists());
    codex.send("{\"id\":\"3\",\"op\":{\"type\":\"shutdown\"}}\n");
    assert_eq!(codex.wait().code, Some(0));
}

#[test]
fn at_the_end_of_the_input_a_child_is_denied() {
    let place = place();
    let run = place.run(&["proto"], &say("1", "Have a file made."));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("All done.") && !place.path("project/made").exists(), "{}", run.stdout);
}

#[test]
fn the_mcp_server_asks_the_questions_of_a_child() {
    let place = place();
    let mut codex = place.start(&["mcp-server"]);
    let client = json!({"name": "tests", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": client});
    codex.send(&format!("{}\n", json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})));
    codex.line_with("serverInfo");
    codex.send(&format!("{}\n", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})));
    let arguments = json!({"prompt": "Have a file made.", "approval-policy": "untrusted"});
    let call = json!({"name": "codex", "arguments": arguments});
    codex.send(&format!("{}\n", json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})));
    let asked: Value = serde_json::from_str(&codex.line_with("elicitation/create")).expect("it is JSON");
    assert_eq!(asked["params"]["codex_call_id"], "id-touch");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"decision": "approved"}});
    codex.send(&format!("{answer}\n"));
    let result: Value = serde_json::from_str(&codex.line_with("\"id\":2")).expect("it is JSON");
    assert!(result.to_string().contains("All done."), "{result}");
    assert!(place.path("project/made").exists());
    codex.finish();
}
