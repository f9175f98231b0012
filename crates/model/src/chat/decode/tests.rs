use codex_wire::tool_spec::{CustomTool, ToolList, ToolSpec};
use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::testing::{origin, show, split_anywhere};

fn tools() -> AnswerTools {
    let custom = CustomTool { name: "apply_patch".into(), description: "Patches.".into(), grammar: None };
    let long = ToolSpec::function(format!("mcp__{}", "x".repeat(80)), "Long.", json!({"type": "object"}));
    let list = ToolList::of(vec![ToolSpec::Custom(Arc::new(custom)), long]);
    AnswerTools::new(&list, &codex_wire::provider_traits::ProviderTraits::unknown())
}

fn decoder() -> ChatDecoder {
    ChatDecoder::new(origin(), tools(), Thoughts::Raw, true)
}

/// Decodes chunks, and then the end of the stream unless the answer is complete before.
fn read(chunks: &[&str]) -> String {
    let mut decoder = decoder();
    show(chunks, |data, events| match data {
        Some(data) => decoder.decode(data, events),
        None => decoder.end(events),
    })
}

#[track_caller]
fn check(chunks: &[&str], expected: Expect) {
    expected.assert_eq(&read(chunks));
}

fn delta(delta: &str) -> String {
    format!(r#"{{"id":"c1","choices":[{{"index":0,"delta":{delta}}}]}}"#)
}

const STOP: &str = r#"{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const CALLS: &str = r#"{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
const USAGE: &str = r#"{"id":"c1","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}"#;

#[test]
fn text_with_usage_ends_by_done() {
    check(
        &[
            &delta(r#"{"role":"assistant","content":""}"#),
            &delta(r#"{"content":"Hel"}"#),
            &delta(r#"{"content":"lo\n\u00e9"}"#),
            STOP,
            USAGE,
            "[DONE]",
        ],
        expect![[r#"
            added message
            text "Hel"
            text "lo\né"
            done {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello\né"}]}
            completed c1 [10, 4, 0, 5, 2, 15]
        "#]],
    );
}

#[test]
fn an_answer_may_end_by_the_close_of_the_stream_and_without_usage() {
    check(
        &[&delta(r#"{"content":"Hi"}"#), STOP],
        expect![[r#"
            added message
            text "Hi"
            done {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi"}]}
            completed c1 none
        "#]],
    );
    check(
        &[&delta(r#"{"content":"Hi"}"#), "[DONE]"],
        expect![[r#"
            added message
            text "Hi"
            done {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi"}]}
            completed c1 none
        "#]],
    );
}

#[test]
fn a_truncated_answer_is_incomplete() {
    check(
        &[&delta(r#"{"content":"Hi"}"#)],
        expect![[r#"
            added message
            text "Hi"
            error stream disconnected before completion: stream closed before response.completed
        "#]],
    );
}

#[test]
fn thoughts_come_in_either_field() {
    check(
        &[
            &delta(r#"{"reasoning_content":"hm","content":null}"#),
            &delta(r#"{"reasoning":" so"}"#),
            &delta(r#"{"content":"Yes."}"#),
            STOP,
        ],
        expect![[r#"
            added reasoning
            thought 0 "hm"
            thought 0 " so"
            done {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm so"}],"encrypted_content":null}
            added message
            text "Yes."
            done {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes."}]}
            completed c1 none
        "#]],
    );
}

#[test]
fn pieces_of_calls_come_in_any_order_and_several_at_once() {
    check(
        &[
            &delta(r#"{"content":"Look."}"#),
            &delta(
                r#"{"tool_calls":[{"index":1,"function":{"arguments":"{\"b\""}},{"index":0,"id":"a","function":{"name":"shell"}}]}"#,
            ),
            &delta(r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}"#),
            &delta(
                r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"view_image","arguments":":2}"}},{"index":0,"function":{"arguments":"1}"}}]}"#,
            ),
            CALLS,
            "[DONE]",
        ],
        expect![[r#"
            added message
            text "Look."
            done {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Look."}]}
            done {"type":"function_call","name":"shell","arguments":"{\"a\":1}","call_id":"a"}
            done {"type":"function_call","name":"view_image","arguments":"{\"b\":2}","call_id":"b"}
            completed c1 none
        "#]],
    );
}

#[test]
fn calls_without_an_index_are_distinguished_by_their_ids() {
    let calls = r#"{"tool_calls":[{"id":"a","function":{"name":"x","arguments":"{}"}},{"id":"b","function":{"name":"y","arguments":{"k":1}}}]}"#;
    check(
        &[&delta(calls), CALLS],
        expect![[r#"
            done {"type":"function_call","name":"x","arguments":"{}","call_id":"a"}
            done {"type":"function_call","name":"y","arguments":"{\"k\":1}","call_id":"b"}
            completed c1 none
        "#]],
    );
    let numbered_alike =
        r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x"}},{"index":0,"id":"b","function":{"name":"y"}}]}"#;
    check(
        &[&delta(numbered_alike), CALLS],
        expect![[r#"
            done {"type":"function_call","name":"x","arguments":"{}","call_id":"a"}
            done {"type":"function_call","name":"y","arguments":"{}","call_id":"b"}
            completed c1 none
        "#]],
    );
}

#[test]
fn extra_content_is_kept_with_its_call() {
    let call = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"},"extra_content":{"google":{"thought_signature":"sig"}}}]}"#;
    check(
        &[&delta(call), CALLS],
        expect![[r#"
            done {"type":"function_call","name":"x","arguments":"{}","call_id":"a"} by {"provider":"mock","opaque":{"extra_content":{"google":{"thought_signature":"sig"}}}}
            completed c1 none
        "#]],
    );
}

#[test]
fn a_tool_with_free_text_is_called_as_one_and_names_come_back() {
    let free = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"apply_patch","arguments":"{\"input\":\"*** Begin\"}"}}]}"#;
    check(
        &[&delta(free), CALLS],
        expect![[r#"
            done {"type":"custom_tool_call","call_id":"a","name":"apply_patch","input":"*** Begin"}
            completed c1 none
        "#]],
    );
    let long = format!("mcp__{}", "x".repeat(80));
    let name =
        crate::tool_names::accepted_name(&long, &codex_wire::provider_traits::ProviderTraits::unknown()).into_owned();
    let call = format!(r#"{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"{name}","arguments":""}}}}]}}"#);
    assert!(read(&[&delta(&call), CALLS]).contains(&long));
}

#[test]
fn an_invalid_call_is_an_error_or_reported_to_the_model() {
    let call = |arguments: &str| {
        delta(&format!(
            r#"{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"x","arguments":{arguments}}}}}]}}"#
        ))
    };
    check(
        &[&call(r#""{\"a\":""#), CALLS],
        expect![[r#"
            error stream disconnected before completion: the call of x never closes
        "#]],
    );
    check(
        &[&call(r#""{}""#), "[DONE]"],
        expect![[r#"
            error stream disconnected before completion: stream closed before response.completed
        "#]],
    );
    check(
        &[&call(r#""{oops}""#), CALLS],
        expect![[r#"
            done {"type":"function_call","name":"x","arguments":"{oops}","call_id":"a"}
            completed c1 none
        "#]],
    );
    check(
        &[&delta(
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x"}},{"index":1,"id":"a","function":{"name":"y"}}]}"#,
        )],
        expect![[r#"
            error stream disconnected before completion: the id "a" is used for two calls
        "#]],
    );
    check(
        &[&delta(r#"{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]}"#), CALLS],
        expect![[r#"
            error stream disconnected before completion: a call has no name
        "#]],
    );
}

#[test]
fn failures() {
    check(
        &[r#"{"error":{"message":"boom","type":"server_error"}}"#],
        expect![[r#"
            error stream disconnected before completion: boom
        "#]],
    );
    check(
        &[&delta(r#"{"content":"Hi"}"#), r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#],
        expect![[r#"
            added message
            text "Hi"
            error stream disconnected before completion: Incomplete response returned, reason: max_output_tokens
        "#]],
    );
    check(
        &["{oops"],
        expect![[r#"
            error stream disconnected before completion: could not read the event "{oops"
        "#]],
    );
    check(
        &[&delta(r#"{"refusal":"I will "}"#), &delta(r#"{"refusal":"not."}"#), STOP],
        expect![[r#"
            done {"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"I will not."}]}
            completed c1 none
        "#]],
    );
}

proptest! {
    #[test]
    fn any_split_of_bytes_gives_the_same_events(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let chunks = [
            delta(r#"{"reasoning":"hé 🎉"}"#), delta(r#"{"content":"a\n漢"}"#), delta(r#"{"content":"b"}"#),
            delta(r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"k\":"}}]}"#),
            delta(r#"{"tool_calls":[{"index":0,"function":{"arguments":"\"é\"}"}}]}"#), CALLS.to_owned(), USAGE.to_owned(),
            "[DONE]".to_owned(),
        ];
        let run = |pieces: &[Vec<u8>]| {
            let mut decoder = decoder();
            split_anywhere(pieces, |data, events| decoder.decode(data, events))
        };
        let stream: Vec<u8> = chunks.iter().flat_map(|chunk| format!("data: {chunk}\r\n\r\n").into_bytes()).collect();
        let whole = run(std::slice::from_ref(&stream));
        prop_assert!(whole.ends_with("completed c1 [10, 4, 0, 5, 2, 15]\n"), "{}", whole);
        prop_assert_eq!(run(&crate::testing::pieces(&stream, &cuts)), whole);
    }

    #[test]
    fn any_texts_come_out_as_they_are(texts in prop::collection::vec(".{1,20}", 1..8)) {
        let chunk = |text: &String| delta(&format!(r#"{{"content":{}}}"#, serde_json::to_string(text).unwrap()));
        let chunks: Vec<String> = texts.iter().map(chunk).chain([STOP.to_owned()]).collect();
        let read = read(&chunks.iter().map(String::as_str).collect::<Vec<_>>());
        let pieces: Vec<String> = texts.iter().map(|text| format!("text {text:?}")).collect();
        let said: Vec<&str> = read.lines().filter(|line| line.starts_with("text ")).collect();
        prop_assert_eq!(said, pieces);
        prop_assert!(read.contains(&serde_json::to_string(&texts.concat()).unwrap()), "{}", read);
    }

    #[test]
    fn any_text_does_no_harm(texts in prop::collection::vec(crate::testing::any_json(), 0..6)) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let _ = read(&texts);
    }
}
