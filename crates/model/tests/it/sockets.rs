//! Answers over WebSockets.

use std::time::Duration;

use codex_model::{
    Authorization, Credentials, HttpModel, Model as _, ModelError, ModelEvent, Provider, SharedCredentials,
    StreamExt as _,
};
use codex_testkit::{FakeModel, Options, TlsFront, tls_file};
use futures_util::future::{BoxFuture, ready};
use serde_json::{Value, json};

use crate::asking::{ask, prompt, provider};
use crate::stored_answers::{sent, turn, user};

const TWO_ITEMS: &str = r#"{"items": [{"reasoning": ["Hm."]}, {"text": "Yes."}], "repeat": true}"#;

/// A model with WebSockets that plays a script.
fn fake(script: &str) -> FakeModel {
    FakeModel::with(Options { websockets: true, ..Options::default() }, script)
}

fn over_sockets(fake: &FakeModel) -> Provider {
    Provider { supports_websockets: true, ..provider(fake) }
}

/// The connections that requests came on, and whether each was a WebSocket.
fn ways(fake: &FakeModel) -> Vec<(usize, bool)> {
    let requests = fake.requests();
    requests.iter().map(|request| (request.connection, request.header("upgrade") == Some("websocket"))).collect()
}

#[tokio::test]
async fn an_answer_is_the_same_as_over_http() {
    let script = r#"[{"items": [{"reasoning": ["Hm."]}, {"text": "Hello", "deltas": ["Hel", "lo"]},
                     {"call": "shell", "id": "c", "args": {"command": ["ls"]}}], "usage": {"input": 5, "cached": 2}}]"#;
    let (with, without) = (fake(script), FakeModel::start(script));
    let answer = ask(&HttpModel::new(over_sockets(&with)), "Hello.").await;
    assert_eq!(answer, ask(&HttpModel::new(provider(&without)), "Hello.").await);
    assert!(answer.contains("completed resp-1"), "{answer}");
    let (message, request) = (&with.requests()[0], &without.requests()[0]);
    assert_eq!(message.header("openai-beta"), Some("responses_websockets=2026-02-06"));
    for name in ["user-agent", "originator", "conversation_id", "session_id"] {
        assert_eq!(message.header(name), request.header(name), "{name}");
    }
    let (mut message, mut request) = (message.json(), request.json());
    let removed = |body: &mut Value, name: &str| body.as_object_mut().unwrap().shift_remove(name);
    assert_eq!(removed(&mut message, "type"), Some(json!("response.create")));
    assert_eq!(removed(&mut request, "stream"), Some(json!(true)));
    assert_eq!(message, request);
}

#[tokio::test]
async fn one_connection_serves_a_thread_and_continues_its_last_answer() {
    let fake = fake(&format!("[{TWO_ITEMS}]"));
    let model = HttpModel::new(over_sockets(&fake));
    let mut conversation = prompt("One.");
    for text in ["Two.", "Three."] {
        turn(&model, &mut conversation).await;
        conversation.input.push(user(text));
    }
    turn(&model, &mut conversation).await;
    assert_eq!(ways(&fake), [(1, true); 3]);
    assert_eq!(sent(&fake), [(Value::Null, 1), (json!("resp-1"), 1), (json!("resp-1"), 1)]);
    assert!(fake.requests().iter().all(|request| request.json()["store"] == false));
    // Another thread has a connection of its own.
    let mut other = prompt("One.");
    other.thread = "019a0000-0000-7000-8000-000000000002".parse().unwrap();
    turn(&model, &mut other).await;
    assert_eq!(ways(&fake).last(), Some(&(2, true)));
    // A conversation that was changed is sent as a whole, over the same connection.
    conversation.input.remove(1);
    turn(&model, &mut conversation).await;
    assert_eq!(
        (ways(&fake).last(), sent(&fake).last()),
        (Some(&(1, true)), Some(&(Value::Null, conversation.input.len() - 2)))
    );
}

#[tokio::test]
async fn a_provider_without_websockets_is_asked_over_http_at_once_and_from_then_on() {
    let fake = FakeModel::start(&format!("[{TWO_ITEMS}]"));
    let model = HttpModel::new(over_sockets(&fake));
    let mut conversation = prompt("One.");
    turn(&model, &mut conversation).await;
    conversation.input.push(user("Two."));
    turn(&model, &mut conversation).await;
    assert_eq!(fake.requests().len(), 2);
    // One connection was for the WebSocket, which is not tried again.
    assert_eq!((ways(&fake), fake.connections()), (vec![(2, false); 2], 2));
}

