use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(data: &str, expected: Expect) {
    let shown = match decode(data) {
        Ok(Some(event)) => format!("{event:?}"),
        Ok(None) => "nothing".to_owned(),
        Err(error) => format!("{error}: {:?}", error.retry()),
    };
    expected.assert_eq(&shown);
}

#[test]
fn text_delta() {
    check(
        r#"{"type":"response.output_text.delta","sequence_number":4,"item_id":"msg-1","output_index":0,"content_index":0,"delta":"a\"\n\u00e9","logprobs":[]}"#,
        expect![[r#"TextDelta { item_id: "msg-1", delta: "a\"\né" }"#]],
    );
}

#[test]
fn text_delta_without_an_item() {
    check(
        r#"{"type":"response.output_text.delta","delta":"x"}"#,
        expect![[r#"TextDelta { item_id: "", delta: "x" }"#]],
    );
}

#[test]
fn reasoning() {
    check(
        r#"{"type":"response.reasoning_summary_part.added","item_id":"rs-1","summary_index":1,"part":{"type":"summary_text","text":""}}"#,
        expect![[r#"ReasoningPartAdded { item_id: "rs-1", index: 1 }"#]],
    );
    check(
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs-1","summary_index":1,"delta":"so"}"#,
        expect![[r#"ReasoningSummaryDelta { item_id: "rs-1", index: 1, delta: "so" }"#]],
    );
    check(
        r#"{"type":"response.reasoning_text.delta","item_id":"rs-1","content_index":0,"delta":"hm"}"#,
        expect![[r#"ReasoningDelta { item_id: "rs-1", index: 0, delta: "hm" }"#]],
    );
    check(
        r#"{"type":"response.reasoning_summary_text.done","item_id":"rs-1","summary_index":1,"text":"so"}"#,
        expect!["nothing"],
    );
}

#[test]
fn items() {
    check(
        r#"{"type":"response.output_item.added","item":{"type":"message","role":"assistant","id":"m","content":[]}}"#,
        expect![[r#"ItemAdded(Message(Message { id: Some("m"), role: "assistant", content: [] }))"#]],
    );
    check(
        r#"{"type":"response.output_item.done","item":{"type":"function_call","id":"fc","name":"shell","call_id":"c","arguments":"{\"a\": 1}"}}"#,
        expect![[
            r#"ItemDone(FunctionCall(FunctionCall { id: Some("fc"), name: "shell", namespace: None, arguments: "{\"a\": 1}", call_id: "c" }), None)"#
        ]],
    );
    check(
        r#"{"type":"response.output_item.done","item":{"type":"hologram","x":1}}"#,
        expect![[r#"ItemDone(Other(Object {"type": String("hologram"), "x": Number(1)}), None)"#]],
    );
}

#[test]
fn unfinished_preview_is_kept_but_unfinished_item_is_an_error() {
    check(
        r#"{"type":"response.output_item.added","item":{"type":"local_shell_call","status":"in_progress"}}"#,
        expect![[r#"ItemAdded(Other(Object {"type": String("local_shell_call"), "status": String("in_progress")}))"#]],
    );
    check(
        r#"{"type":"response.output_item.done","item":{"type":"local_shell_call","status":"completed"}}"#,
        expect![
            "stream disconnected before completion: could not read the event response.output_item.done: Stream { after: None }"
        ],
    );
}

#[test]
fn an_invalid_call_is_kept_if_it_can_be_answered() {
    check(
        r#"{"type":"response.output_item.done","item":{"type":"local_shell_call","call_id":"c","action":{"type":"fly"}}}"#,
        expect![[
            r#"ItemDone(Other(Object {"type": String("local_shell_call"), "call_id": String("c"), "action": Object {"type": String("fly")}}), None)"#
        ]],
    );
    check(
        r#"{"type":"response.output_item.done","item":{"type":"function_call","name":"shell","arguments":"{}"}}"#,
        expect![
            "stream disconnected before completion: could not read the event response.output_item.done: Stream { after: None }"
        ],
    );
}

#[test]
fn completed_with_usage() {
    check(
        r#"{"type":"response.completed","response":{"id":"resp-1","usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60},"output_tokens":10,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":110}}}"#,
        expect![[
            r#"Completed { response_id: "resp-1", usage: Some(TokenUsage { input_tokens: 100, cached_input_tokens: 60, cache_write_input_tokens: 0, output_tokens: 10, reasoning_output_tokens: 4, total_tokens: 110 }), follows_schema: false }"#
        ]],
    );
    check(
        r#"{"type":"response.completed","response":{"id":"r","usage":{"input_tokens":1,"input_tokens_details":null,"output_tokens":2}}}"#,
        expect![[
            r#"Completed { response_id: "r", usage: Some(TokenUsage { input_tokens: 1, cached_input_tokens: 0, cache_write_input_tokens: 0, output_tokens: 2, reasoning_output_tokens: 0, total_tokens: 3 }), follows_schema: false }"#
        ]],
    );
}

#[test]
fn completed_stays_completed_whatever_its_usage() {
    check(
        r#"{"type":"response.completed","response":{"id":"r","usage":"lots"}}"#,
        expect![[r#"Completed { response_id: "r", usage: None, follows_schema: false }"#]],
    );
    check(
        r#"{"type":"response.completed"}"#,
        expect![[r#"Completed { response_id: "", usage: None, follows_schema: false }"#]],
    );
}

#[test]
fn failures() {
    check(
        r#"{"type":"response.failed","response":{"id":"r","error":{"code":"server_error","message":"boom"}}}"#,
        expect!["stream disconnected before completion: boom: Stream { after: None }"],
    );
    check(
        r#"{"type":"response.failed","response":{"id":"r","error":{"code":"rate_limit_exceeded","message":"Please try again in 1.5s."}}}"#,
        expect!["stream disconnected before completion: Please try again in 1.5s.: Stream { after: Some(1.5s) }"],
    );
    check(
        r#"{"type":"response.failed","response":{"id":"r","error":{"code":"context_length_exceeded","message":"too long"}}}"#,
        expect!["the conversation does not fit the model's context window: too long: Never"],
    );
    check(
        r#"{"type":"response.failed","response":{"id":"r","error":null}}"#,
        expect!["stream disconnected before completion: the model failed without a reason: Stream { after: None }"],
    );
    check(
        r#"{"type":"response.failed"}"#,
        expect!["stream disconnected before completion: the model failed without a reason: Stream { after: None }"],
    );
}

#[test]
fn error_events() {
    check(
        r#"{"type":"error","code":"insufficient_quota","message":"no money","param":null}"#,
        expect!["usage limit reached: no money: Never"],
    );
    check(
        r#"{"type":"error","error":{"code":"x","message":"inner"}}"#,
        expect!["stream disconnected before completion: inner: Stream { after: None }"],
    );
    check(
        r#"{"error":{"message":"bare"}}"#,
        expect!["stream disconnected before completion: bare: Stream { after: None }"],
    );
}

#[test]
fn incomplete() {
    let event = |reason| format!(r#"{{"type":"response.incomplete","response":{{"incomplete_details":{reason}}}}}"#);
    check(
        &event(r#"{"reason":"max_output_tokens"}"#),
        expect![
            "stream disconnected before completion: Incomplete response returned, reason: max_output_tokens: Stream { after: None }"
        ],
    );
    check(
        &event(r#"{"reason":"content_filter"}"#),
        expect!["stream disconnected before completion: Incomplete response returned, reason: content_filter: Never"],
    );
    check(
        &event("null"),
        expect![
            "stream disconnected before completion: Incomplete response returned, reason: no reason given: Stream { after: None }"
        ],
    );
}

#[test]
fn unknown_events_are_skipped_whatever_they_hold() {
    check(r#"{"type":"response.created","response":{"id":"r"}}"#, expect!["nothing"]);
    check(r#"{"type":"response.from_the_future","delta":{"a":1},"item_id":7,"response":[]}"#, expect!["nothing"]);
    check(r#"{"x":1}"#, expect!["nothing"]);
    check("[DONE]", expect!["nothing"]);
    check("", expect!["nothing"]);
}

#[test]
fn broken_events_end_the_stream() {
    check(
        r#"{"type":"response.output_item.done","item":{"ty"#,
        expect![[
            r#"stream disconnected before completion: could not read the event "{\"type\":\"response.output_item.done\",\"item\":{\"ty": Stream { after: None }"#
        ]],
    );
    check(
        r#"{"type":"response.output_text.delta"}"#,
        expect![
            "stream disconnected before completion: could not read the event response.output_text.delta: Stream { after: None }"
        ],
    );
    check(
        "pong",
        expect![[r#"stream disconnected before completion: could not read the event "pong": Stream { after: None }"#]],
    );
    check(
        "[1]",
        expect![[r#"stream disconnected before completion: could not read the event "[1]": Stream { after: None }"#]],
    );
}

proptest! {
    #[test]
    fn any_text_does_no_harm(text in ".{0,200}") {
        let _ = decode(&text);
    }

    #[test]
    fn any_delta_arrives_as_it_was(delta in ".{0,100}") {
        let data = serde_json::json!({"type": "response.output_text.delta", "item_id": "m", "delta": delta}).to_string();
        let event = decode(&data).unwrap();
        prop_assert_eq!(event, Some(ModelEvent::TextDelta { item_id: "m".to_owned(), delta }));
    }
}
