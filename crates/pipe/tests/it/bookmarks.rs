//! Sessions that begin with `configure_session`, as the earliest clients did.

use expect_test::expect;

use crate::client::{Client, say};

const ANSWERS: &str = r#"[{"id": "r1", "items": [{"text": "one"}]}, {"id": "r2", "items": [{"text": "two"}]},
                          {"id": "r3", "items": [{"text": "three"}]}]"#;
const CONFIGURE: &str = r#"{"id":"0","op":{"type":"configure_session"}}"#;

/// A submission with a text and the answer to return to.
fn say_after(id: &str, text: &str, response: &str) -> String {
    format!(
        r#"{{"id":"{id}","op":{{"type":"user_input","items":[{{"type":"text","text":"{text}"}}],"last_response_id":"{response}"}}}}"#
    )
}

/// The conversation of the latest request, from the thread's file.
fn conversation(client: &Client) -> Vec<String> {
    let mut said = Vec::new();
    let texts = |item: &serde_json::Value| item["content"][0]["text"].as_str().map(str::to_owned);
    for line in client.rollout().lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
        match line["type"].as_str() {
            Some("response_item") => said.extend(texts(&line["payload"])),
            Some("compacted") => {
                let items = line["payload"]["replacement_history"].as_array().cloned().unwrap_or_default();
                said = items.iter().filter_map(texts).collect();
            }
            _ => {}
        }
    }
    said.retain(|text| !text.starts_with("<environment_context>"));
    said
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_turn_is_a_bookmark_that_later_input_may_name() {
    let mut client = Client::start(ANSWERS).await;
    client.forget_greeting().await;
    client.send(CONFIGURE).await;
    client.until("session_configured").await;
    client.send(&say("1", "a")).await;
    client.until("task_complete").await;
    client.send(&say("2", "b")).await;
    client.until("task_complete").await;
    client.send(&say_after("3", "c", "r1")).await;
    client.until("task_complete").await;
    assert_eq!(conversation(&client), ["a", "one", "c", "three"]);
    client
        .end_and_check(expect![[r#"
            {"id":"0","msg":{"type":"session_configured",…}}
            {"id":"1",turn of 272000 tokens: "a" → "one" as "r1"}
            {"id":"2",turn of 272000 tokens: "b" → "two" as "r2"}
            {"id":"3",turn of 272000 tokens: "c" → "three" as "r3"}
        "#]])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_no_bookmark_is_an_error_and_nothing_is_asked() {
    let mut client = Client::start(ANSWERS).await;
    client.forget_greeting().await;
    client.send(CONFIGURE).await;
    client.until("session_configured").await;
    client.send(&say_after("1", "a", "r7")).await;
    client.until("task_complete").await;
    client.end_and_check(expect![[r#"
        {"id":"0","msg":{"type":"session_configured",…}}
        {"id":"1","msg":{"type":"error","message":"no turn has ended with the answer \"r7\", so the input was ignored","codex_error_info":null}}
        {"id":"1","msg":{"type":"task_complete","last_agent_message":null}}
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_not_configured_has_no_bookmarks() {
    let mut client = Client::start(ANSWERS).await;
    client.forget_greeting().await;
    client.send(&say("1", "a")).await;
    client.until("task_complete").await;
    client.send(&say_after("2", "b", "r1")).await;
    client
        .end_and_check(expect![[r#"
            {"id":"1",turn of 272000 tokens: "a" → "one"}
            {"id":"2",turn of 272000 tokens: "b" → "two"}
        "#]])
        .await;
}

#[tokio::test(start_paused = true)]
async fn input_and_a_new_configuration_take_the_place_of_what_runs() {
    let mut client = Client::start(r#"[{"repeat": true, "items": [{"hang": true}]}]"#).await;
    client.forget_greeting().await;
    client.send(CONFIGURE).await;
    client.until("session_configured").await;
    client.send(&say("1", "a")).await;
    client.until("token_count").await;
    client.send(&say("2", "b")).await;
    client.until("token_count").await;
    client.send(CONFIGURE).await;
    client
        .end_and_check(expect![[r#"
        {"id":"0","msg":{"type":"session_configured",…}}
        {"id":"1","msg":{"type":"task_started","model_context_window":272000}}
        {"id":"1","msg":{"type":"user_message","message":"a","images":[]}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"turn_aborted","reason":"replaced"}}
        {"id":"2","msg":{"type":"task_started","model_context_window":272000}}
        {"id":"2","msg":{"type":"user_message","message":"b","images":[]}}
        {"id":"2","msg":{"type":"token_count",…}}
        {"id":"2","msg":{"type":"turn_aborted","reason":"interrupted"}}
        {"id":"0","msg":{"type":"session_configured",…}}
    "#]])
        .await;
}
