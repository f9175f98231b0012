//! Scripts played without a network, on a paused clock.

use std::time::Duration;

use codex_model::{Model as _, ScriptedModel, StreamExt as _};
use codex_testkit::FakeModel;
use expect_test::{Expect, expect};
use tokio::time::Instant;

use crate::asking::{ask, model, prompt};

/// Asks once; shows the answer and its duration, to the second.
async fn check(script: &str, expected: Expect) {
    let begun = Instant::now();
    let answer = ask(&ScriptedModel::from_json(script).unwrap(), "Hello.").await;
    expected.assert_eq(&format!("{answer}after {} s", begun.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn pauses_take_their_time() {
    check(
        r#"[{"delay_ms": 1000, "items": [{"text": "Hello", "deltas": ["Hel", {"pause_ms": 2000}, "lo"]}, {"pause_ms": 4000}]}]"#,
        expect![[r#"
            opened
            added message
            text msg-1-1 "Hel"
            text msg-1-1 "lo"
            done {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello"}]}
            completed resp-1 Some([100, 0, 10, 0])
            after 7 s"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn silence_ends_the_wait() {
    for silence in [r#"{"hang": true}"#, r#"{"pause_ms": 200000}, {"pause_ms": 200000}"#] {
        check(
            &format!(r#"[{{"items": [{silence}]}}]"#),
            expect![[r#"
                opened
                error stream disconnected before completion: the model sent nothing for 5 min; Other; Stream { after: None }
                after 300 s"#]],
        )
        .await;
    }
    check(
        r#"[{"delay_ms": 400000}]"#,
        expect![[r#"
            error stream disconnected before completion: the model sent nothing for 5 min; Other; Stream { after: None }
            after 300 s"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn refusals_are_retried_as_over_http() {
    check(
        r#"[{"status": 429, "headers": {"Retry-After": 7}, "body": ""}, {"status": 503, "body": "try again in 4s"}, {"items": []}]"#,
        expect![[r#"
            opened
            completed resp-3 Some([100, 0, 10, 0])
            after 11 s"#]],
    )
    .await;
    check(
        r#"[{"status": 400, "body": {"error": {"message": "wrong"}}}]"#,
        expect![[r#"
            error wrong; Other; Never
            after 0 s"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn exhausted_script_is_a_server_error() {
    let model = ScriptedModel::from_json("[]").unwrap().with_request_max_retries(0);
    expect![[r#"
        error the script has no answer left for this request; Other; Never
    "#]]
    .assert_eq(&ask(&model, "Hello.").await);
}

#[tokio::test(start_paused = true)]
async fn ends() {
    check(
        r#"[{"end": "cut"}]"#,
        expect![[r#"
            opened
            error stream disconnected before completion: stream closed before response.completed; Other; Stream { after: None }
            after 0 s"#]],
    )
    .await;
    let model = ScriptedModel::from_json(r#"[{"end": "reset"}]"#).unwrap();
    let error = model.ask(prompt("Hello.")).filter_map(|event| async { event.err() }).collect::<Vec<_>>().await;
    let source = std::error::Error::source(&error[0]).unwrap();
    assert_eq!(source.to_string(), "connection reset");
}

#[tokio::test(start_paused = true)]
async fn idle_timeout_can_be_set() {
    let model = ScriptedModel::from_json(r#"[{"items": [{"hang": true}]}]"#).unwrap();
    let model = model.with_idle_timeout(Duration::from_secs(3));
    assert!(ask(&model, "Hello.").await.contains("sent nothing for 3 s"));
}

#[tokio::test]
async fn a_script_gives_the_same_events_with_and_without_http() {
    let script = r#"[
        {"items": [{"reasoning": ["One", "two"], "raw": "hm"}, {"text": "Hello"}, {"call": "t", "args": {"a": [1]}}]},
        {"items": [{"text": "x", "done": false}], "end": "cut"},
        {"status": 400, "body": {"error": {"message": "wrong"}}},
        {"find": {"n": "number (\\d+)"}, "items": [{"call": "t", "args": {"n": "${n}"}}], "when": "number"},
        {"end": {"failed": {"code": "invalid_prompt", "message": "no"}}}
    ]"#;
    let fake = FakeModel::start(script);
    let http = model(&fake);
    let scripted = ScriptedModel::from_json(script).unwrap().with_request_max_retries(0);
    for text in ["a", "b", "number 42", "c", "d"] {
        assert_eq!(ask(&scripted, text).await, ask(&http, text).await, "{text}");
    }
}
