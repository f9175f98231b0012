//! `codex mcp-server --listen`: sessions, streams that are resumed, and the version without either.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::http_client::{Events, HttpClient, message, request};
use crate::mcp_client::{ASKS, command, text};

/// An answer of the model that begins and never ends.
fn hang() -> Value {
    json!({"items": [{"text": "Begun.", "deltas": ["Begun."]}, {"hang": true}]})
}

fn stateless(id: i64, method: &str, mut params: Value) -> (Vec<(&'static str, String)>, String) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let mut headers = vec![("mcp-protocol-version", "2026-07-28".to_owned()), ("mcp-method", method.to_owned())];
    headers.extend(params["name"].as_str().map(|name| ("mcp-name", name.to_owned())));
    (headers, request(id, method, &params).to_string())
}

async fn post_stateless(
    client: &HttpClient,
    id: i64,
    method: &str,
    params: Value,
) -> http::Response<codex_pipe::mcp::Body> {
    let (headers, body) = stateless(id, method, params);
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    client.request(Method::POST, &headers, &body).await
}

#[tokio::test]
async fn a_session_lasts_until_it_is_deleted() {
    let client = HttpClient::start("", &json!([])).await;
    assert_eq!(client.ask("ping", &json!({})).await, (200, json!({"id": 1, "jsonrpc": "2.0", "result": {}})));
    let (_, listed) = client.ask("tools/list", &json!({})).await;
    assert_eq!(listed["result"]["tools"][0]["name"], "codex");
    assert_eq!(client.ask("resources/list", &json!({})).await.1["error"]["code"], -32601);
    assert_eq!(client.request(Method::DELETE, &[], "").await.status(), StatusCode::NO_CONTENT);
    assert_eq!(client.ask("ping", &json!({})).await.0, 404);
    assert_eq!(client.request(Method::DELETE, &[], "").await.status(), StatusCode::NOT_FOUND);
    client.end().await;
}

#[tokio::test]
async fn bad_requests_are_refused() {
    let client = HttpClient::start("", &json!([])).await;
    let ping = request(1, "ping", &json!({})).to_string();
    for (method, headers, body, status) in [
        (Method::POST, vec![("mcp-session-id", "guessed")], ping.as_str(), 404),
        (Method::POST, vec![("content-type", "text/plain")], &ping, 415),
        (Method::POST, vec![("accept", "application/json")], &ping, 406),
        (Method::POST, vec![("accept", "text/event-stream")], &ping, 406),
        (Method::POST, vec![("accept", "*/*")], &ping, 200),
        (Method::POST, vec![("mcp-protocol-version", "1999-01-01")], &ping, 400),
        (Method::POST, vec![], "{", 400),
        (Method::POST, vec![], "7", 400),
        (Method::POST, vec![], r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, 202),
        (Method::GET, vec![("accept", "application/json")], "", 406),
        (Method::GET, vec![("last-event-id", "77-1")], "", 400),
        (Method::GET, vec![("last-event-id", "nonsense")], "", 400),
        (Method::PUT, vec![], "", 405),
    ] {
        let answer = client.request(method.clone(), &headers, body).await;
        assert_eq!(answer.status().as_u16(), status, "{method} {headers:?} {body}");
    }
    let bare = HttpClient { headers: Vec::new(), ..client };
    assert_eq!(bare.ask("ping", &json!({})).await.0, 400, "a session must be named");
    let refused = bare.ask("initialize", &json!({})).await;
    assert_eq!((refused.0, &refused.1["error"]["code"]), (400, &json!(-32602)));
    bare.end().await;
}

#[tokio::test]
async fn a_batch_is_answered_with_a_stream() {
    let client = HttpClient::start("", &json!([])).await;
    let batch = json!([request(1, "ping", &json!({})), request(2, "nosuch", &json!({})), {"method": "x"}]);
    let mut events = Events::of(client.post(&batch).await);
    assert_eq!(events.next().await.expect("an answer")["id"], 1);
    assert_eq!(events.next().await.expect("an answer")["error"]["code"], -32601);
    assert!(events.next().await.is_none());
    client.end().await;
}

#[tokio::test]
async fn a_call_streams_its_events_and_its_question_is_answered_by_another_request() {
    let client = HttpClient::start(ASKS, &json!([command("touch out"), text("Done.")])).await;
    let mut events = client.call(5, "codex", &json!({"prompt": "a"})).await;
    let primed = events.text().await.expect("a stream begins with an id");
    assert_eq!(primed.split_once('\n').map(|(_, rest)| rest), Some("retry: 1000\ndata:\n\n"), "{primed}");
    let configured = events.event("session_configured").await;
    assert_eq!(configured["params"]["_meta"]["requestId"], 5);
    let asked = events.wait(|message| message["method"] == "elicitation/create").await;
    let told = client.post(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}})).await;
    assert_eq!(told.status(), StatusCode::ACCEPTED);
    assert_eq!(events.answer().await["result"]["content"][0]["text"], "Done.");
    assert!(client.place.work("out").exists());
    client.end().await;
}

