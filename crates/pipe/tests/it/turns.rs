//! Turns as a client sees them.

use codex_dialects::eq::Vocabulary;
use expect_test::{Expect, expect};

use crate::client::{Client, Options, op, say};

/// Plays one turn and compares all output.
async fn check_turn(script: &str, options: Options, expected: Expect) {
    let mut client = Client::start_with(script, options).await;
    client.send(&say("1", "hi")).await;
    client.end_and_check(expected).await;
}

const REASONING: &str = r#"[{"items": [{"reasoning": ["One.", "Two."], "raw": "deep"}, {"text": "A"}]}]"#;

#[tokio::test(start_paused = true)]
async fn a_text_turn_in_full() {
    let script = r#"[{"items": [{"text": "Hello", "deltas": ["Hel", "lo"]}], "usage": {"input": 7, "output": 3}}]"#;
    check_turn(script, Options { in_full: true, ..Options::default() }, expect![[r#"
        {"id":"","msg":{"type":"session_configured","session_id":"THREAD","model":"gpt-5.1-codex","model_provider_id":"scripted","approval_policy":"on-request","sandbox_policy":{"type":"read-only"},"cwd":"TEMP/project","history_log_id":0,"history_entry_count":0,"rollout_path":"ROLLOUT"}}
        {"id":"1","msg":{"type":"task_started","model_context_window":272000}}
        {"id":"1","msg":{"type":"user_message","message":"hi","images":[]}}
        {"id":"1","msg":{"type":"token_count","info":null,"rate_limits":{"primary":null,"secondary":null,"credits":null,"plan_type":null}}}
        {"id":"1","msg":{"type":"agent_message_delta","delta":"Hel"}}
        {"id":"1","msg":{"type":"agent_message_delta","delta":"lo"}}
        {"id":"1","msg":{"type":"agent_message","message":"Hello"}}
        {"id":"1","msg":{"type":"token_count","info":{"total_token_usage":{"input_tokens":7,"cached_input_tokens":0,"output_tokens":3,"reasoning_output_tokens":0,"total_tokens":10},"last_token_usage":{"input_tokens":7,"cached_input_tokens":0,"output_tokens":3,"reasoning_output_tokens":0,"total_tokens":10},"model_context_window":272000},"rate_limits":{"primary":null,"secondary":null,"credits":null,"plan_type":null}}}
        {"id":"1","msg":{"type":"task_complete","last_agent_message":"Hello"}}
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn the_session_is_announced_before_anything_is_asked() {
    let mut client = Client::start_with("[]", Options { in_full: true, ..Options::default() }).await;
    client.until("session_configured").await;
    client.end_and_check(expect![[r#"
        {"id":"","msg":{"type":"session_configured","session_id":"THREAD","model":"gpt-5.1-codex","model_provider_id":"scripted","approval_policy":"on-request","sandbox_policy":{"type":"read-only"},"cwd":"TEMP/project","history_log_id":0,"history_entry_count":0,"rollout_path":"ROLLOUT"}}
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn reasoning_without_the_thoughts_themselves() {
    check_turn(
        REASONING,
        Options::default(),
        expect![[r#"
        {"id":"","msg":{"type":"session_configured",…}}
        {"id":"1","msg":{"type":"task_started","model_context_window":272000}}
        {"id":"1","msg":{"type":"user_message","message":"hi","images":[]}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"agent_reasoning_section_break","item_id":"rs-1-1","summary_index":0}}
        {"id":"1","msg":{"type":"agent_reasoning_delta","delta":"On"}}
        {"id":"1","msg":{"type":"agent_reasoning_delta","delta":"e."}}
        {"id":"1","msg":{"type":"agent_reasoning_section_break","item_id":"rs-1-1","summary_index":1}}
        {"id":"1","msg":{"type":"agent_reasoning_delta","delta":"Tw"}}
        {"id":"1","msg":{"type":"agent_reasoning_delta","delta":"o."}}
        {"id":"1","msg":{"type":"agent_reasoning","text":"One."}}
        {"id":"1","msg":{"type":"agent_reasoning","text":"Two."}}
        {"id":"1","msg":{"type":"agent_message_delta","delta":"A"}}
        {"id":"1","msg":{"type":"agent_message","message":"A"}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"task_complete","last_agent_message":"A"}}
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn reasoning_with_the_thoughts_themselves() {
    let vocabulary = Vocabulary { raw_reasoning: true, ..Vocabulary::default() };
    check_turn(
        REASONING,
        Options { vocabulary, ..Options::default() },
        expect![[r#"
        {"id":"","msg":{"type":"session_configured",…}}
        {"id":"1","msg":{"type":"task_started","model_context_window":272000}}
        {"id":"1","msg":{"type":"user_message","message":"hi","images":[]}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"agent_reasoning_section_break","item_id":"rs-1-1","summary_index":0}}
        {"id":"1","msg":{"type":"agent_reasoning_delta","delta":"On"}}
        {"id":"1","msg":{"type":"agent_reasoning_delta","delta":"e."}}
        {"id":"1","msg":{"type":"agent_reasoning_section_break","item_id":"rs-1-1","summary_index":1}}
        {"id":"1","msg":{"type":"agent_reasoning_delta","delta":"Tw"}}
        {"id":"1","msg":{"type":"agent_reasoning_delta","delta":"o."}}
        {"id":"1","msg":{"type":"agent_reasoning_raw_content_delta","delta":"de"}}
        {"id":"1","msg":{"type":"agent_reasoning_raw_content_delta","delta":"ep"}}
        {"id":"1","msg":{"type":"agent_reasoning","text":"One."}}
        {"id":"1","msg":{"type":"agent_reasoning","text":"Two."}}
        {"id":"1","msg":{"type":"agent_reasoning_raw_content","text":"deep"}}
        {"id":"1","msg":{"type":"agent_message_delta","delta":"A"}}
        {"id":"1","msg":{"type":"agent_message","message":"A"}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"task_complete","last_agent_message":"A"}}
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_reported() {
    let script = r#"[{"items": [{"call": "update_plan", "args": {"explanation": "why", "plan": [{"step": "Look", "status": "in_progress"}]}}]},
                     {"items": [{"text": "done"}]}]"#;
    check_turn(
        script,
        Options::default(),
        expect![[r#"
            {"id":"","msg":{"type":"session_configured",…}}
            {"id":"1","msg":{"type":"task_started","model_context_window":272000}}
            {"id":"1","msg":{"type":"user_message","message":"hi","images":[]}}
            {"id":"1","msg":{"type":"token_count",…}}
            {"id":"1","msg":{"type":"plan_update","explanation":"why","plan":[{"step":"Look","status":"in_progress"}]}}
            {"id":"1","msg":{"type":"token_count",…}}
            {"id":"1","msg":{"type":"token_count",…}}
            {"id":"1","msg":{"type":"agent_message_delta","delta":"done"}}
            {"id":"1","msg":{"type":"agent_message","message":"done"}}
            {"id":"1","msg":{"type":"token_count",…}}
            {"id":"1","msg":{"type":"task_complete","last_agent_message":"done"}}
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_broken_stream_is_reported_and_the_turn_continues() {
    let script = r#"[{"items": [{"text": "Hal", "done": false}], "end": "cut"}, {"items": [{"text": "Hallo"}]}]"#;
    check_turn(script, Options::default(), expect![[r#"
        {"id":"","msg":{"type":"session_configured",…}}
        {"id":"1","msg":{"type":"task_started","model_context_window":272000}}
        {"id":"1","msg":{"type":"user_message","message":"hi","images":[]}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"agent_message_delta","delta":"Hal"}}
        {"id":"1","msg":{"type":"stream_error","message":"stream disconnected before completion: stream closed before response.completed; retrying 1/5 in MS","codex_error_info":{"response_stream_disconnected":{"http_status_code":null}}}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"agent_message_delta","delta":"Hallo"}}
        {"id":"1","msg":{"type":"agent_message","message":"Hallo"}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"task_complete","last_agent_message":"Hallo"}}
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_turn_ends_with_its_error() {
    let script = r#"[{"status": 401, "body": {"error": {"message": "who are you"}}}]"#;
    check_turn(script, Options::default(), expect![[r#"
        {"id":"","msg":{"type":"session_configured",…}}
        {"id":"1","msg":{"type":"task_started","model_context_window":272000}}
        {"id":"1","msg":{"type":"user_message","message":"hi","images":[]}}
        {"id":"1","msg":{"type":"error","message":"not authorized, status 401 Unauthorized: who are you\nCheck the API key, or log in again.","codex_error_info":"unauthorized"}}
        {"id":"1","msg":{"type":"task_complete","last_agent_message":null}}
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn turns_carry_the_id_of_what_started_them_and_joined_input_that_of_its_turn() {
    let script = r#"[{"items": [{"text": "first", "deltas": ["fir", {"pause_ms": 50}, "st"]}]},
                     {"items": [{"text": "joined"}]}, {"items": [{"text": "second"}]}]"#;
    let mut client = Client::start(script).await;
    client.send(&say("a", "one")).await;
    client.until("agent_message_delta").await;
    client.send(&say("b", "two")).await;
    client.until("task_complete").await;
    client.send(&say("c", "three")).await;
    client
        .end_and_check(expect![[r#"
            {"id":"","msg":{"type":"session_configured",…}}
            {"id":"a","msg":{"type":"task_started","model_context_window":272000}}
            {"id":"a","msg":{"type":"user_message","message":"one","images":[]}}
            {"id":"a","msg":{"type":"token_count",…}}
            {"id":"a","msg":{"type":"agent_message_delta","delta":"fir"}}
            {"id":"a","msg":{"type":"agent_message_delta","delta":"st"}}
            {"id":"a","msg":{"type":"agent_message","message":"first"}}
            {"id":"a","msg":{"type":"token_count",…}}
            {"id":"a","msg":{"type":"user_message","message":"two","images":[]}}
            {"id":"a","msg":{"type":"token_count",…}}
            {"id":"a","msg":{"type":"agent_message_delta","delta":"joined"}}
            {"id":"a","msg":{"type":"agent_message","message":"joined"}}
            {"id":"a","msg":{"type":"token_count",…}}
            {"id":"a","msg":{"type":"task_complete","last_agent_message":"joined"}}
            {"id":"c",turn of 272000 tokens: "three" → "second"}
        "#]])
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_aborts_the_turn_and_the_next_one_works() {
    let mut client = Client::start(r#"[{"items": [{"hang": true}]}, {"items": [{"text": "back"}]}]"#).await;
    client.send(&say("1", "hi")).await;
    client.until("token_count").await;
    client.send(&op("2", "interrupt")).await;
    client.until("turn_aborted").await;
    client.send(&op("3", "interrupt")).await;
    client.send(&say("4", "again")).await;
    client
        .end_and_check(expect![[r#"
            {"id":"","msg":{"type":"session_configured",…}}
            {"id":"1","msg":{"type":"task_started","model_context_window":272000}}
            {"id":"1","msg":{"type":"user_message","message":"hi","images":[]}}
            {"id":"1","msg":{"type":"token_count",…}}
            {"id":"1","msg":{"type":"turn_aborted","reason":"interrupted"}}
            {"id":"4",turn of 272000 tokens: "again" → "back"}
        "#]])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_submission_that_arrives_byte_by_byte() {
    let options = Options { pipe: 1, ..Options::default() };
    check_turn(
        r#"[{"items": [{"text": "patient"}]}]"#,
        options,
        expect![[r#"
            {"id":"","msg":{"type":"session_configured",…}}
            {"id":"1",turn of 272000 tokens: "hi" → "patient"}
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn lines_may_end_like_those_of_windows_and_may_be_empty() {
    let mut client = Client::start(r#"[{"items": [{"text": "ok"}]}]"#).await;
    client.forget_greeting().await;
    client.send_bytes(format!("\r\n\n  \r\n{}\r\n", say("1", "hi")).as_bytes()).await;
    client
        .end_and_check(expect![[r#"
            {"id":"1",turn of 272000 tokens: "hi" → "ok"}
        "#]])
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_last_line_needs_no_end() {
    let mut client = Client::start(r#"[{"items": [{"text": "ok"}]}]"#).await;
    client.forget_greeting().await;
    client.send_bytes(say("1", "hi").as_bytes()).await;
    client
        .end_and_check(expect![[r#"
            {"id":"1",turn of 272000 tokens: "hi" → "ok"}
        "#]])
        .await;
}

#[tokio::test(start_paused = true)]
async fn input_without_items_is_answered_at_once() {
    let mut client = Client::start("[]").await;
    client.forget_greeting().await;
    client.send(r#"{"id":"1","op":{"type":"user_input","items":[]}}"#).await;
    client
        .end_and_check(expect![[r#"
        {"id":"1","msg":{"type":"warning","message":"the input has no items, so there is nothing to answer"}}
        {"id":"1","msg":{"type":"task_complete","last_agent_message":null}}
    "#]])
        .await;
}
