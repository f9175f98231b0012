//! Answers that break off, and what is left of them.

use codex_log::{Abort, Body, Outcome};
use expect_test::expect;

use crate::world::{Client, World, check, outcome, start};

/// An answer of which a piece has come when nothing more does.
const HALF: &str = r#"[{"items": [{"text": "whole"}, {"text": "ha", "done": false}, {"hang": true}]}]"#;

/// Starts a turn and waits until something was said of which more would come.
async fn half_said(script: &str) -> Client {
    let mut client = start(script).await;
    client.say("1", "hi").await;
    client.until(|body| matches!(body, Body::ItemDelta { delta, .. } if format!("{delta:?}").contains("ha"))).await;
    client
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_leaves_what_was_said() {
    let mut client = half_said(HALF).await;
    assert_eq!(client.thread.interrupt().await, Ok(true));
    check(
        &client.until_ended().await,
        expect![[r#"
            1 broke off agent msg-1-2 "ha"
            1 ended Aborted(Interrupted)
        "#]],
    );
    let kinds = client.line_kinds();
    assert_eq!(kinds[kinds.len() - 2..], ["event_msg item_interrupted", "event_msg turn_aborted"]);
    let line = client.lines().swap_remove(kinds.len() - 2);
    assert_eq!((&line["payload"]["turn_id"], &line["payload"]["item_id"]), (&"1".into(), &"msg-1-2".into()));
    assert_eq!(line["payload"]["item"]["content"][0]["text"], "ha");
}

#[tokio::test(start_paused = true)]
async fn a_failure_leaves_what_was_said() {
    let script = r#"[{"items": [{"text": "ha", "done": false}], "end": "cut"}]"#;
    let world = World::new().set("model_providers.scripted.stream_max_retries=0");
    let mut client = world.start(script).await;
    let events = client.turn("1", "hi").await;
    assert!(matches!(outcome(&events), Outcome::Failed(_)));
    let broken_off = events.iter().filter(|event| matches!(event.body, Body::ItemInterrupted(_))).count();
    assert_eq!(broken_off, 1);
    let kinds = client.line_kinds();
    let last = ["event_msg item_interrupted", "event_msg error", "event_msg task_complete"];
    assert_eq!(kinds[kinds.len() - 3..], last);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_asked_for_again_leaves_nothing() {
    let script = r#"[{"items": [{"text": "ha", "done": false}], "end": "cut"}, {"items": [{"hang": true}]}]"#;
    let mut client = start(script).await;
    client.say("1", "hi").await;
    client.until(|body| matches!(body, Body::AnswerRetried { .. })).await;
    client.until(|body| matches!(body, Body::TokensCounted { .. })).await;
    let events = client.close().await;
    assert_eq!(outcome(&events), Outcome::Aborted(Abort::Interrupted));
    assert!(!client.line_kinds().contains(&"event_msg item_interrupted".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_has_only_begun_leaves_nothing() {
    let script = r#"[{"items": [{"text": "", "done": false}, {"hang": true}]}]"#;
    let mut client = start(script).await;
    client.say("1", "hi").await;
    client.until(|body| matches!(body, Body::ItemStarted(item) if item.answer().is_some())).await;
    client.close().await;
    assert!(!client.line_kinds().contains(&"event_msg item_interrupted".to_owned()));
}
