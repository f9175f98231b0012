//! Answers that do not arrive, or not completely.

use std::time::{Duration, Instant};

use codex_model::{
    HttpModel, Model as _, ModelError, ModelEvent, Provider, SharedCredentials, StaticKey, StreamExt as _, WireKind,
};
use codex_testkit::{FakeModel, Options};
use expect_test::{Expect, expect};

use crate::asking::{ask, model, prompt, provider};

pub(crate) const WIRES: [WireKind; 3] = [WireKind::Responses, WireKind::Chat, WireKind::Anthropic];

async fn check(script: &str, expected: Expect) {
    expected.assert_eq(&ask(&model(&FakeModel::start(script)), "Hello.").await);
}

/// Asks a model that may retry; shows the answer and the number of requests.
async fn check_retried(retries: u32, script: &str, expected: Expect) {
    let fake = FakeModel::start(script);
    let mut provider = provider(&fake);
    provider.request_max_retries = retries;
    let answer = ask(&HttpModel::new(provider), "Hello.").await;
    expected.assert_eq(&format!("{answer}{} request(s)", fake.requests().len()));
}

#[tokio::test]
async fn cut_stream() {
    let script = r#"[{"items": [{"text": "Hel", "done": false}], "end": "cut"}]"#;
    let expected = expect![[r#"
        opened
        added message
        text msg-1-1 "Hel"
        error stream disconnected before completion: stream closed before response.completed; Other; Stream { after: None }
    "#]];
    let closing = FakeModel::with(Options { keep_alive: false, ..Options::default() }, script);
    expected.assert_eq(&ask(&model(&closing), "Hello.").await);
    check(script, expected).await;
}

#[tokio::test]
async fn reset_connection() {
    let fake = FakeModel::start(r#"[{"items": [{"text": "Hel", "done": false}], "end": "reset"}]"#);
    let mut answer = model(&fake).ask(prompt("Hello."));
    let error = loop {
        if let Err(error) = answer.next().await.unwrap() {
            break error;
        }
    };
    // Depending on timing the reset arrives before the headers were read, or after.
    assert!(matches!(error, ModelError::Disconnected { source: Some(_) } | ModelError::Connect { .. }), "{error:?}");
    assert!(answer.next().await.is_none(), "nothing follows an error");
}

#[tokio::test]
async fn failed_answers() {
    check(
        r#"[{"items": [], "end": {"failed": {"code": "server_error", "message": "THE-REASON"}}}]"#,
        expect![[r#"
            opened
            error stream disconnected before completion: THE-REASON; Other; Stream { after: None }
        "#]],
    )
    .await;
    check(
        r#"[{"items": [], "end": {"failed": {"code": "rate_limit_exceeded", "message": "Please try again in 1.0s."}}}]"#,
        expect![[r#"
            opened
            error stream disconnected before completion: Please try again in 1.0s.; Other; Stream { after: Some(1s) }
        "#]],
    )
    .await;
    check(
        r#"[{"items": [], "end": {"failed": {"code": "context_length_exceeded", "message": "too long"}}}]"#,
        expect![[r#"
            opened
            error the conversation does not fit the model's context window: too long; ContextWindowExceeded; Never
        "#]],
    )
    .await;
    check(
        r#"[{"items": [{"text": "half"}], "end": {"incomplete": "max_output_tokens"}}]"#,
        expect![[r#"
            opened
            added message
            text msg-1-1 "half"
            done {"type":"message","role":"assistant","content":[{"type":"output_text","text":"half"}]}
            error stream disconnected before completion: Incomplete response returned, reason: max_output_tokens; Other; Stream { after: None }
        "#]],
    )
    .await;
}

#[tokio::test]
async fn refusals_that_are_final() {
    check_retried(
        3,
        r#"[{"status": 400, "body": {"error": {"message": "unknown parameter"}}}]"#,
        expect![[r#"
            error unknown parameter; Other; Never
            1 request(s)"#]],
    )
    .await;
    check_retried(
        3,
        r#"[{"status": 401, "body": {"error": {"message": "bad key"}}}]"#,
        expect![[r#"
            error not authorized, status 401 Unauthorized: bad key; Unauthorized; Never
            1 request(s)"#]],
    )
    .await;
    check_retried(
        3,
        r#"[{"status": 429, "body": {"error": {"type": "usage_limit_reached", "message": "limit", "resets_in_seconds": 7500}}}]"#,
        expect![[r#"
            opened
            error usage limit reached: limit; it resets in 2 h 5 min; UsageLimitExceeded; AtReset { after: 7500s }
            1 request(s)"#]],
    )
    .await;
    check_retried(
        3,
        r#"[{"status": 404, "body": "no such page"}]"#,
        expect![[r#"
            error unexpected status 404 Not Found: no such page; HttpConnectionFailed { http_status_code: Some(404) }; Never
            1 request(s)"#]],
    )
    .await;
}

#[tokio::test]
async fn server_errors_are_retried() {
    check_retried(
        2,
        r#"[{"status": 500}, {"status": 503}, {"items": []}]"#,
        expect![[r#"
            opened
            completed resp-3 Some([100, 0, 10, 0])
            3 request(s)"#]],
    )
    .await;
}

#[tokio::test]
async fn retries_are_used_up() {
    check_retried(
        1,
        r#"[{"status": 500, "repeat": true, "body": {"error": {"message": "boom"}}}]"#,
        expect![[r#"
            error unexpected status 500 Internal Server Error: boom; InternalServerError; Stream { after: None }
            2 request(s)"#]],
    )
    .await;
}

#[tokio::test]
async fn retry_after_is_honoured() {
    let begun = Instant::now();
    check_retried(
        1,
        r#"[{"status": 429, "headers": {"retry-after": "0.5"}, "body": {"error": {"message": "slow down"}}}, {"items": []}]"#,
        expect![[r#"
            opened
            completed resp-2 Some([100, 0, 10, 0])
            2 request(s)"#]],
    )
    .await;
    assert!(begun.elapsed() >= Duration::from_millis(500), "the first delay of a backoff would be shorter");
}

#[tokio::test]
async fn silence_ends_the_wait_on_every_wire() {
    for wire in WIRES {
        for script in [r#"[{"delay_ms": 3600000}]"#, r#"[{"items": [{"text": "Hel"}, {"hang": true}]}]"#] {
            let fake = FakeModel::start(script);
            let mut provider = provider(&fake);
            (provider.wire, provider.request_max_retries) = (wire, 3);
            provider.stream_idle_timeout = Duration::from_millis(100);
            let answer = ask(&HttpModel::new(provider), "Hello.").await;
            let expected = "error stream disconnected before completion: the model sent nothing for";
            assert!(answer.contains(expected), "{wire:?}: {answer}");
            assert!(answer.ends_with("Stream { after: None }\n"), "{wire:?}: {answer}");
            assert_eq!(fake.requests().len(), 1);
            fake.wait_for_hangups(1).await;
        }
    }
}

#[tokio::test]
async fn unreachable_provider_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut provider = Provider::new("mock", format!("http://{address}/v1?key=secret"));
    provider.request_max_retries = 1;
    let mut answer = HttpModel::new(provider).ask(prompt("Hello."));
    let error = answer.next().await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), format!("could not get an answer from {address}"));
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}

#[tokio::test]
async fn wrong_settings_are_errors() {
    let mut provider = Provider::new("mock", "nowhere");
    let first = |provider: Provider| async move {
        HttpModel::new(provider).ask(prompt("Hello.")).next().await.unwrap().unwrap_err().to_string()
    };
    assert_eq!(first(provider.clone()).await, r#"invalid provider URL "nowhere": relative URL without a base"#);
    provider.base_url = "http://127.0.0.1:1".to_owned();
    provider.headers = vec![("x y".to_owned(), "z".to_owned())];
    assert_eq!(first(provider).await, r#"invalid value or name of the request header "x y""#);
}

#[tokio::test]
async fn provider_that_speaks_no_tls_is_an_error_not_a_panic() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut provider = Provider::new("mock", format!("https://{}", listener.local_addr().unwrap()));
    provider.request_max_retries = 0;
    let hanging_up = std::thread::spawn(move || listener.accept().map(drop));
    let error = HttpModel::new(provider).ask(prompt("Hello.")).next().await.unwrap().unwrap_err();
    match error {
        ModelError::Connect { .. } => hanging_up.join().unwrap().unwrap(),
        // This machine has no root certificates.
        ModelError::Tls { .. } => {}
        other => panic!("{other:?}"),
    }
}

/// Asks over an API; shows the answer and the paths of the requests.
async fn asked_over(wire: WireKind, script: &str) -> (String, Vec<String>) {
    let fake = FakeModel::start(script);
    let mut provider = provider(&fake);
    provider.wire = wire;
    let answer = ask(&HttpModel::new(provider), "Hello.").await;
    (answer, fake.requests().into_iter().map(|request| request.path).collect())
}

#[tokio::test]
async fn redirects_stay_on_the_host_on_every_wire() {
    let refused = "error unexpected status 307 Temporary Redirect: {}; \
                   HttpConnectionFailed { http_status_code: Some(307) }; Never\n";
    for (wire, path) in WIRES.into_iter().zip(["responses", "chat/completions", "messages"]) {
        let to = |location: &str| format!(r#"{{"status": 307, "headers": {{"location": "{location}/{path}"}}"#);
        let (answer, paths) = asked_over(wire, &format!(r#"[{}}}, {{"items": []}}]"#, to("/v2"))).await;
        assert!(answer.starts_with("opened") && answer.contains("\ncompleted"), "{wire:?}: {answer}");
        assert_eq!(paths, [format!("/v1/{path}"), format!("/v2/{path}")]);

        let elsewhere = FakeModel::start(r#"[{"items": []}]"#);
        let (answer, paths) = asked_over(wire, &format!("[{}}}]", to(&elsewhere.url()))).await;
        assert_eq!((answer.as_str(), paths.len()), (refused, 1), "{wire:?}");
        assert_eq!(elsewhere.requests().len(), 0);

        let (answer, paths) = asked_over(wire, &format!(r#"[{}, "repeat": true}}]"#, to("/v1"))).await;
        assert_eq!((answer.as_str(), paths.len()), (refused, 6), "{wire:?}");
    }
}

#[tokio::test]
async fn echoed_key_is_hidden() {
    let fake = FakeModel::start(r#"[{"status": 401, "body": {"error": {"message": "bad key sk-12345678"}}}]"#);
    let mut provider = provider(&fake);
    provider.credentials = SharedCredentials::new(StaticKey::new("sk-12345678"));
    let error = HttpModel::new(provider).ask(prompt("Hello.")).next().await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "not authorized, status 401 Unauthorized: bad key [key]");
}

#[tokio::test]
async fn a_key_that_is_echoed_within_the_stream_is_hidden_on_every_wire() {
    let failed = "stream disconnected before completion: bad key [key]";
    for (wire, event, expected) in [
        (
            WireKind::Responses,
            r#"{"type": "response.failed", "response": {"error": {"code": "x", "message": "bad key sk-12345678"}}}"#,
            failed,
        ),
        (WireKind::Responses, r#"{"type": "error", "code": "x", "message": "bad key sk-12345678"}"#, failed),
        (
            WireKind::Responses,
            r#"{"type": "response.incomplete", "response": {"incomplete_details": {"reason": "sk-12345678"}}}"#,
            "stream disconnected before completion: Incomplete response returned, reason: [key]",
        ),
        (WireKind::Chat, r#"{"error": {"code": "x", "message": "bad key sk-12345678"}}"#, failed),
        (
            WireKind::Chat,
            r#"{"error": {"type": "invalid_request_error", "code": "invalid_prompt", "message": "bad key sk-12345678"}}"#,
            "bad key [key]",
        ),
        (
            WireKind::Anthropic,
            r#"{"type": "error", "error": {"type": "api_error", "message": "bad key sk-12345678"}}"#,
            failed,
        ),
        (
            WireKind::Chat,
            r#"{"choices": "oops sk-12345678"}"#,
            r#"stream disconnected before completion: could not read the event "{\"choices\": \"oops [key]\"}""#,
        ),
    ] {
        let mut provider = Provider::new("mock", raw_server(streamed(event)));
        (provider.wire, provider.request_max_retries) = (wire, 0);
        provider.credentials = SharedCredentials::new(StaticKey::new("sk-12345678"));
        let mut answer = HttpModel::new(provider).ask(prompt("Hello."));
        assert!(matches!(answer.next().await, Some(Ok(ModelEvent::Opened { .. }))));
        let error = answer.next().await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), expected, "{wire:?}");
        assert!(!format!("{error:?}").contains("sk-12345678"), "{error:?}");
    }
}

#[tokio::test]
async fn broken_event_ends_the_answer() {
    let fake = FakeModel::start(
        r#"[{"items": [{"event": {"type": "response.output_item.done", "item": {"type": "function_call"}}}]}]"#,
    );
    let mut answer = model(&fake).ask(prompt("Hello."));
    assert!(matches!(answer.next().await, Some(Ok(ModelEvent::Opened { .. }))));
    let error = answer.next().await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "stream disconnected before completion: could not read the event response.output_item.done"
    );
    assert!(answer.next().await.is_none());
}

#[tokio::test]
async fn a_refusal_names_the_request_and_the_attempt() {
    let script = r#"[{"status": 500, "body": {"error": {"message": "boom"}}},
                     {"status": 500, "headers": {"x-request-id": "req-7", "retry-after": "0"}, "body": {"error": {"message": "boom"}}}]"#;
    check_retried(
        1,
        script,
        expect![[r#"
            error unexpected status 500 Internal Server Error: boom (request ID req-7, attempt 2); InternalServerError; Stream { after: Some(0ns) }
            2 request(s)"#]],
    )
    .await;
}

/// A server that answers every request with these bytes and closes.
pub(crate) fn raw_server(answer: Vec<u8>) -> String {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (mut stream, answer) = (stream, answer.clone());
            let mut request = vec![0; 65536];
            let _ = stream.read(&mut request);
            // The client may disconnect early.
            let _ = stream.write_all(&answer);
        }
    });
    format!("http://{address}/v1")
}

/// An answer with one event.
fn streamed(event: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    format!("{head}data: {event}\n\n").into_bytes()
}

#[tokio::test]
async fn a_huge_event_and_the_end_of_the_stream_end_the_answer_on_every_wire() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    for wire in WIRES {
        for (event, expected) in [
            ([b"data: ", &*b"x".repeat(20 * 1024 * 1024), b"\n\n"].concat(), "could not read the stream of the model"),
            (Vec::new(), "stream closed before response.completed"),
        ] {
            let url = raw_server([head.as_slice(), &event].concat());
            let mut provider = Provider::new("mock", url);
            (provider.wire, provider.request_max_retries) = (wire, 0);
            let mut answer = HttpModel::new(provider).ask(prompt("Hello."));
            assert!(matches!(answer.next().await, Some(Ok(ModelEvent::Opened { .. }))));
            let error = answer.next().await.unwrap().unwrap_err().to_string();
            assert_eq!(error, format!("stream disconnected before completion: {expected}"), "{wire:?}");
            assert!(answer.next().await.is_none());
        }
    }
}
