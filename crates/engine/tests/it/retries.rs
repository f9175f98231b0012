//! Answers that break off.

use codex_log::{Body, Outcome};
use codex_model::{Prompt, WireKind, request_body};
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::provider_traits::ProviderTraits;
use expect_test::expect;

use crate::shown;
use crate::world::{Client, World, check, check_lines, outcome, start};

/// The parts of a request that must not differ between attempts.
fn sent(client: &Client) -> Vec<Vec<u8>> {
    let body = |prompt: &Prompt| request_body(prompt, WireKind::Responses, "mock", &ProviderTraits::responses());
    client.prompts.all().iter().map(body).collect()
}

async fn start_with_retries(retries: u32, script: &str) -> Client {
    World::new().set(&format!("model_providers.scripted.stream_max_retries={retries}")).start(script).await
}

#[tokio::test(start_paused = true)]
async fn a_cut_answer_is_asked_for_again_with_the_same_request() {
    let script = r#"[{"items": [{"text": "whole"}, {"text": "Hal", "done": false}], "end": "cut"},
                     {"items": [{"text": "Hallo"}]}, {"items": [{"text": "b"}]}]"#;
    let mut client = start(script).await;
    check(
        &client.turn("1", "hi").await,
        expect![[r#"
            - thread started
            - recorded user: (environment)
            1 turn started, window Some(258400)
            1 recorded user: "hi"
            1 started user 1 piece(s)
            1 completed user 1 piece(s)
            1 asked gpt-5.1-codex
            1 counted None
            1 started agent msg-1-1 ""
            1 grew msg-1-1 Text("whole")
            1 completed agent msg-1-1 "whole"
            1 recorded assistant: "whole"
            1 started agent msg-1-2 ""
            1 grew msg-1-2 Text("Hal")
            1 retry 1/5: stream disconnected before completion: stream closed before response.completed
            1 counted None
            1 started agent msg-2-1 ""
            1 grew msg-2-1 Text("Hallo")
            1 completed agent msg-2-1 "Hallo"
            1 recorded assistant: "Hallo"
            1 counted Some(110)
            1 ended Completed { last_message: Some("Hallo"), bookmark: None }
        "#]],
    );
    let sent = sent(&client);
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0], sent[1]);
    client.turn("2", "more").await;
    check_lines(
        &shown::input(&client.prompts.all()[2]),
        expect![[r#"
        user: (environment)
        user: "hi"
        assistant: "whole"
        assistant: "Hallo"
        user: "more"
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn when_the_retries_are_used_up_the_turn_fails_and_the_next_one_works() {
    let script = r#"[{"end": "cut"}, {"end": "cut"}, {"end": "reset"}, {"items": [{"text": "back"}]}]"#;
    let mut client = start_with_retries(2, script).await;
    check(
        &client.turn("1", "hi").await,
        expect![[r#"
            - thread started
            - recorded user: (environment)
            1 turn started, window Some(258400)
            1 recorded user: "hi"
            1 started user 1 piece(s)
            1 completed user 1 piece(s)
            1 asked gpt-5.1-codex
            1 counted None
            1 retry 1/2: stream disconnected before completion: stream closed before response.completed
            1 counted None
            1 retry 2/2: stream disconnected before completion: stream closed before response.completed
            1 counted None
            1 ended Failed(Failure { message: "stream disconnected before completion: stream closed before response.completed: connection reset", hint: None, info: Other })
        "#]],
    );
    assert_eq!(sent(&client).len(), 3);
    let ended = outcome(&client.turn("2", "more").await);
    assert_eq!(ended, Outcome::Completed { last_message: Some("back".into()), bookmark: None });
}

#[tokio::test(start_paused = true)]
async fn without_retries_the_first_cut_is_the_end() {
    let mut client = start_with_retries(0, r#"[{"end": "cut"}]"#).await;
    assert!(matches!(outcome(&client.turn("1", "hi").await), Outcome::Failed(_)));
    assert_eq!(sent(&client).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_falls_silent_is_asked_again() {
    let mut client = start(r#"[{"items": [{"hang": true}]}, {"items": [{"text": "awake"}]}]"#).await;
    let began = tokio::time::Instant::now();
    let events = client.turn("1", "hi").await;
    assert!(began.elapsed().as_secs() >= 300, "it was given only {:?}", began.elapsed());
    let retried: Vec<_> =
        events.iter().filter(|event| matches!(event.body, Body::AnswerRetried { .. })).cloned().collect();
    check(
        &retried,
        expect![[r#"
        1 retry 1/5: stream disconnected before completion: the model sent nothing for 5 min
    "#]],
    );
    assert_eq!(outcome(&events), Outcome::Completed { last_message: Some("awake".into()), bookmark: None });
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_not_asked_again() {
    let script =
        r#"[{"status": 400, "body": {"error": {"message": "no such thing"}}}, {"items": [{"text": "never said"}]}]"#;
    let mut client = start(script).await;
    check(
        &client.turn("1", "hi").await,
        expect![[r#"
            - thread started
            - recorded user: (environment)
            1 turn started, window Some(258400)
            1 recorded user: "hi"
            1 started user 1 piece(s)
            1 completed user 1 piece(s)
            1 asked gpt-5.1-codex
            1 ended Failed(Failure { message: "no such thing", hint: None, info: Other })
        "#]],
    );
    assert_eq!(sent(&client).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_script_fails_the_turn() {
    let mut client = start("[]").await;
    let Outcome::Failed(failure) = outcome(&client.turn("1", "hi").await) else { panic!("the turn did not fail") };
    expect!["the script has no answer left for this request"].assert_eq(&failure.message);
}

#[tokio::test(start_paused = true)]
async fn the_wait_before_a_retry_grows() {
    let mut client = start_with_retries(4, r#"[{"repeat": true, "end": "cut"}]"#).await;
    let events = client.turn("1", "hi").await;
    let delays: Vec<u128> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::AnswerRetried { delay, .. } => Some(delay.as_millis()),
            _ => None,
        })
        .collect();
    assert_eq!(delays.len(), 4);
    assert!(delays.windows(2).all(|pair| pair[1] > pair[0]), "{delays:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_always_breaks_after_a_call_does_not_retry_forever() {
    let script = r#"[{"repeat": true, "items": [{"call": "update_plan", "args": {"plan": []}}], "end": "cut"}]"#;
    let mut client = start_with_retries(2, script).await;
    client.say("1", "hi").await;
    let mut events = Vec::new();
    while events.len() < 1000 && !matches!(events.last(), Some(Body::TurnEnded(_))) {
        events.push(client.next().await.body.clone());
    }
    assert!(matches!(events.last(), Some(Body::TurnEnded(Outcome::Failed(_)))), "{:?}", events.last());
    assert_eq!(sent(&client).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_allowance_has_its_own_error_and_the_limits() {
    let script = r#"[{"status": 429, "headers": {"x-codex-primary-used-percent": "100.0"},
                      "body": {"error": {"type": "usage_limit_reached", "message": "limit reached"}}}]"#;
    let mut client = start(script).await;
    let events = client.turn("1", "hi").await;
    let told = events.iter().find_map(|event| match &event.body {
        Body::TokensCounted { info, rate_limits } => {
            Some((info.clone(), rate_limits.as_ref().and_then(|limits| limits.primary.clone())))
        }
        _ => None,
    });
    let (info, primary) = told.expect("the limits are told before the failure");
    assert_eq!((info, primary.map(|window| window.used_percent)), (None, Some(100.0)));
    let Outcome::Failed(failure) = outcome(&events) else { panic!("the turn has failed") };
    assert_eq!(failure.message, "usage limit reached: limit reached");
    assert_eq!(failure.info, CodexErrorInfo::UsageLimitExceeded);
}

#[tokio::test(start_paused = true)]
async fn a_cut_answer_is_a_disconnected_stream_while_it_is_retried_and_another_failure_in_the_end() {
    let mut client =
        start_with_retries(1, r#"[{"items": [], "end": {"incomplete": "max_output_tokens"}, "repeat": true}]"#).await;
    let events = client.turn("1", "hi").await;
    let kinds: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::AnswerRetried { failure, .. } | Body::TurnEnded(Outcome::Failed(failure)) => Some(failure.clone()),
            _ => None,
        })
        .collect();
    let message =
        "stream disconnected before completion: Incomplete response returned, reason: max_output_tokens".to_owned();
    assert!(kinds.iter().all(|failure| failure.message == message), "{kinds:?}");
    let disconnected = CodexErrorInfo::ResponseStreamDisconnected { http_status_code: None };
    assert_eq!(
        kinds.into_iter().map(|failure| failure.info).collect::<Vec<_>>(),
        [disconnected, CodexErrorInfo::Other]
    );
}

#[tokio::test(start_paused = true)]
async fn input_that_joined_a_failing_turn_is_not_lost() {
    let script = r#"[{"items": [{"text": "a", "deltas": ["a", {"pause_ms": 50}], "done": false}], "end": "cut"},
                     {"items": [{"text": "b"}]}]"#;
    let mut client = start_with_retries(0, script).await;
    client.say("1", "hi").await;
    client.until(|body| matches!(body, Body::ItemDelta { .. })).await;
    client.say("2", "and this").await;
    check(
        &client.until_ended().await,
        expect![[r#"
            1 broke off agent msg-1-1 "a"
            1 recorded user: "and this"
            1 started user 1 piece(s)
            1 completed user 1 piece(s)
            1 ended Failed(Failure { message: "stream disconnected before completion: stream closed before response.completed", hint: None, info: Other })
        "#]],
    );
    client.turn("3", "again").await;
    check_lines(
        &shown::input(&client.prompts.all()[1]),
        expect![[r#"
        user: (environment)
        user: "hi"
        user: "and this"
        user: "again"
    "#]],
    );
}
