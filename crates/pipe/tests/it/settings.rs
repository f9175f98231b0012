//! Settings that clients change, and requests about them.

use expect_test::expect;

use crate::client::{Client, check_answers, op, say};

const ANSWERS: &str = r#"[{"repeat": true, "items": [{"text": "ok"}]}]"#;

/// The settings of each request, as the thread's file has them.
fn turn_contexts(client: &Client) -> String {
    let rollout = client.rollout();
    let lines = rollout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a line is JSON"));
    let contexts = lines.filter(|line| line["type"] == "turn_context");
    contexts.map(|line| format!("{}\n", line["payload"]).replace(&client.path("project"), "PROJECT")).collect()
}

async fn turn(client: &mut Client, line: &str) {
    client.send(line).await;
    client.until("task_complete").await;
}

#[tokio::test(start_paused = true)]
async fn an_override_holds_from_the_next_turn_on_and_null_clears_the_effort() {
    let mut client = Client::start(ANSWERS).await;
    client
        .send(r#"{"id":"1","op":{"type":"override_turn_context","model":"o3","effort":"high","summary":"none"}}"#)
        .await;
    turn(&mut client, &say("2", "hi")).await;
    client.send(r#"{"id":"3","op":{"type":"override_turn_context","approval_policy":"never"}}"#).await;
    turn(&mut client, &say("4", "hi")).await;
    client.send(r#"{"id":"5","op":{"type":"override_turn_context","effort":null}}"#).await;
    turn(&mut client, &say("6", "hi")).await;
    expect![[r#"
        {"cwd":"PROJECT","approval_policy":"on-request","sandbox_policy":{"type":"read-only"},"model":"o3","effort":"high","summary":"none"}
        {"cwd":"PROJECT","approval_policy":"never","sandbox_policy":{"type":"read-only"},"model":"o3","effort":"high","summary":"none"}
        {"cwd":"PROJECT","approval_policy":"never","sandbox_policy":{"type":"read-only"},"model":"o3","summary":"none"}
    "#]].assert_eq(&turn_contexts(&client));
    client
        .end_and_check(expect![[r#"
            {"id":"","msg":{"type":"session_configured",…}}
            {"id":"2",turn of 200000 tokens: "hi" → "ok"}
            {"id":"4",turn of 200000 tokens: "hi" → "ok"}
            {"id":"6",turn of 200000 tokens: "hi" → "ok"}
        "#]])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_user_turn_brings_settings_that_later_turns_keep() {
    let mut client = Client::start(ANSWERS).await;
    client.forget_greeting().await;
    let cwd = client.path("project");
    let line = format!(
        r#"{{"id":"1","op":{{"type":"user_turn","items":[{{"type":"text","text":"hi"}}],"cwd":"{cwd}","approval_policy":"never","sandbox_policy":{{"mode":"danger-full-access"}},"model":"o3","effort":"low","summary":"concise"}}}}"#
    );
    turn(&mut client, &line).await;
    turn(&mut client, &say("2", "again")).await;
    expect![[r#"
        {"cwd":"PROJECT","approval_policy":"never","sandbox_policy":{"type":"danger-full-access"},"model":"o3","effort":"low","summary":"concise"}
        {"cwd":"PROJECT","approval_policy":"never","sandbox_policy":{"type":"danger-full-access"},"model":"o3","effort":"low","summary":"concise"}
    "#]].assert_eq(&turn_contexts(&client));
    client
        .end_and_check(expect![[r#"
            {"id":"1",turn of 200000 tokens: "hi" → "ok"}
            {"id":"2",turn of 200000 tokens: "again" → "ok"}
        "#]])
        .await;
}

#[tokio::test(start_paused = true)]
async fn configuring_the_session_stops_the_turn_and_announces_it_again() {
    let options = crate::client::Options { in_full: true, ..Default::default() };
    let mut client = Client::start_with(r#"[{"items": [{"hang": true}]}]"#, options).await;
    client.forget_greeting().await;
    client.send(&say("1", "hi")).await;
    client.until("token_count").await;
    client.send(r#"{"id":"2","op":{"type":"configure_session","model":"o3","approval_policy":"never"}}"#).await;
    client.end_and_check(expect![[r#"
        {"id":"1","msg":{"type":"task_started","model_context_window":272000}}
        {"id":"1","msg":{"type":"user_message","message":"hi","images":[]}}
        {"id":"1","msg":{"type":"token_count","info":null,"rate_limits":{"primary":null,"secondary":null,"credits":null,"plan_type":null}}}
        {"id":"1","msg":{"type":"turn_aborted","reason":"interrupted"}}
        {"id":"2","msg":{"type":"session_configured","session_id":"THREAD","model":"o3","model_provider_id":"scripted","approval_policy":"never","sandbox_policy":{"type":"read-only"},"cwd":"TEMP/project","history_log_id":0,"history_entry_count":0,"rollout_path":"ROLLOUT"}}
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn the_path_is_returned_on_request() {
    check_answers(
        &[&op("1", "get_path"), &op("", "get_path")],
        expect![[r#"
        {"id":"1","msg":{"type":"conversation_path","conversation_id":"THREAD","path":"ROLLOUT"}}
        {"id":"","msg":{"type":"conversation_path","conversation_id":"THREAD","path":"ROLLOUT"}}
        {"id":"last","msg":{"type":"conversation_path","conversation_id":"THREAD","path":"ROLLOUT"}}
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn unsupported_methods_are_refused_with_a_reason() {
    let lines = [
        op("1", "undo"),
        op("2", "list_mcp_tools"),
        r#"{"id":"3","op":{"type":"exec_approval","id":"call-1","decision":"approved"}}"#.to_owned(),
    ];
    check_answers(
        &lines.each_ref().map(String::as_str),
        expect![[r#"
            {"id":"1","msg":{"type":"warning","message":"`undo` is not supported by this release"}}
            {"id":"2","msg":{"type":"mcp_list_tools_response","tools":{},"resources":{},"resource_templates":{},"auth_statuses":{}}}
            {"id":"3","msg":{"type":"warning","message":"no single open request matches \"call-1\"; name a `call_id`"}}
            {"id":"last","msg":{"type":"conversation_path","conversation_id":"THREAD","path":"ROLLOUT"}}
        "#]],
    )
    .await;
}
