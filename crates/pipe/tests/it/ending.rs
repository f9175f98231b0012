//! The end of a connection.

use expect_test::expect;
use tokio::io::AsyncWriteExt;

use crate::client::{Client, long_text, op, say};

const HANG: &str = r#"[{"items": [{"hang": true}]}]"#;

#[tokio::test(start_paused = true)]
async fn a_shutdown_during_a_turn_aborts_it_and_is_confirmed_last() {
    let mut client = Client::start(HANG).await;
    client.send(&say("1", "hi")).await;
    client.until("token_count").await;
    client.send(&op("2", "shutdown")).await;
    client
        .check(expect![[r#"
        {"id":"","msg":{"type":"session_configured",…}}
        {"id":"1","msg":{"type":"task_started","model_context_window":272000}}
        {"id":"1","msg":{"type":"user_message","message":"hi","images":[]}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"turn_aborted","reason":"interrupted"}}
        {"id":"2","msg":{"type":"shutdown_complete"}}
    "#]])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_is_obeyed_though_more_lines_follow() {
    let mut client = Client::start(HANG).await;
    client.send_bytes(format!("{}\n{}\n", op("1", "shutdown"), say("2", "too late")).as_bytes()).await;
    client
        .check(expect![[r#"
        {"id":"","msg":{"type":"session_configured",…}}
        {"id":"1","msg":{"type":"shutdown_complete"}}
    "#]])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_confirms_after_a_finished_turn() {
    let mut client = Client::start(r#"[{"items": [{"text": "bye"}]}]"#).await;
    client.forget_greeting().await;
    client.send(&say("1", "hi")).await;
    client.until("task_complete").await;
    client.send(&op("2", "shutdown")).await;
    client
        .check(expect![[r#"
            {"id":"1",turn of 272000 tokens: "hi" → "bye"}
            {"id":"2","msg":{"type":"shutdown_complete"}}
        "#]])
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_input_lets_the_turn_finish() {
    let mut client =
        Client::start(r#"[{"items": [{"text": "slow", "deltas": ["sl", {"pause_ms": 60000}, "ow"]}]}]"#).await;
    client.send(&say("1", "hi")).await;
    client.until("agent_message_delta").await;
    client
        .end_and_check(expect![[r#"
        {"id":"","msg":{"type":"session_configured",…}}
        {"id":"1","msg":{"type":"task_started","model_context_window":272000}}
        {"id":"1","msg":{"type":"user_message","message":"hi","images":[]}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"agent_message_delta","delta":"sl"}}
        {"id":"1","msg":{"type":"agent_message_delta","delta":"ow"}}
        {"id":"1","msg":{"type":"agent_message","message":"slow"}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"task_complete","last_agent_message":"slow"}}
    "#]])
        .await;
}

#[tokio::test(start_paused = true)]
async fn no_input_at_all_is_a_connection_too() {
    Client::start("[]")
        .await
        .end_and_check(expect![[r#"
        {"id":"","msg":{"type":"session_configured",…}}
    "#]])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_ends_the_thread_without_an_error() {
    let mut client = Client::start(HANG).await;
    client.send(&say("1", "hi")).await;
    client.until("token_count").await;
    let mut muted = client.stop_reading();
    muted.input.write_all(format!("{}\n", op("2", "get_path")).as_bytes()).await.unwrap();
    muted.served.await.unwrap().unwrap();
    assert!(muted.thread.interrupt().await.is_err(), "the thread is still open");
    let rollout = std::fs::read_to_string(&muted.thread.started().rollout).unwrap();
    let last = rollout.lines().last().unwrap();
    assert!(last.contains("\"turn_aborted\",\"reason\":\"interrupted\""), "{rollout}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_can_still_interrupt() {
    let script = format!(r#"[{{"items": [{{"text": "{}"}}, {{"hang": true}}]}}]"#, long_text());
    let mut client = Client::start(&script).await;
    client.forget_greeting().await;
    client.send(&say("1", "hi")).await;
    client.until_saved("agent_message").await;
    client.send(&op("2", "interrupt")).await;
    client.until_saved("turn_aborted").await;
    client
        .end_and_check(expect![[r#"
        {"id":"1","msg":{"type":"task_started","model_context_window":272000}}
        {"id":"1","msg":{"type":"user_message","message":"hi","images":[]}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"agent_message_delta","delta":"LONG"}}
        {"id":"1","msg":{"type":"agent_message","message":"LONG"}}
        {"id":"1","msg":{"type":"turn_aborted","reason":"interrupted"}}
    "#]])
        .await;
}
