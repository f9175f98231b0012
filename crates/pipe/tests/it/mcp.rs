//! `codex mcp-server` as an MCP client sees it.

use serde_json::{Value, json};

use crate::mcp_client::{ASKS, McpClient, Place, command, text};

fn kinds(client: &McpClient) -> Vec<&str> {
    client.events().iter().map(|event| event["msg"]["type"].as_str().expect("an event has a type")).collect()
}

#[tokio::test]
async fn a_call_sends_its_events_and_answers_with_the_last_message() {
    let mut client = McpClient::start("", &json!([text("Hi there.")])).await;
    let id = client.call("codex", json!({"prompt": "hi"})).await;
    let answer = client.answer(id).await;
    let events = client.events();
    let thread = events[0]["msg"]["session_id"].clone();
    assert!(thread.is_string(), "the first event names the thread: {}", events[0]);
    for event in &events {
        assert_eq!(event["_meta"], json!({"requestId": id, "threadId": thread}));
    }
    let started = events.iter().find(|event| event["msg"]["type"] == "task_started").expect("the turn starts");
    assert_eq!(started["id"], id.to_string(), "the first turn is named by its request");
    let kinds = kinds(&client);
    for kind in ["raw_response_item", "item_started", "agent_message_delta", "agent_message"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    assert_eq!((kinds.first(), kinds.last()), (Some(&"session_configured"), Some(&"task_complete")));
    let expected = json!({
        "content": [{"type": "text", "text": "Hi there."}],
        "structuredContent": {"threadId": thread, "conversationId": thread, "content": "Hi there."},
    });
    assert_eq!(answer["result"], expected);
    client.end().await;
}

#[tokio::test]
async fn the_arguments_of_a_call_set_its_thread_up() {
    let mut client = McpClient::start(ASKS, &json!([text("Hi.")])).await;
    std::fs::create_dir(client.place.work("sub")).expect("a folder can be made");
    let arguments = json!({
        "prompt": "hi", "cwd": "sub", "model": "m2", "approval-policy": "never", "sandbox": "read-only",
        "developer-instructions": "Be a fern.", "config": {"model_reasoning_effort": "low"},
    });
    client.result("codex", arguments).await;
    let configured = client.event("session_configured").await["msg"].clone();
    assert_eq!((&configured["model"], &configured["approval_policy"]), (&json!("m2"), &json!("never")));
    assert_eq!(configured["sandbox_policy"], json!({"type": "read-only"}));
    assert_eq!(
        (&configured["cwd"], &configured["reasoning_effort"]),
        (&json!(client.place.work("sub")), &json!("low"))
    );
    let file = configured["rollout_path"].as_str().expect("a thread has a file");
    assert!(std::fs::read_to_string(file).expect("it can be read").contains("Be a fern."));
    client.end().await;
}

#[tokio::test]
async fn a_reply_continues_a_thread_even_after_a_restart() {
    let script = json!([text("One."), text("Two."), text("Three.")]);
    let mut client = McpClient::start("", &script).await;
    let first = client.result("codex", json!({"prompt": "a"})).await;
    let thread = first["structuredContent"]["threadId"].clone();
    let second = client.result("codex-reply", json!({"threadId": thread, "prompt": "b"})).await;
    assert_eq!(second["structuredContent"]["content"], "Two.");
    let place = client.end().await.again();
    let mut client = McpClient::connect(place);
    client.initialize(json!({})).await;
    let third = client.result("codex-reply", json!({"conversationId": thread, "prompt": "c"})).await;
    assert_eq!(third["structuredContent"]["threadId"], thread);
    assert_eq!(third.get("isError"), None, "{third}");
    client.end().await;
}

#[tokio::test]
async fn invalid_calls_are_results_with_an_error() {
    let mut client = McpClient::start("", &json!([])).await;
    let unknown = "00000000-0000-7000-8000-000000000000";
    for (tool, arguments, why) in [
        ("codex", json!({"cwd": "x"}), "missing field `prompt`"),
        ("codex", json!({"prompt": "x", "cwd": "nowhere"}), "does not exist"),
        ("codex", json!({"prompt": "x", "sandbox": "none"}), "sandbox_mode"),
        ("codex-reply", json!({"threadId": unknown, "prompt": "x"}), "Session not found"),
        ("codex-reply", json!({"prompt": "x"}), "missing field `threadId`"),
        ("nosuch", json!({}), "Unknown tool 'nosuch'"),
    ] {
        let result = client.result(tool, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        let said = result["content"][0]["text"].as_str().expect("there is a text");
        assert!(said.contains(why), "{why} in {said}");
    }
    client.end().await;
}

#[tokio::test]
async fn a_failed_turn_is_an_error_with_its_text() {
    let mut client =
        McpClient::start("", &json!([{"status": 400, "body": {"error": {"message": "bad thing"}}}, text("Fine.")]))
            .await;
    let failed = client.result("codex", json!({"prompt": "a"})).await;
    let said = failed["content"][0]["text"].as_str().expect("there is a text");
    assert!(failed["isError"] == true && said.contains("bad thing"), "{failed}");
    // The next call is not answered by anything that the failed one left behind.
    let thread = &failed["structuredContent"]["threadId"];
    let next = client.result("codex-reply", json!({"threadId": thread, "prompt": "b"})).await;
    assert_eq!(next["content"][0]["text"], "Fine.");
    client.end().await;
}

#[tokio::test]
async fn a_command_is_asked_about_in_both_forms() {
    for (answer, runs) in [
        (json!({"decision": "approved"}), true),
        (json!({"action": "accept", "content": {}}), true),
        (json!({"decision": "denied"}), false),
        (json!({"action": "decline"}), false),
        (json!({"action": "perhaps"}), false),
    ] {
        let mut client = McpClient::start(ASKS, &json!([command("touch out"), text("Done.")])).await;
        let id = client.call("codex", json!({"prompt": "a"})).await;
        let asked = client.next("elicitation/create").await;
        let mut params = asked["params"].clone();
        let thread = params["_meta"]["threadId"].take();
        let work = client.place.work("");
        let work = work.to_str().expect("it is UTF-8").trim_end_matches('/');
        let expected = json!({
            "_meta": {"threadId": null}, "message": format!("Allow Codex to run `sh -c 'touch out'` in `{work}`?"),
            "requestedSchema": {"type": "object", "properties": {}}, "codex_elicitation": "exec-approval",
            "codex_mcp_tool_call_id": id.to_string(), "codex_event_id": id.to_string(), "codex_call_id": "call-1-1",
            "codex_command": ["sh", "-c", "touch out"], "codex_cwd": work,
            "codex_parsed_cmd": [{"type": "unknown", "cmd": "touch out"}],
        });
        assert_eq!(params, expected);
        client.respond(&asked, answer.clone()).await;
        let result = client.answer(id).await["result"].clone();
        assert_eq!(
            result["structuredContent"],
            json!({"threadId": thread, "conversationId": thread, "content": "Done."})
        );
        assert_eq!(client.place.work("out").exists(), runs, "{answer}");
        client.end().await;
    }
}

#[tokio::test]
async fn a_cancelled_elicitation_ends_the_turn() {
    let mut client = McpClient::start(ASKS, &json!([command("touch out"), text("Done.")])).await;
    let id = client.call("codex", json!({"prompt": "a"})).await;
    let asked = client.next("elicitation/create").await;
    client.respond(&asked, json!({"action": "cancel"})).await;
    let result = client.answer(id).await["result"].clone();
    assert_eq!((&result["isError"], &result["content"][0]["text"]), (&json!(true), &json!("The turn was interrupted")));
    assert!(!client.place.work("out").exists());
    client.end().await;
}

#[tokio::test]
async fn a_patch_is_asked_about_with_its_changes() {
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch";
    let script = json!([{"items": [{"custom": "apply_patch", "input": patch}]}, text("Done.")]);
    let mut client = McpClient::start("approval_policy = 'untrusted'\nsandbox_mode = 'workspace-write'", &script).await;
    let id = client.call("codex", json!({"prompt": "a"})).await;
    let asked = client.next("elicitation/create").await;
    let file = client.place.work("new.txt");
    assert_eq!(asked["params"]["codex_elicitation"], "patch-approval");
    let changes = json!({file.to_str().expect("it is UTF-8"): {"type": "add", "content": "hello\n"}});
    assert_eq!(asked["params"]["codex_changes"], changes);
    client.respond(&asked, json!({"decision": "approved"})).await;
    client.answer(id).await;
    assert_eq!(std::fs::read_to_string(file).expect("it was written"), "hello\n");
    client.end().await;
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_not_waited_for() {
    let mut client = McpClient::connect(Place::new(ASKS, &json!([command("touch out"), text("As you wish.")])));
    client.initialize(json!({})).await;
    let result = client.result("codex", json!({"prompt": "a"})).await;
    assert_eq!(result["content"][0]["text"], "As you wish.");
    assert!(!client.place.work("out").exists());
    client.end().await;
}

#[tokio::test]
async fn a_question_of_a_client_that_leaves_is_answered_with_a_no() {
    let mut client = McpClient::start(ASKS, &json!([command("touch out"), text("Done.")])).await;
    let id = client.call("codex", json!({"prompt": "a"})).await;
    client.next("elicitation/create").await;
    client.close_input();
    assert_eq!(client.answer(id).await["result"]["content"][0]["text"], "Done.");
    assert!(!client.place.work("out").exists());
    client.end().await;
}

#[tokio::test]
async fn a_cancelled_call_is_interrupted_and_not_answered() {
    let script = json!([{"items": [{"text": "Begun.", "deltas": ["Begun."]}, {"hang": true}]}, text("Next.")]);
    let mut client = McpClient::start("", &script).await;
    let id = client.call("codex", json!({"prompt": "a"})).await;
    let thread = client.event("session_configured").await["msg"]["session_id"].clone();
    client.event("agent_message_delta").await;
    client.notify("notifications/cancelled", json!({"requestId": id, "reason": "stop"})).await;
    assert_eq!(client.event("turn_aborted").await["msg"]["reason"], "interrupted");
    let next = client.result("codex-reply", json!({"threadId": thread, "prompt": "b"})).await;
    assert_eq!(next["content"][0]["text"], "Next.");
    client.end().await;
}

#[tokio::test]
async fn calls_run_at_once_and_each_has_its_events() {
    let script = json!([{"items": [{"hang": true}]}]);
    let mut client = McpClient::start("", &script).await;
    let mut calls = Vec::new();
    for _ in 0..3 {
        calls.push(client.call("codex", json!({"prompt": "a"})).await);
    }
    let mut started = Vec::new();
    for _ in &calls {
        started.push(client.event("task_started").await["_meta"]["requestId"].clone());
    }
    started.sort_by_key(Value::as_i64);
    assert_eq!(started, calls.iter().map(|id| json!(id)).collect::<Vec<_>>());
    for id in calls {
        client.notify("notifications/cancelled", json!({"requestId": id})).await;
        client.event("turn_aborted").await;
    }
    client.end().await;
}

#[tokio::test]
async fn a_call_too_many_is_refused_until_another_ends() {
    let mut client = McpClient::start("", &json!([{"items": [{"hang": true}]}])).await;
    let mut calls = Vec::new();
    for _ in 0..64 {
        calls.push(client.call("codex", json!({"prompt": "a"})).await);
    }
    let refused = client.result("codex", json!({"prompt": "a"})).await;
    let said = refused["content"][0]["text"].as_str().expect("there is a text");
    assert!(refused["isError"] == true && said.starts_with("64 calls are running"), "{refused}");
    for id in calls {
        client.notify("notifications/cancelled", json!({"requestId": id})).await;
    }
    client.end().await;
}

#[tokio::test]
async fn progress_is_sent_on_request() {
    let mut client = McpClient::start(
        "sandbox_mode = 'danger-full-access'\napproval_policy = 'never'",
        &json!([command("true"), text("Done.")]),
    )
    .await;
    let params = json!({"name": "codex", "arguments": {"prompt": "a"}, "_meta": {"progressToken": "t"}});
    let id = client.request("tools/call", params).await;
    for (number, message) in [(1, "Started"), (2, "Running sh -c true"), (3, "Done.")] {
        let told = client.next("notifications/progress").await["params"].clone();
        assert_eq!(told, json!({"progressToken": "t", "progress": number, "message": message}));
    }
    client.answer(id).await;
    client.end().await;
}

#[tokio::test]
async fn the_protocol_is_served_without_a_thread() {
    let mut client = McpClient::connect(Place::new("", &json!([])));
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
    client.initialize(json!({})).await;
    let again = client.ask("initialize", json!({"protocolVersion": "2025-06-18"})).await;
    assert_eq!(again["error"]["code"], -32600);
    assert_eq!(client.ask("resources/list", json!({})).await["error"]["code"], -32601);
    assert_eq!(client.ask("tools/call", json!({})).await["error"]["code"], -32602);
    let tools = client.ask("tools/list", json!({})).await["result"]["tools"].clone();
    let required: Vec<_> =
        tools.as_array().expect("a list").iter().map(|tool| &tool["inputSchema"]["required"]).collect();
    assert_eq!(required, [&json!(["prompt"]), &json!(["conversationId", "prompt"])]);
    client.send("no json").await;
    assert_eq!(client.null_answer().await["error"]["code"], -32700);
    client.send("").await;
    client.notify("notifications/unknown", json!({})).await;
    client.end().await;
}

#[tokio::test]
async fn an_unknown_version_is_answered_with_the_latest() {
    for (asked, answered) in [("2024-11-05", "2024-11-05"), ("2025-11-25", "2025-11-25"), ("1999-01-01", "2025-11-25")]
    {
        let mut client = McpClient::connect(Place::new("", &json!([])));
        let answer = client.ask("initialize", json!({"protocolVersion": asked, "capabilities": {}})).await;
        assert_eq!(answer["result"]["protocolVersion"], answered);
        client.end().await;
    }
}
