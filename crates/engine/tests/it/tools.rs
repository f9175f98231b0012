//! Calls the model makes.

use std::sync::Arc;

use codex_engine::log::{Body, Event};
use expect_test::{Expect, expect};

use crate::world::{check, start};

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
