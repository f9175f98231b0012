//! A session with messages of every kind, for a client of 0.77. [`crate::shapes`] checks the form of each message when
//! it is read; this test checks that every kind occurs.

use std::collections::BTreeSet;

use codex_dialects::ProtocolRelease;
use serde_json::{Value, json};

use crate::app_client::AppClient;

/// The methods that a client of 0.77 must have received at the end.
const SEEN: &[&str] = &[
    "account/rateLimits/updated",
    "codex/event/agent_message",
    "codex/event/agent_message_content_delta",
    "codex/event/agent_message_delta",
    "codex/event/agent_reasoning",
    "codex/event/apply_patch_approval_request",
    "codex/event/exec_approval_request",
    "codex/event/exec_command_begin",
    "codex/event/exec_command_end",
    "codex/event/exec_command_output_delta",
    "codex/event/item_completed",
    "codex/event/item_started",
    "codex/event/patch_apply_begin",
    "codex/event/patch_apply_end",
    "codex/event/plan_update",
    "codex/event/task_complete",
    "codex/event/task_started",
    "codex/event/token_count",
    "codex/event/turn_diff",
    "codex/event/user_message",
    "codex/event/view_image_tool_call",
    "error",
    "item/agentMessage/delta",
    "item/commandExecution/outputDelta",
    "item/commandExecution/requestApproval",
    "item/completed",
    "item/fileChange/requestApproval",
    "item/reasoning/summaryTextDelta",
    "item/started",
    "rawResponseItem/completed",
    "thread/started",
    "thread/tokenUsage/updated",
    "turn/completed",
    "turn/diff/updated",
    "turn/plan/updated",
    "turn/started",
];

fn call(tool: &str, args: Value) -> Value {
    json!({"items": [{"call": tool, "args": args}]})
}

fn script() -> Value {
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\n";
    let change = "*** Begin Patch\n*** Update File: new.txt\n@@\n-hello\n+bye\n*** Move to: old.txt\n*** End Patch\n";
    json!([
        {"items": [{"reasoning": ["**Thinking**\n\nhard"]}, {"text": "Let me see.", "deltas": ["Let me ", "see."]},
                   {"call": "shell", "args": {"command": ["sh", "-c", "echo ran; touch made; cat none"]}}]},
        call("update_plan", json!({"explanation": "so", "plan": [
            {"step": "a", "status": "completed"}, {"step": "b", "status": "in_progress"}, {"step": "c", "status": "pending"},
        ]})),
        call("apply_patch", json!({"input": patch})),
        call("apply_patch", json!({"input": change})),
        call("view_image", json!({"path": "picture.png"})),
        {"items": [{"text": "Done."}]},
        {"status": 400, "body": {"error": {"message": "no such thing"}}},
        {"items": [{"hang": true}]},
    ])
}

/// Reads to the end of a turn and approves everything.
async fn until_the_end(client: &mut AppClient, seen: &mut BTreeSet<String>) {
    loop {
        let message = client.next().await;
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        seen.insert(method.clone());
        if let (Some(id), false) = (message["id"].as_i64(), method.is_empty()) {
            client.respond(id, json!({"result": {"decision": "accept"}})).await;
        }
        if method == "turn/completed" {
            return;
        }
    }
}

#[tokio::test]
async fn a_client_of_0_77_can_read_a_session_with_everything_in_it() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("script.json");
    std::fs::write(&file, script().to_string()).expect("a file can be written");
    let config = format!(
        "approval_policy = 'untrusted'\nsandbox_mode = 'danger-full-access'\nmodel_provider = 'mine'\n\
         [model_providers.mine]\nname = 'Mine'\nwire_api = 'scripted'\nscript = '{}'\nrequest_max_retries = 0\n",
        file.display()
    );
    let mut client = AppClient::start_as(ProtocolRelease::V077, &config).await;
    // The smallest possible image.
    let picture = [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0"[..], &[0; 32]].concat();
    std::fs::write(client.work("picture.png"), picture).expect("a file can be written");
    let opened = client.ok("thread/start", json!({"experimentalRawEvents": true})).await;
    let thread = opened["thread"]["id"].as_str().expect("a name").to_owned();
    let mut seen = BTreeSet::new();
    for input in ["go", "fail"] {
        let input = json!([{"type": "text", "text": input}]);
        client.ask("turn/start", json!({"threadId": thread, "input": input})).await;
        until_the_end(&mut client, &mut seen).await;
    }
    let input = json!([{"type": "text", "text": "wait"}]);
    let turn = client.ok("turn/start", json!({"threadId": thread, "input": input})).await["turn"]["id"].clone();
    client.ask("turn/interrupt", json!({"threadId": thread, "turnId": turn})).await;
    until_the_end(&mut client, &mut seen).await;
    client.ok("thread/resume", json!({"threadId": thread})).await;
    client.ok("thread/list", json!({"modelProviders": []})).await;
    client.end_unread().await;
    let missing: Vec<&&str> = SEEN.iter().filter(|method| !seen.contains(**method)).collect();
    assert!(missing.is_empty(), "these were not sent: {missing:?}, but these were: {seen:?}");
}
