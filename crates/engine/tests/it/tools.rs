//! Tool calls of the model.

use std::sync::Arc;

use codex_log::{Body, Event};
use expect_test::{Expect, expect};

use crate::world::{World, check, start};

/// Plays an answer with these items, then one that ends the turn, and shows the calls, plans and outputs.
async fn check_calls(items: &str, expected: Expect) {
    let mut client = start(&format!(r#"[{{"items": [{items}]}}, {{"items": [{{"text": "done"}}]}}]"#)).await;
    let events = client.turn("1", "hi").await;
    let telling = |event: &Arc<Event>| match &event.body {
        Body::PlanUpdated(_) | Body::TurnEnded(_) | Body::ModelAsked(_) => true,
        Body::Recorded(record) => record.item().is_some_and(|item| item.kind() != "message"),
        _ => false,
    };
    let events: Vec<_> = events.into_iter().filter(telling).collect();
    check(&events, expected);
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_published_and_acknowledged() {
    let plan = r#"{"plan": [{"step": "Look", "status": "completed"}, {"step": "Act", "status": "pending"}]}"#;
    check_calls(
        &format!(r#"{{"call": "update_plan", "args": {plan}}}"#),
        expect![[r#"
            1 asked gpt-5.1-codex
            1 recorded call call-1-1 update_plan
            1 plan ["Look", "Act"]
            1 recorded output call-1-1 "Plan updated"
            1 asked gpt-5.1-codex
            1 ended Completed { last_message: Some("done"), bookmark: None }
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_is_reported_to_the_model() {
    check_calls(
        r#"{"call": "fly", "args": {"to": "Rome"}}"#,
        expect![[r#"
            1 asked gpt-5.1-codex
            1 recorded call call-1-1 fly
            1 recorded output call-1-1 "unsupported call: fly"
            1 asked gpt-5.1-codex
            1 ended Completed { last_message: Some("done"), bookmark: None }
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn broken_arguments_are_reported_to_the_model() {
    check_calls(
        r#"{"call": "update_plan", "args": "{\"plan\": ["}"#,
        expect![[r#"
            1 asked gpt-5.1-codex
            1 recorded call call-1-1 update_plan
            1 recorded output call-1-1 "failed to parse function arguments: EOF while parsing a list at line 1 column 10"
            1 asked gpt-5.1-codex
            1 ended Completed { last_message: Some("done"), bookmark: None }
        "#]],
    )
    .await;
    check_calls(r#"{"call": "update_plan", "args": {"plan": [{"step": "Look", "status": "soon"}]}}"#, expect![[r#"
        1 asked gpt-5.1-codex
        1 recorded call call-1-1 update_plan
        1 recorded output call-1-1 "failed to parse function arguments: unknown value `soon`, expected one of pending, in_progress, completed at line 1 column 44"
        1 asked gpt-5.1-codex
        1 ended Completed { last_message: Some("done"), bookmark: None }
    "#]])
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_that_takes_text_gets_an_output_too() {
    check_calls(
        r#"{"custom": "odd", "input": "*** Begin"}"#,
        expect![[r#"
            1 asked gpt-5.1-codex
            1 recorded custom call call-1-1 odd
            1 recorded custom output call-1-1 "unsupported custom tool call: odd"
            1 asked gpt-5.1-codex
            1 ended Completed { last_message: Some("done"), bookmark: None }
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn unusable_tool_input_is_reported_to_the_model() {
    let items = r#"{"custom": "apply_patch", "input": "not a patch"}, {"call": "apply_patch", "args": {"patch": "x"}},
                   {"custom": "shell", "input": "ls"}, {"call": "view_image", "args": {}},
                   {"call": "write_stdin", "args": {"session_id": "x"}}, {"call": "exec_command", "args": {}}"#;
    check_calls(items, expect![[r#"
        1 asked gpt-5.1-codex
        1 recorded custom call call-1-1 apply_patch
        1 recorded call call-1-2 apply_patch
        1 recorded custom call call-1-3 shell
        1 recorded call call-1-4 view_image
        1 recorded call call-1-5 write_stdin
        1 recorded call call-1-6 exec_command
        1 recorded custom output call-1-1 "apply_patch verification failed: invalid patch: The first line of the patch must be '*** Begin Patch'"
        1 recorded output call-1-2 "failed to parse function arguments: missing field `input` at line 1 column 14"
        1 recorded custom output call-1-3 "this tool takes JSON"
        1 recorded output call-1-4 "failed to parse function arguments: missing field `path` at line 1 column 2"
        1 recorded output call-1-5 "failed to parse function arguments: invalid type: string \"x\", expected u64 at line 1 column 18"
        1 recorded output call-1-6 "failed to parse function arguments: missing field `cmd` at line 1 column 2"
        1 asked gpt-5.1-codex
        1 ended Completed { last_message: Some("done"), bookmark: None }
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_of_the_built_in_shell_that_cannot_run_is_reported_to_the_model() {
    check_calls(
        r#"{"local_shell": []}"#,
        expect![[r#"
        1 asked gpt-5.1-codex
        1 recorded local_shell_call
        1 recorded output call-1-1 "the command is empty"
        1 asked gpt-5.1-codex
        1 ended Completed { last_message: Some("done"), bookmark: None }
    "#]],
    )
    .await;
    check_calls(
        r#"{"local_shell": [""]}"#,
        expect![[r#"
        1 asked gpt-5.1-codex
        1 recorded local_shell_call
        1 recorded output call-1-1 "the command is empty"
        1 asked gpt-5.1-codex
        1 ended Completed { last_message: Some("done"), bookmark: None }
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_read_is_mended_and_answered() {
    let done = |item: &str| format!(r#"{{"event": {{"type": "response.output_item.done", "item": {item}}}}}"#);
    let items = [
        r#"{"type": "local_shell_call", "call_id": "a", "status": "completed", "action": {"type": "fly", "command": ["ls"]}}"#,
        r#"{"type": "function_call", "call_id": "b", "name": "update_plan", "arguments": {"plan": []}}"#,
        r#"{"type": "function_call", "call_id": "c", "name": "shell"}"#,
        r#"{"type": "function_call", "call_id": "d", "arguments": "{}"}"#,
        r#"{"type": "custom_tool_call", "call_id": "e", "name": "apply_patch"}"#,
    ];
    check_calls(
        &items.map(done).join(","),
        expect![[r#"
            1 asked gpt-5.1-codex
            1 recorded call a local_shell_call
            1 recorded call b update_plan
            1 recorded call c shell
            1 recorded call d unnamed
            1 recorded custom call e apply_patch
            1 recorded output a "unsupported call: local_shell_call"
            1 plan []
            1 recorded output b "Plan updated"
            1 recorded output c "failed to parse function arguments: EOF while parsing a value at line 1 column 0"
            1 recorded output d "unsupported call: unnamed"
            1 recorded custom output e "apply_patch verification failed: invalid patch: The first line of the patch must be '*** Begin Patch'"
            1 asked gpt-5.1-codex
            1 ended Completed { last_message: Some("done"), bookmark: None }
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn every_call_of_an_answer_gets_its_output_in_order() {
    let items = r#"{"call": "one"}, {"call": "update_plan", "args": {"plan": []}}, {"custom": "three", "input": ""}"#;
    check_calls(
        items,
        expect![[r#"
            1 asked gpt-5.1-codex
            1 recorded call call-1-1 one
            1 recorded call call-1-2 update_plan
            1 recorded custom call call-1-3 three
            1 recorded output call-1-1 "unsupported call: one"
            1 plan []
            1 recorded output call-1-2 "Plan updated"
            1 recorded custom output call-1-3 "unsupported custom tool call: three"
            1 asked gpt-5.1-codex
            1 ended Completed { last_message: Some("done"), bookmark: None }
        "#]],
    )
    .await;
}

#[tokio::test]
async fn an_image_is_shown_to_the_model_and_other_files_are_refused() {
    let calls = r#"{"call": "view_image", "args": {"path": "dot.png"}}, {"call": "view_image", "args": {"path": "x"}}"#;
    let script = format!(r#"[{{"items": [{calls}]}}, {{"items": [{{"text": "done"}}]}}]"#);
    let mut client = World::new().file("project/dot.png", b"\x89PNG\r\n\x1a\nrest").start(&script).await;
    let events = client.turn("1", "hi").await;
    let viewed =
        |event: &Arc<Event>| matches!(&event.body, Body::ImageViewed { path, .. } if path.ends_with("dot.png"));
    assert_eq!(events.iter().filter(|event| viewed(event)).count(), 1);
    let last = client.prompts.all().pop().expect("the model was asked");
    let outputs: Vec<serde_json::Value> = last
        .input
        .iter()
        .map(|item| serde_json::from_str::<serde_json::Value>(&item.json()).expect("an item is JSON"))
        .filter(|item| item["type"] == "function_call_output")
        .map(|item| item["output"].clone())
        .collect();
    assert_eq!(outputs[0][0]["image_url"], "data:image/png;base64,iVBORw0KGgpyZXN0");
    assert!(outputs[1].as_str().is_some_and(|text| text.contains("could not be attached")), "{outputs:?}");
}
