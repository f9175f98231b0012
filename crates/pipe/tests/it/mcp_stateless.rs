//! `codex mcp-server` as a client of the version 2026-07-28 sees it: no handshake, and questions inside results.

use std::time::Duration;

use serde_json::{Value, json};

use crate::mcp_client::{ASKS, McpClient, Place, command, text};

/// A client that has said nothing, with a model that wants to run a command.
fn asked_about_a_command() -> McpClient {
    McpClient::connect(Place::new(ASKS, &json!([command("touch out"), text("Done."), text("More.")])))
}

fn meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    })
}

fn call(arguments: &Value) -> Value {
    json!({"name": "codex", "arguments": arguments, "_meta": meta(&json!({"elicitation": {"form": {}}}))})
}

/// The same call again, with an answer to its one question.
fn retried(params: &Value, asked: &Value, answer: &Value) -> Value {
    let mut params = params.clone();
    let key = asked["inputRequests"].as_object().and_then(|all| all.keys().next()).expect("something is asked");
    params["inputResponses"] = json!({key: answer});
    params["requestState"] = asked["requestState"].clone();
    params
}

/// The one request in a result that asks for input.
fn question(asked: &Value) -> &Value {
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    asked["inputRequests"].as_object().and_then(|all| all.values().next()).expect("something is asked")
}

fn refusal(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    (error["code"].as_i64().expect("it is refused"), error["message"].as_str().expect("it says why"))
}

#[tokio::test]
async fn a_client_discovers_the_server_and_its_tools() {
    let mut client = McpClient::connect(Place::new("", &json!([])));
    let found = client.ask("server/discover", json!({"_meta": meta(&json!({}))})).await["result"].clone();
    assert_eq!((&found["resultType"], &found["capabilities"]), (&json!("complete"), &json!({"tools": {}})));
    let versions = found["supportedVersions"].as_array().expect("a list");
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")), "{versions:?}");
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "codex-mcp-server");
    let listed = client.ask("tools/list", json!({"_meta": meta(&json!({}))})).await["result"].clone();
    assert_eq!((&listed["resultType"], &listed["cacheScope"]), (&json!("complete"), &json!("public")));
    assert!(listed["ttlMs"].is_u64() && listed["tools"][1]["name"] == "codex-reply", "{listed}");
    client.end().await;
}

#[tokio::test]
async fn requests_without_their_envelope_are_refused() {
    let mut client = McpClient::connect(Place::new("", &json!([])));
    let bare = client.ask("server/discover", json!({})).await;
    assert_eq!(refusal(&bare), (-32602, "`_meta` has no `io.modelcontextprotocol/protocolVersion`"));
    let mut newer = meta(&json!({}));
    newer["io.modelcontextprotocol/protocolVersion"] = json!("2030-01-01");
    let newer = client.ask("tools/list", json!({"_meta": newer})).await;
    assert_eq!((refusal(&newer).0, &newer["error"]["data"]["requested"]), (-32022, &json!("2030-01-01")));
    // Methods that only versions with a handshake have, and those that nobody has.
    for method in ["ping", "initialize", "subscriptions/listen", "resources/list"] {
        let answer = client.ask(method, json!({"_meta": meta(&json!({}))})).await;
        assert_eq!(refusal(&answer).0, -32601, "{method}");
    }
    client.end().await;
}

#[tokio::test]
async fn a_call_without_questions_is_complete() {
    let mut client = McpClient::connect(Place::new("", &json!([text("Hi.")])));
    let answer = client.ask("tools/call", call(&json!({"prompt": "hi"}))).await["result"].clone();
    assert_eq!((&answer["resultType"], &answer["content"][0]["text"]), (&json!("complete"), &json!("Hi.")));
    client.end().await;
}

#[tokio::test]
async fn a_question_is_a_result_and_its_answer_continues_the_turn() {
    for (answer, runs) in [
        (json!({"action": "accept", "content": {}}), true),
        (json!({"decision": "approved"}), true),
        (json!({"action": "decline"}), false),
        (json!({"nonsense": true}), false),
    ] {
        let mut client = asked_about_a_command();
        let params = call(&json!({"prompt": "a"}));
        let asked = client.ask("tools/call", params.clone()).await["result"].clone();
        let request = question(&asked);
        assert_eq!(
            (&request["method"], &request["params"]["codex_elicitation"]),
            (&json!("elicitation/create"), &json!("exec-approval"))
        );
        assert!(!client.place.work("out").exists());
        let done = client.ask("tools/call", retried(&params, &asked, &answer)).await["result"].clone();
        assert_eq!(
            (&done["resultType"], &done["content"][0]["text"]),
            (&json!("complete"), &json!("Done.")),
            "{answer}"
        );
        assert_eq!(client.place.work("out").exists(), runs, "{answer}");
        client.end().await;
    }
}