#[tokio::test]
async fn a_websocket_that_breaks_off_is_an_error_and_the_next_attempt_uses_http() {
    for end in ["cut", "reset"] {
        let fake = fake(&format!(r#"[{{"items": [{{"text": "Hal", "done": false}}], "end": "{end}"}}, {TWO_ITEMS}]"#));
        let model = HttpModel::new(over_sockets(&fake));
        let events: Vec<_> = model.ask(prompt("Hello.")).collect().await;
        assert!(matches!(events.last(), Some(Err(ModelError::Disconnected { .. }))), "{end}: {events:?}");
        assert!(ask(&model, "Hello.").await.contains("completed"));
        assert_eq!(ways(&fake), [(1, true), (2, false)], "{end}");
    }
}

#[tokio::test]
async fn a_websocket_that_falls_silent_is_given_up() {
    let fake = fake(&format!(r#"[{{"items": [{{"text": "Hal", "done": false}}, {{"hang": true}}]}}, {TWO_ITEMS}]"#));
    let mut provider = over_sockets(&fake);
    provider.stream_idle_timeout = Duration::from_millis(100);
    let model = HttpModel::new(provider);
    let events: Vec<_> = model.ask(prompt("Hello.")).collect().await;
    assert!(matches!(events.last(), Some(Err(ModelError::Idle { .. }))), "{events:?}");
    fake.wait_for_hangups(1).await;
    assert!(ask(&model, "Hello.").await.contains("completed"));
    assert_eq!(ways(&fake), [(1, true), (2, false)]);
}

#[tokio::test]
async fn an_interrupt_closes_the_connection_and_the_next_request_opens_another() {
    let fake = fake(&format!(r#"[{{"items": [{{"text": "Hal", "done": false}}, {{"hang": true}}]}}, {TWO_ITEMS}]"#));
    let model = HttpModel::new(over_sockets(&fake));
    let mut answer = model.ask(prompt("Hello."));
    while !matches!(answer.next().await, Some(Ok(ModelEvent::TextDelta { .. }))) {}
    drop(answer);
    fake.wait_for_hangups(1).await;
    assert!(ask(&model, "Hello.").await.contains("completed"));
    assert_eq!(ways(&fake), [(1, true), (2, true)]);
}

#[tokio::test]
async fn a_connection_that_lost_its_answer_or_was_closed_is_replaced() {
    let lost = r#"{"status": 400, "body": {"error": {"code": "previous_response_not_found", "message": "lost"}}}"#;
    let fake = fake(&format!(r#"[{{"items": [{{"text": "Yes."}}]}}, {lost}, {TWO_ITEMS}]"#));
    let model = HttpModel::new(over_sockets(&fake));
    let mut conversation = prompt("One.");
    turn(&model, &mut conversation).await;
    conversation.input.push(user("Two."));
    turn(&model, &mut conversation).await;
    assert_eq!(sent(&fake), [(Value::Null, 1), (json!("resp-1"), 1), (Value::Null, 3)]);
    assert_eq!(ways(&fake), [(1, true), (1, true), (2, true)]);
}

#[tokio::test]
async fn a_request_that_is_rejected_is_repeated_over_http() {
    let full = r#"{"status": 429, "body": {"error": {"type": "usage_limit_reached", "message": "limit"}}}"#;
    let fake = fake(&format!("[{full}, {full}, {TWO_ITEMS}]"));
    let model = HttpModel::new(over_sockets(&fake));
    let answer = ask(&model, "Hello.").await;
    assert!(answer.contains("error usage limit reached: limit"), "{answer}");
    assert!(ask(&model, "Hello.").await.contains("completed"));
    // The connection works, so it was right to try one again.
    assert_eq!(ways(&fake), [(1, true), (2, false), (3, true)]);
}

/// Credentials that have another key after the first one was refused.
struct Renewable(std::sync::atomic::AtomicBool);

impl Credentials for Renewable {
    fn authorize(&self) -> BoxFuture<'_, Result<Authorization, ModelError>> {
        let is_renewed = self.0.load(std::sync::atomic::Ordering::Relaxed);
        Box::pin(ready(Ok(Authorization::bearer(if is_renewed { "new" } else { "old" }))))
    }

    fn refused<'a>(&'a self, _: &'a Authorization) -> BoxFuture<'a, bool> {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
        Box::pin(ready(true))
    }
}

#[tokio::test]
async fn a_connection_is_used_only_with_its_own_key() {
    let fake = fake(&format!("[{TWO_ITEMS}]"));
    let mut provider = over_sockets(&fake);
    provider.credentials = SharedCredentials::new(Renewable(false.into()));
    let credentials = provider.credentials.clone();
    let model = HttpModel::new(provider);
    ask(&model, "Hello.").await;
    ask(&model, "Hello.").await;
    credentials.refused(&Authorization::default()).await;
    ask(&model, "Hello.").await;
    assert_eq!(ways(&fake), [(1, true), (1, true), (2, true)]);
    let keys: Vec<String> =
        fake.requests().iter().filter_map(|request| request.header("authorization").map(str::to_owned)).collect();
    assert_eq!(keys, ["Bearer old", "Bearer old", "Bearer new"]);
}

#[tokio::test]
async fn an_event_that_is_too_large_ends_the_answer() {
    let event = json!({"type": "response.output_text.delta", "item_id": "m", "delta": "x".repeat(20 * 1024 * 1024)});
    let fake = fake(&json!([{"items": [{"event": event}]}]).to_string());
    let events: Vec<_> = HttpModel::new(over_sockets(&fake)).ask(prompt("Hello.")).collect().await;
    assert!(
        matches!(&events[..], [Ok(ModelEvent::Opened { .. }), Err(ModelError::Disconnected { .. })]),
        "{:?}",
        events.len()
    );
}

#[tokio::test]
async fn tls_trusts_the_certificate_authority_of_the_user() {
    let fake = fake(&format!("[{TWO_ITEMS}]"));
    let front = TlsFront::of(&fake.url());
    let mut provider = over_sockets(&fake);
    provider.base_url = format!("{}/v1", front.url());
    provider.ca_certificates = Some(tls_file("ca.pem"));
    let answer = ask(&HttpModel::new(provider), "Hello.").await;
    assert!(answer.contains("completed"), "{answer}");
    assert_eq!(ways(&fake), [(1, true)]);
}
