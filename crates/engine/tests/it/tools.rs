//! Calls the model makes.

use std::sync::Arc;

use codex_engine::log::{Body, Event};
use expect_test::{Expect, expect};

use crate::world::{World, check, start};

/// Plays one answer with the items given, then one that ends the turn, and shows the calls, plans and outputs.
async fn check_calls(items: &str, expected: Expect) {
    let mut client = start(&format!(r#"[{{"items": [{items}]}}, {{"items": [{{"text": "done"}}]}}]"#)).await;
    let events = client.turn("1", "hi").await;
    let telling = |event: &Arc<Event>| match &event.body {
        Body::PlanUpdated(_) | Body::TurnEnded(_) | Body::ModelAsked(_) => true,
        Body::Recorded(record) => record.item.kind() != "message",
        _ => false,
    };
    let events: Vec<_> = events.into_iter().filter(telling).collect();
    check(&events, expected);
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_told_and_acknowledged() {
    let plan = r#"{"plan": [{"step": "Look", "status": "completed"}, {"step": "Act", "status": "pending"}]}"#;
    check_calls(
        &format!(r#"{{"call": "update_plan", "args": {plan}}}"#),
        expect![[r#"
        1 asked gpt-5.1-codex
        1 recorded call call-1-1 update_plan
        1 plan ["Look", "Act"]
        1 recorded output call-1-1 "Plan updated"
        1 asked gpt-5.1-codex
        1 ended Completed { last_message: Some("done") }
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_is_told_to_the_model() {
    check_calls(
        r#"{"call": "fly", "args": {"to": "Rome"}}"#,
        expect![[r#"
        1 asked gpt-5.1-codex
        1 recorded call call-1-1 fly
        1 recorded output call-1-1 "unsupported call: fly"
        1 asked gpt-5.1-codex
        1 ended Completed { last_message: Some("done") }
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn broken_arguments_are_told_to_the_model() {
    check_calls(
        r#"{"call": "update_plan", "args": "{\"plan\": ["}"#,
        expect![[r#"
        1 asked gpt-5.1-codex
        1 recorded call call-1-1 update_plan
        1 recorded output call-1-1 "failed to parse function arguments: EOF while parsing a list at line 1 column 10"
        1 asked gpt-5.1-codex
        1 ended Completed { last_message: Some("done") }
    "#]],
    )
    .await;
    check_calls(r#"{"call": "update_plan", "args": {"plan": [{"step": "Look", "status": "soon"}]}}"#, expect![[r#"
        1 asked gpt-5.1-codex
        1 recorded call call-1-1 update_plan
        1 recorded output call-1-1 "failed to parse function arguments: unknown value `soon`, expected one of pending, in_progress, completed at line 1 column 44"
        1 asked gpt-5.1-codex
        1 ended Completed { last_message: Some("done") }
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
        1 ended Completed { last_message: Some("done") }
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
        1 ended Completed { last_message: Some("done") }
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_picture_is_shown_to_the_model_and_what_is_none_is_said_to_be_none() {
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
        .map(|item| serde_json::from_str::<serde_json::Value>(item.get()).expect("an item is JSON"))
        .filter(|item| item["type"] == "function_call_output")
        .map(|item| item["output"].clone())
        .collect();
    assert_eq!(outputs[0][0]["image_url"], "data:image/png;base64,iVBORw0KGgpyZXN0");
    assert!(outputs[1].as_str().is_some_and(|text| text.contains("could not be attached")), "{outputs:?}");
}