#[tokio::test]
async fn a_stream_that_broke_off_is_resumed_where_it_was() {
    let client = HttpClient::start(ASKS, &json!([command("touch out"), text("Done.")])).await;
    let mut events = client.call(5, "codex", &json!({"prompt": "a"})).await;
    let asked = events.wait(|message| message["method"] == "elicitation/create").await;
    let last = events.last_id.clone();
    // The connection breaks; the call goes on.
    drop(events);
    client.post(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"decision": "approved"}})).await;
    let mut rest = Events::of(client.request(Method::GET, &[("last-event-id", &last)], "").await);
    let begun = rest.next().await.expect("there is more");
    let number = |id: &str| id.rsplit_once('-').and_then(|(_, number)| number.parse::<u64>().ok());
    assert_eq!(number(&rest.last_id), number(&last).map(|last| last + 1), "nothing is left out: {begun}");
    assert_eq!(rest.answer().await["result"]["content"][0]["text"], "Done.");
    // A complete stream can be read again too.
    let mut again = Events::of(client.request(Method::GET, &[("last-event-id", &last)], "").await);
    assert_eq!(again.next().await, Some(begun));
    assert_eq!(again.answer().await["id"], 5);
    client.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_standing_stream_is_kept_open_and_the_latest_reader_has_it() {
    let client = HttpClient::start("", &json!([])).await;
    let mut first = Events::of(client.request(Method::GET, &[], "").await);
    assert_eq!(first.text().await.as_deref(), Some(": still here\n\n"));
    let mut second = Events::of(client.request(Method::GET, &[], "").await);
    assert_eq!(first.text().await, None);
    assert_eq!(second.text().await.as_deref(), Some(": still here\n\n"));
    client.request(Method::DELETE, &[], "").await;
    assert_eq!(second.text().await, None, "it ends with its session");
    client.end().await;
}

#[tokio::test]
async fn a_deleted_session_interrupts_its_calls() {
    let client = HttpClient::start("", &json!([hang(), text("Next.")])).await;
    let mut events = client.call(5, "codex", &json!({"prompt": "a"})).await;
    let thread = events.event("session_configured").await["params"]["msg"]["session_id"].clone();
    events.event("agent_message_delta").await;
    client.request(Method::DELETE, &[], "").await;
    while events.next().await.is_some_and(|message| message.get("method").is_some()) {}
    let mut client = client;
    client.initialize().await;
    let mut events = client.call(6, "codex-reply", &json!({"threadId": thread, "prompt": "b"})).await;
    assert_eq!(events.answer().await["result"]["content"][0]["text"], "Next.");
    client.end().await;
}

#[tokio::test]
async fn a_cancelled_call_is_interrupted_and_its_stream_ends() {
    let client = HttpClient::start("", &json!([hang()])).await;
    let mut events = client.call(5, "codex", &json!({"prompt": "a"})).await;
    events.event("agent_message_delta").await;
    client.post(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})).await;
    events.event("turn_aborted").await;
    while let Some(message) = events.next().await {
        assert!(message.get("method").is_some(), "a cancelled call is not answered: {message}");
    }
    client.end().await;
}

#[tokio::test]
async fn sessions_are_few_and_the_oldest_idle_one_makes_way() {
    let mut client = HttpClient::start("", &json!([hang()])).await;
    // The first one is in use.
    let mut events = client.call(5, "codex", &json!({"prompt": "a"})).await;
    events.event("task_started").await;
    let first = client.headers.clone();
    let second = client.open_session().await.expect("there is room");
    for _ in 2..64 {
        client.open_session().await.expect("there is room");
    }
    assert_eq!(client.ask("ping", &json!({})).await.0, 200);
    client.open_session().await.expect("the second one makes way");
    let ping = request(1, "ping", &json!({})).to_string();
    let gone = client.request(Method::POST, &[("mcp-session-id", &second)], &ping).await;
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    client.headers = first;
    assert_eq!(client.ask("ping", &json!({})).await.0, 200, "the one with a call does not");
    client.end().await;
}

