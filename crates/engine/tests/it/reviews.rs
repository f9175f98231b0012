//! Reviews: their own conversation, and a result that is part of the thread.

use codex_log::{Abort, Body, Outcome, TurnId};
use codex_wire::review::{ReviewRequest, ReviewTarget};
use serde_json::Value;

use crate::world::{Client, outcome, said, start};

const ANSWER: &str =
    r#"{\"findings\": [], \"overall_correctness\": \"patch is correct\", \"overall_explanation\": \"Fine.\"}"#;

async fn review(client: &Client) {
    let request = ReviewRequest { target: ReviewTarget::custom("Look closely."), user_facing_hint: None };
    client.thread.review(TurnId::new("r"), request).await.expect("the thread is open");
}

#[tokio::test(start_paused = true)]
async fn a_review_sees_nothing_of_the_thread_and_the_thread_sees_its_result() {
    let script = format!(
        r#"[{{"items": [{{"text": "Noted."}}]}}, {{"items": [{{"text": "{ANSWER}"}}]}}, {{"items": [{{"text": "Yes."}}]}}]"#
    );
    let mut client = start(&script).await;
    client.turn("1", "Remember the fern.").await;
    review(&client).await;
    let events = client.until_ended().await;
    assert_eq!(client.last_input(), ["Look closely."]);
    assert!(matches!(&events[0].body, Body::ReviewEntered(review) if review.prompt == "Look closely."));
    let found = |body: &Body| matches!(body, Body::ReviewExited(Some(output)) if output.overall_explanation == "Fine.");
    assert_eq!(events.iter().filter(|event| found(&event.body)).count(), 1);
    let asked = events.iter().filter_map(|event| match &event.body {
        Body::ItemCompleted(item) => item.said().map(|said| said.content.clone()),
        _ => None,
    });
    assert_eq!(asked.collect::<Vec<_>>(), [vec![said("Look closely.")]], "what the reviewer is asked is an item");
    let kept = |line: &&Value| line["payload"]["type"] == "user_message";
    assert_eq!(client.lines().iter().filter(kept).count(), 1, "but the user did not say it");
    client.turn("2", "And?").await;
    let input = client.last_input();
    assert_eq!(input.len(), 5, "{input:?}");
    assert_eq!((input[0].as_str(), input[1].as_str(), input[4].as_str()), ("Remember the fern.", "Noted.", "And?"));
    assert!(input[2].contains("Fine."), "{input:?}");
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_a_review_and_the_thread_continues() {
    let mut client = start(r#"[{"items": [{"hang": true}]}, {"items": [{"text": "Yes."}]}]"#).await;
    review(&client).await;
    client.until(|body| matches!(body, Body::TokensCounted { .. })).await;
    assert_eq!(client.thread.interrupt().await, Ok(true));
    let events = client.until_ended().await;
    assert!(events.iter().any(|event| matches!(event.body, Body::ReviewExited(None))));
    assert_eq!(outcome(&events), Outcome::Aborted(Abort::ReviewEnded));
    let events = client.turn("2", "Still there?").await;
    assert_eq!(outcome(&events), Outcome::Completed { last_message: Some("Yes.".into()), bookmark: None });
}

#[tokio::test(start_paused = true)]
async fn a_reviewer_may_read_and_not_write() {
    let touch = r#"{"call": "shell", "args": {"command": ["touch", "x"]}}"#;
    let script = format!(r#"[{{"items": [{touch}]}}, {{"items": [{{"text": "{ANSWER}"}}]}}]"#);
    let mut client = crate::world::World::new().set("sandbox_mode=danger-full-access").start(&script).await;
    review(&client).await;
    client.until_ended().await;
    assert!(!client.world.path("project/x").exists());
}
