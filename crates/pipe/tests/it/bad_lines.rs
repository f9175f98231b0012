//! Lines that are not submissions. Each is answered, and the line after it works.

use codex_lines::MAX_LINE_BYTES;
use expect_test::{Expect, expect};

use crate::client::{Client, check_answers, op};

/// Sends bytes as a line, then a valid line, and compares all output after the greeting.
async fn check_bytes(bytes: &[u8], expected: Expect) {
    let mut client = Client::start("[]").await;
    client.forget_greeting().await;
    client.send_bytes(bytes).await;
    client.send("").await;
    client.send(&op("last", "get_path")).await;
    client.end_and_check(expected).await;
}

#[tokio::test(start_paused = true)]
async fn input_that_is_not_json() {
    check_answers(&["hello", "{", r#"{"id":"1","op":{"type":"get_path"}} x"#], expect![[r#"
        {"id":"","msg":{"type":"warning","message":"line 1 is not a submission: expected value at column 1"}}
        {"id":"","msg":{"type":"warning","message":"line 2 is not a submission: EOF while parsing an object at column 1"}}
        {"id":"","msg":{"type":"warning","message":"line 3 is not a submission: trailing characters at column 37"}}
        {"id":"last","msg":{"type":"conversation_path","conversation_id":"THREAD","path":"ROLLOUT"}}
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn json_that_is_no_submission() {
    check_answers(
        &["[]", "null", "\"x\"", r#"{"id":"1"}"#, r#"{"op":{"type":"get_path"}}"#],
        expect![[r#"
        {"id":"","msg":{"type":"warning","message":"line 1 is not a submission: expected an object with `id` and `op`"}}
        {"id":"","msg":{"type":"warning","message":"line 2 is not a submission: expected an object with `id` and `op`"}}
        {"id":"","msg":{"type":"warning","message":"line 3 is not a submission: expected an object with `id` and `op`"}}
        {"id":"1","msg":{"type":"warning","message":"line 4 is not a submission: missing field `op`"}}
        {"id":"","msg":{"type":"warning","message":"line 5 is not a submission: missing field `id`"}}
        {"id":"last","msg":{"type":"conversation_path","conversation_id":"THREAD","path":"ROLLOUT"}}
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_op_of_an_unknown_kind_or_none() {
    check_answers(
        &[&op("1", "fly"), r#"{"id":"2","op":{}}"#, r#"{"id":"3","op":"interrupt"}"#],
        expect![[r#"
        {"id":"1","msg":{"type":"warning","message":"line 1 is not a submission: unknown op `fly`"}}
        {"id":"2","msg":{"type":"warning","message":"line 2 is not a submission: missing field `type`"}}
        {"id":"3","msg":{"type":"warning","message":"line 3 is not a submission: missing field `type`"}}
        {"id":"last","msg":{"type":"conversation_path","conversation_id":"THREAD","path":"ROLLOUT"}}
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_wrong_or_missing() {
    let lines = [
        r#"{"id":"1","op":{"type":"user_input"}}"#,
        r#"{"id":"2","op":{"type":"user_input","items":"hi"}}"#,
        r#"{"id":"3","op":{"type":"user_input","items":[{"type":"smell"}]}}"#,
        r#"{"id":"4","op":{"type":"override_turn_context","approval_policy":"maybe"}}"#,
        r#"{"id":5,"op":{"type":"interrupt"}}"#,
    ];
    check_answers(&lines, expect![[r#"
        {"id":"1","msg":{"type":"warning","message":"line 1 is not a submission: missing field `items`"}}
        {"id":"2","msg":{"type":"warning","message":"line 2 is not a submission: invalid type: string \"hi\", expected a sequence"}}
        {"id":"3","msg":{"type":"warning","message":"line 3 is not a submission: unknown variant `smell`, expected one of `text`, `image`, `local_image`, `skill`, `mention`"}}
        {"id":"4","msg":{"type":"warning","message":"line 4 is not a submission: unknown value `maybe`, expected one of untrusted, on-failure, on-request, never"}}
        {"id":"","msg":{"type":"warning","message":"line 5 is not a submission: invalid type: integer `5`, expected a string"}}
        {"id":"last","msg":{"type":"conversation_path","conversation_id":"THREAD","path":"ROLLOUT"}}
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_text() {
    check_bytes(
        b"\xff\xfe",
        expect![[r#"
            {"id":"","msg":{"type":"warning","message":"line 1 is not a submission: expected value at column 1"}}
            {"id":"last","msg":{"type":"conversation_path","conversation_id":"THREAD","path":"ROLLOUT"}}
        "#]],
    )
    .await;
    check_bytes(b"{\"id\":\"\xc3\x28\",\"op\":{\"type\":\"get_path\"}}", expect![[r#"
        {"id":"","msg":{"type":"warning","message":"line 1 is not a submission: invalid unicode code point at column 8"}}
        {"id":"last","msg":{"type":"conversation_path","conversation_id":"THREAD","path":"ROLLOUT"}}
    "#]]).await;
    check_bytes(b"{\"id\":\"1\",\"op\":{\"type\":\"get_path\0\"}}", expect![[r#"
        {"id":"","msg":{"type":"warning","message":"line 1 is not a submission: control character (\\u0000-\\u001F) found while parsing a string at column 33"}}
        {"id":"last","msg":{"type":"conversation_path","conversation_id":"THREAD","path":"ROLLOUT"}}
    "#]]).await;
    check_bytes(
        b"\0",
        expect![[r#"
            {"id":"","msg":{"type":"warning","message":"line 1 is not a submission: expected value at column 1"}}
            {"id":"last","msg":{"type":"conversation_path","conversation_id":"THREAD","path":"ROLLOUT"}}
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_levels() {
    let arrays = format!(r#"{{"id":"1","op":{}"#, "[".repeat(10_000));
    let objects = r#"{"op":"#.repeat(10_000);
    check_answers(&[&arrays, &objects], expect![[r#"
        {"id":"","msg":{"type":"warning","message":"line 1 is not a submission: recursion limit exceeded at column 142"}}
        {"id":"","msg":{"type":"warning","message":"line 2 is not a submission: recursion limit exceeded at column 763"}}
        {"id":"last","msg":{"type":"conversation_path","conversation_id":"THREAD","path":"ROLLOUT"}}
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_too_long() {
    let line = vec![b'x'; MAX_LINE_BYTES + 1024 * 1024];
    check_bytes(&line, expect![[r#"
        {"id":"","msg":{"type":"warning","message":"line 1 is not a submission: it has 34603008 bytes, and 33554432 are allowed"}}
        {"id":"last","msg":{"type":"conversation_path","conversation_id":"THREAD","path":"ROLLOUT"}}
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_bad_line_during_a_turn_does_not_disturb_it() {
    let mut client = Client::start(r#"[{"items": [{"text": "ab", "deltas": ["a", {"pause_ms": 50}, "b"]}]}]"#).await;
    client.forget_greeting().await;
    client.send(&crate::client::say("1", "hi")).await;
    client.until("agent_message_delta").await;
    client.send("nonsense").await;
    client.until("warning").await;
    client
        .end_and_check(expect![[r#"
            {"id":"1","msg":{"type":"task_started","model_context_window":272000}}
            {"id":"1","msg":{"type":"user_message","message":"hi","images":[]}}
            {"id":"1","msg":{"type":"token_count",…}}
            {"id":"1","msg":{"type":"agent_message_delta","delta":"a"}}
            {"id":"","msg":{"type":"warning","message":"line 2 is not a submission: expected ident at column 2"}}
            {"id":"1","msg":{"type":"agent_message_delta","delta":"b"}}
            {"id":"1","msg":{"type":"agent_message","message":"ab"}}
            {"id":"1","msg":{"type":"token_count",…}}
            {"id":"1","msg":{"type":"task_complete","last_agent_message":"ab"}}
        "#]])
        .await;
}