#[tokio::test]
async fn a_server_whose_sessions_are_all_in_use_has_no_room() {
    let client = HttpClient::connect("", &json!([]));
    let mut readers = Vec::new();
    for _ in 0..64 {
        let id = client.open_session().await.expect("there is room");
        readers.push(client.request(Method::GET, &[("mcp-session-id", &id)], "").await);
    }
    assert_eq!(client.open_session().await, Err(StatusCode::SERVICE_UNAVAILABLE));
    readers.pop();
    assert!(client.open_session().await.is_ok());
    client.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_uses_expires_with_its_questions() {
    let client = HttpClient::start(ASKS, &json!([command("touch out"), text("Done.")])).await;
    let mut events = client.call(5, "codex", &json!({"prompt": "a"})).await;
    events.wait(|message| message["method"] == "elicitation/create").await;
    let minutes = |count: u64| tokio::time::sleep(Duration::from_secs(60 * count));
    // Somebody reads its events.
    minutes(40).await;
    assert_eq!(client.ask("ping", &json!({})).await.0, 200);
    drop(events);
    minutes(61).await;
    assert_eq!(client.ask("ping", &json!({})).await.0, 404);
    let place = client.end().await;
    assert!(!place.work("out").exists());
}

#[tokio::test]
async fn a_stateless_client_needs_no_session() {
    let client = HttpClient::connect("", &json!([text("Hi.")]));
    let found = post_stateless(&client, 1, "server/discover", json!({})).await;
    assert!(!found.headers().contains_key("mcp-session-id"));
    assert_eq!(message(found).await["result"]["resultType"], "complete");
    let arguments = json!({"name": "codex", "arguments": {"prompt": "hi"}});
    let mut events = Events::of(post_stateless(&client, 2, "tools/call", arguments).await);
    let configured = events.text().await.expect("there are events");
    assert!(configured.starts_with("event: message\n"), "a stream that cannot be resumed has no ids: {configured}");
    assert_eq!(events.answer().await["result"]["content"][0]["text"], "Hi.");
    for (method, params, status) in [
        ("ping", json!({}), 404),
        ("tools/call", json!({}), 400),
        ("tools/call", json!({"name": "codex", "arguments": {}, "requestState": "made up"}), 400),
    ] {
        let answer = post_stateless(&client, 3, method, params).await;
        assert_eq!(answer.status().as_u16(), status, "{method}");
        assert_eq!(message(answer).await["id"], 3);
    }
    client.end().await;
}

#[tokio::test]
async fn headers_that_contradict_the_message_are_refused() {
    let client = HttpClient::connect("", &json!([]));
    let params = json!({"name": "codex", "arguments": {"prompt": "hi"}});
    let (headers, body) = stateless(1, "tools/call", params);
    for (name, value) in
        [("mcp-protocol-version", "2025-11-25"), ("mcp-method", "tools/list"), ("mcp-name", "codex-reply")]
    {
        let mut wrong: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        wrong.push((name, value));
        let answer = client.request(Method::POST, &wrong, &body).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{name}");
        assert_eq!(message(answer).await["error"]["code"], -32020, "{name}");
        let missing: Vec<_> = wrong.into_iter().filter(|(header, _)| *header != name).collect();
        let answer = client.request(Method::POST, &missing, &body).await;
        assert_eq!(message(answer).await["error"]["code"], -32020, "{name} is missing");
    }
    let bare = request(1, "tools/list", &json!({})).to_string();
    let named = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    let answer = client.request(Method::POST, &named, &bare).await;
    assert_eq!(message(answer).await["error"]["code"], -32602, "the message says nothing that a header could repeat");
    let mut encoded: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    encoded.push(("mcp-name", "=?base64?Y29kZXg=?="));
    drop(Events::of(client.request(Method::POST, &encoded, &body).await));
    client.end().await;
}

#[tokio::test]
async fn closing_the_stream_of_a_stateless_call_interrupts_it() {
    let client = HttpClient::connect("", &json!([hang(), text("Next.")]));
    let call = json!({"name": "codex", "arguments": {"prompt": "a"}});
    let mut events = Events::of(post_stateless(&client, 1, "tools/call", call).await);
    let thread = events.event("session_configured").await["params"]["msg"]["session_id"].clone();
    events.event("agent_message_delta").await;
    drop(events);
    // Joined to the turn that hangs, this one would have no answer.
    let loaded = client.place.threads.loaded().pop().expect("it is loaded");
    while loaded.running().await.expect("it runs").is_some() {
        tokio::task::yield_now().await;
    }
    let reply = json!({"name": "codex-reply", "arguments": {"threadId": thread, "prompt": "b"}});
    let mut events = Events::of(post_stateless(&client, 2, "tools/call", reply).await);
    assert_eq!(events.answer().await["result"]["content"][0]["text"], "Next.");
    client.end().await;
}

#[tokio::test]
async fn a_stateless_question_is_answered_by_the_call_sent_again() {
    let client = HttpClient::connect(ASKS, &json!([command("touch out"), text("Done.")]));
    let mut call = json!({"name": "codex", "arguments": {"prompt": "a"}});
    let mut events = Events::of(post_stateless(&client, 1, "tools/call", call.clone()).await);
    let asked = events.answer().await["result"].clone();
    assert_eq!(asked["resultType"], "input_required");
    let key = asked["inputRequests"].as_object().and_then(|all| all.keys().next()).expect("something is asked");
    call["inputResponses"] = json!({key: {"action": "accept", "content": {}}});
    call["requestState"] = asked["requestState"].clone();
    let mut events = Events::of(post_stateless(&client, 2, "tools/call", call.clone()).await);
    assert_eq!(events.answer().await["result"]["content"][0]["text"], "Done.");
    assert!(client.place.work("out").exists());
    assert_eq!(post_stateless(&client, 3, "tools/call", call).await.status(), StatusCode::BAD_REQUEST, "a replay");
    client.end().await;
}