#[tokio::test]
async fn the_events_of_a_turn_go_to_the_request_that_follows_it() {
    let mut client = asked_about_a_command();
    let params = call(&json!({"prompt": "a"}));
    let first = client.request("tools/call", params.clone()).await;
    let asked = client.answer(first).await["result"].clone();
    let second = client.request("tools/call", retried(&params, &asked, &json!({"action": "accept"}))).await;
    client.answer(second).await;
    let of = |id: i64| {
        let of = client.events().into_iter().filter(move |event| event["_meta"]["requestId"] == id);
        of.map(|event| event["msg"]["type"].as_str().expect("it has a type").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of(first).first().map(String::as_str), Some("session_configured"));
    assert_eq!(of(first).last().map(String::as_str), Some("exec_approval_request"));
    assert!(of(second).contains(&"exec_command_end".to_owned()));
    assert_eq!(of(second).last().map(String::as_str), Some("task_complete"));
    client.end().await;
}

#[tokio::test]
async fn a_retry_without_the_answer_is_asked_again() {
    let mut client = asked_about_a_command();
    let params = call(&json!({"prompt": "a"}));
    let asked = client.ask("tools/call", params.clone()).await["result"].clone();
    let mut silent = retried(&params, &asked, &json!({}));
    silent["inputResponses"] = json!({"other": {"action": "accept"}});
    let again = client.ask("tools/call", silent).await["result"].clone();
    assert_eq!(question(&again)["params"]["codex_call_id"], question(&asked)["params"]["codex_call_id"]);
    assert_ne!(again["requestState"], asked["requestState"]);
    client.ask("tools/call", retried(&params, &again, &json!({"action": "accept"}))).await;
    assert!(client.place.work("out").exists());
    client.end().await;
}

#[tokio::test]
async fn a_state_is_good_for_one_retry_of_its_own_call() {
    let mut client = asked_about_a_command();
    let params = call(&json!({"prompt": "a"}));
    let asked = client.ask("tools/call", params.clone()).await["result"].clone();
    let accept = json!({"action": "accept"});
    let good = retried(&params, &asked, &accept);
    let state = asked["requestState"].as_str().expect("it is a text");

    let mut tampered = good.clone();
    tampered["requestState"] = json!(format!("A{}", &state[1..]));
    let answer = client.ask("tools/call", tampered).await;
    assert_eq!(refusal(&answer), (-32602, "`requestState` was not issued by this server"));

    let other = retried(&call(&json!({"prompt": "b"})), &asked, &accept);
    let answer = client.ask("tools/call", other).await;
    assert_eq!(refusal(&answer), (-32602, "`requestState` belongs to another call"));
    assert!(!client.place.work("out").exists(), "no wrong state has answered the question");

    let mut stranger = asked_about_a_command();
    let answer = stranger.ask("tools/call", good.clone()).await;
    assert_eq!(refusal(&answer), (-32602, "`requestState` was not issued by this server"));
    stranger.end().await;

    assert_eq!(client.ask("tools/call", good.clone()).await["result"]["content"][0]["text"], "Done.");
    let replayed = client.ask("tools/call", good).await;
    assert_eq!(refusal(&replayed), (-32602, "`requestState` was used before"));
    client.end().await;
}

#[tokio::test]
async fn a_state_of_another_thread_answers_nothing_there() {
    let script = json!([command("touch out"), command("touch out"), text("Done.")]);
    let mut client = McpClient::connect(Place::new(ASKS, &script));
    let (one, other) = (call(&json!({"prompt": "one"})), call(&json!({"prompt": "other"})));
    let asked_one = client.ask("tools/call", one.clone()).await["result"].clone();
    let asked_other = client.ask("tools/call", other.clone()).await["result"].clone();
    // The answers of one thread with the state of the other.
    let mut mixed = retried(&one, &asked_one, &json!({"action": "accept"}));
    mixed["requestState"] = asked_other["requestState"].clone();
    assert_eq!(refusal(&client.ask("tools/call", mixed).await).1, "`requestState` belongs to another call");
    assert!(!client.place.work("out").exists());
    client.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_ends_its_turn() {
    let mut client = asked_about_a_command();
    let params = call(&json!({"prompt": "a"}));
    let asked = client.ask("tools/call", params.clone()).await["result"].clone();
    let thread = question(&asked)["params"]["_meta"]["threadId"].clone();
    tokio::time::sleep(Duration::from_secs(30 * 60)).await;
    let late = client.ask("tools/call", retried(&params, &asked, &json!({"action": "accept"}))).await;
    assert_eq!(refusal(&late), (-32602, "`requestState` has expired, and the turn was interrupted"));
    assert!(!client.place.work("out").exists());
    // The thread is free for another turn.
    let mut reply = call(&json!({"threadId": thread, "prompt": "b"}));
    reply["name"] = json!("codex-reply");
    let next = client.ask("tools/call", reply).await["result"].clone();
    assert_eq!((&next["resultType"], &next["content"][0]["text"]), (&json!("complete"), &json!("Done.")));
    client.end().await;
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_not_asked_with_a_result() {
    let mut client = asked_about_a_command();
    let mut params = call(&json!({"prompt": "a"}));
    params["_meta"] = meta(&json!({}));
    let done = client.ask("tools/call", params).await["result"].clone();
    assert_eq!((&done["resultType"], &done["content"][0]["text"]), (&json!("complete"), &json!("Done.")));
    assert!(!client.place.work("out").exists());
    client.end().await;
}

#[tokio::test]
async fn the_end_of_the_input_ends_calls_that_wait_for_an_answer() {
    let mut client = asked_about_a_command();
    let asked = client.ask("tools/call", call(&json!({"prompt": "a"}))).await["result"].clone();
    question(&asked);
    let place = client.end().await;
    assert!(!place.work("out").exists());
}

#[tokio::test]
async fn a_question_too_many_interrupts_its_turn() {
    let mut client = asked_about_a_command();
    for number in 0..64 {
        let asked = client.ask("tools/call", call(&json!({"prompt": number.to_string()}))).await["result"].clone();
        question(&asked);
    }
    let refused = client.ask("tools/call", call(&json!({"prompt": "a"}))).await["result"].clone();
    let said = refused["content"][0]["text"].as_str().expect("there is a text");
    assert!(refused["isError"] == true && said.starts_with("Too many calls wait"), "{refused}");
    client.end().await;
}
