//! Answers that arrive.

use std::time::Duration;

use codex_model::{HttpModel, Model as _, ModelEvent, StreamExt as _};
use codex_testkit::{FakeModel, Options};
use expect_test::{Expect, expect};

use crate::asking::{ask, model, prompt, provider};

/// Plays a script at once, and then in chunks of one byte: the events are the same.
async fn check(script: &str, expected: Expect) {
    let whole = ask(&model(&FakeModel::start(script)), "Hello.").await;
    let in_bytes = FakeModel::with(Options { piece: Some(1), ..Options::default() }, script);
    assert_eq!(ask(&model(&in_bytes), "Hello.").await, whole, "one byte at a time");
    let closing = FakeModel::with(Options { keep_alive: false, ..Options::default() }, script);
    assert_eq!(ask(&model(&closing), "Hello.").await, whole, "without keep-alive");
    expected.assert_eq(&whole);
}

#[tokio::test]
async fn text() {
    check(
        r#"[{"items": [{"text": "Hellø 🎉", "deltas": ["Hel", "lø 🎉"]}],
             "usage": {"input": 50, "cached": 20, "output": 5, "reasoning": 2}}]"#,
        expect![[r#"
            opened
            added message
            text msg-1-1 "Hel"
            text msg-1-1 "lø 🎉"
            done {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hellø 🎉"}]}
            completed resp-1 Some([50, 20, 5, 2])
        "#]],
    )
    .await;
}

#[tokio::test]
async fn reasoning_and_calls() {
    check(
        r#"[{"items": [{"reasoning": ["One"], "raw": "hm"}, {"call": "shell", "args": {"command": ["ls"]}},
                       {"custom": "apply_patch", "input": "*"}, {"local_shell": ["ls"]}, {"web_search": "rust"}]}]"#,
        expect![[r#"
            opened
            added reasoning
            part rs-1-1 0
            summary rs-1-1 0 "O"
            summary rs-1-1 0 "ne"
            thought rs-1-1 0 "h"
            thought rs-1-1 0 "m"
            done {"type":"reasoning","summary":[{"type":"summary_text","text":"One"}],"content":[{"type":"reasoning_text","text":"hm"}],"encrypted_content":"c2VjcmV0"}
            added function_call
            done {"type":"function_call","name":"shell","arguments":"{\"command\": [\"ls\"]}","call_id":"call-1-2"}
            added custom_tool_call
            done {"type":"custom_tool_call","status":"completed","call_id":"call-1-3","name":"apply_patch","input":"*"}
            done {"type":"local_shell_call","call_id":"call-1-4","status":"completed","action":{"type":"exec","command":["ls"],"timeout_ms":null,"working_directory":null,"env":null,"user":null}}
            added web_search_call
            done {"type":"web_search_call","status":"completed","action":{"type":"search","query":"rust"}}
            completed resp-1 Some([100, 0, 10, 0])
        "#]],
    )
    .await;
}

#[tokio::test]
async fn unknown_events_and_items() {
    check(
        r#"[{"items": [{"event": {"type": "response.from_the_future", "delta": [1]}},
                       {"event": {"type": "response.output_item.done", "item": {"type": "hologram", "x": 1}}}]}]"#,
        expect![[r#"
            opened
            done {"type":"hologram","x":1}
            completed resp-1 Some([100, 0, 10, 0])
        "#]],
    )
    .await;
}

#[tokio::test]
async fn nothing_follows_completed() {
    check(
        r#"[{"items": [{"event": {"type": "response.completed", "response": {"id": "first"}}}, {"text": "late"}]}]"#,
        expect![[r#"
            opened
            completed first None
        "#]],
    )
    .await;
}

#[tokio::test]
async fn rate_limits() {
    check(
        r#"[{"items": [], "headers": {"x-codex-primary-used-percent": 12.5, "x-codex-primary-window-minutes": 300,
             "x-codex-primary-reset-at": 1700000000, "x-codex-secondary-used-percent": "3"}}]"#,
        expect![[r#"
            opened {"primary":{"used_percent":12.5,"window_minutes":300,"resets_at":1700000000},"secondary":{"used_percent":3.0,"window_minutes":null,"resets_at":null},"credits":null,"plan_type":null}
            completed resp-1 Some([100, 0, 10, 0])
        "#]],
    )
    .await;
}

#[tokio::test]
async fn large_item() {
    let text = "z".repeat(10 << 20);
    let fake = FakeModel::start(&format!(r#"[{{"items": [{{"text": "{text}", "deltas": []}}]}}]"#));
    let answer = ask(&model(&fake), "Hello.").await;
    assert!(answer.contains(&text) && answer.ends_with("completed resp-1 Some([100, 0, 10, 0])\n"));
}

#[tokio::test]
async fn models_of_one_provider_share_their_connections() {
    let fake = FakeModel::start(r#"[{"items": [{"text": "Hello."}], "repeat": true}]"#);
    for originator in ["one", "two", "three"] {
        let mut provider = provider(&fake);
        originator.clone_into(&mut provider.originator);
        ask(&HttpModel::new(provider), "Hello.").await;
    }
    let sent: Vec<_> = fake.requests().iter().map(|it| it.header("originator").unwrap().to_owned()).collect();
    assert_eq!((sent.join(" ").as_str(), fake.connections()), ("one two three", 1));
    // Another time limit needs another client.
    let mut provider = provider(&fake);
    provider.connect_timeout = Duration::from_secs(3);
    ask(&HttpModel::new(provider), "Hello.").await;
    assert_eq!(fake.connections(), 2);
}

#[tokio::test]
async fn connection_is_used_again() {
    let fake = FakeModel::start(r#"[{"items": [{"text": "Hello."}], "repeat": true}]"#);
    let model = model(&fake);
    for _ in 0..3 {
        // Each answer is dropped as soon as it is complete: its stream is not polled to the end.
        let mut answer = model.ask(prompt("Hello."));
        while !matches!(answer.next().await, Some(Ok(ModelEvent::Completed { .. }))) {}
    }
    assert_eq!((fake.requests().len(), fake.connections()), (3, 1));
}

#[tokio::test]
async fn dropping_an_answer_hangs_up() {
    let fake = FakeModel::start(r#"[{"items": [{"text": "a", "done": false}, {"hang": true}]}]"#);
    let mut answer = model(&fake).ask(prompt("Hello."));
    while !matches!(answer.next().await, Some(Ok(ModelEvent::TextDelta { .. }))) {}
    drop(answer);
    fake.wait_for_hangups(1).await;
}

#[tokio::test]
async fn dropping_an_unanswered_request_hangs_up() {
    let fake = FakeModel::start(r#"[{"delay_ms": 3600000}]"#);
    let mut answer = model(&fake).ask(prompt("Hello."));
    tokio::select! {
        event = answer.next() => panic!("{event:?}"),
        requests = fake.wait_for_requests(1) => assert_eq!(requests.len(), 1),
    }
    drop(answer);
    fake.wait_for_hangups(1).await;
}
