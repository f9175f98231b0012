use codex_wire::tool_spec::ToolList;
use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::testing::{origin, show, split_anywhere};

fn decoder() -> AnthropicDecoder {
    let traits = codex_wire::provider_traits::ProviderTraits::anthropic();
    AnthropicDecoder::new(origin(), AnswerTools::new(&ToolList::of(Vec::new()), &traits), Thoughts::Summary)
}

fn read(data: &[&str]) -> String {
    let mut decoder = decoder();
    show(data, |data, events| match data {
        Some(data) => decoder.decode(data, events),
        None => decoder.end(events),
    })
}

#[track_caller]
fn check(data: &[&str], expected: Expect) {
    expected.assert_eq(&read(data));
}

const START: &str = r#"{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","content":[],"usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":1}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn begin(index: u64, block: &str) -> String {
    format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
}

fn delta(index: u64, delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)
}

fn end(index: u64) -> String {
    format!(r#"{{"type":"content_block_stop","index":{index}}}"#)
}

fn stop(reason: &str) -> String {
    format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":7}}}}"#)
}

#[test]
fn text_with_usage() {
    check(
        &[
            START,
            r#"{"type":"ping"}"#,
            &begin(0, r#"{"type":"text","text":""}"#),
            &delta(0, r#"{"type":"text_delta","text":"Hel"}"#),
            &delta(0, r#"{"type":"text_delta","text":"lo"}"#),
            &end(0),
            &stop("end_turn"),
            STOP,
        ],
        expect![[r#"
            added message
            text "Hel"
            text "lo"
            done {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello"}]}
            completed m1 [60, 30, 20, 7, 0, 67]
        "#]],
    );
}

#[test]
fn reasoning_keeps_its_signature() {
    check(
        &[
            START,
            &begin(0, r#"{"type":"thinking","thinking":"","signature":""}"#),
            &delta(0, r#"{"type":"thinking_delta","thinking":"Let me "}"#),
            &delta(0, r#"{"type":"thinking_delta","thinking":"see."}"#),
            &delta(0, r#"{"type":"signature_delta","signature":"c2ln"}"#),
            &end(0),
            &begin(1, r#"{"type":"redacted_thinking","data":"c2VjcmV0"}"#),
            &end(1),
            &stop("end_turn"),
            STOP,
        ],
        expect![[r#"
            added reasoning
            part 0
            summary 0 "Let me "
            summary 0 "see."
            done {"type":"reasoning","summary":[{"type":"summary_text","text":"Let me see."}],"content":null,"encrypted_content":null} by {"provider":"mock","opaque":{"signature":"c2ln"}}
            done {"type":"reasoning","summary":[],"content":null,"encrypted_content":null} by {"provider":"mock","opaque":{"redacted":"c2VjcmV0"}}
            completed m1 [60, 30, 20, 7, 0, 67]
        "#]],
    );
}

#[test]
fn calls() {
    check(
        &[
            START,
            &begin(0, r#"{"type":"tool_use","id":"t1","name":"shell","input":{}}"#),
            &delta(0, r#"{"type":"input_json_delta","partial_json":"{\"command\":"}"#),
            &delta(0, r#"{"type":"input_json_delta","partial_json":"[\"ls\"]}"}"#),
            &end(0),
            &begin(1, r#"{"type":"tool_use","id":"t2","name":"update_plan","input":{"plan":[]}}"#),
            &end(1),
            &stop("tool_use"),
            STOP,
        ],
        expect![[r#"
            done {"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"t1"}
            done {"type":"function_call","name":"update_plan","arguments":"{\"plan\":[]}","call_id":"t2"}
            completed m1 [60, 30, 20, 7, 0, 67]
        "#]],
    );
}

#[test]
fn nonsense_is_an_error_that_names_it() {
    let call = begin(0, r#"{"type":"tool_use","id":"t","name":"shell","input":{}}"#);
    let error = |data: &[&str]| read(data).lines().last().unwrap_or_default().to_owned();
    let cut = "error stream disconnected before completion: ";
    for (data, expected) in [
        (vec![&*call, &stop("tool_use"), STOP], "the call of shell never closes"),
        (
            vec![&*call, &delta(0, r#"{"type":"input_json_delta","partial_json":"{\"a"}"#), &end(0)],
            "the call of shell never closes",
        ),
        (
            vec![&*call, &end(0), &begin(1, r#"{"type":"tool_use","id":"t","name":"x"}"#)],
            "the id \"t\" is used for two calls",
        ),
        (vec![&*call, &begin(1, r#"{"type":"text"}"#)], "the call of shell never closes"),
        (vec![&delta(3, r#"{"type":"text_delta","text":"x"}"#)], "a delta of block 3 arrived before its start"),
        (vec![&end(2)], "block 2 ended before its start"),
        (vec![START], "stream closed before response.completed"),
        (vec![STOP], "stream closed before response.completed"),
        (vec!["{"], "could not read the event \"{\""),
        (vec![r#"{"type":"content_block_delta","index":0,"delta":7}"#], "could not read the event content_block_delta"),
        (vec![&stop("max_tokens"), STOP], "Incomplete response returned, reason: max_output_tokens"),
        (vec![&stop("refusal"), STOP], "Incomplete response returned, reason: content_filter"),
        (vec![r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#], "Overloaded"),
    ] {
        assert_eq!(error(&data), format!("{cut}{expected}"));
    }
    let full = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#;
    assert_eq!(
        error(&[full]),
        "error the conversation does not fit the model's context window: prompt is too long: 9 > 8"
    );
}

proptest! {
    #[test]
    fn any_split_of_bytes_gives_the_same_events(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let events = [
            START.to_owned(), begin(0, r#"{"type":"thinking"}"#), delta(0, r#"{"type":"thinking_delta","thinking":"hé 🎉"}"#),
            delta(0, r#"{"type":"signature_delta","signature":"s"}"#), end(0), begin(1, r#"{"type":"text"}"#),
            delta(1, r#"{"type":"text_delta","text":"a\n漢"}"#), end(1),
            begin(2, r#"{"type":"tool_use","id":"t","name":"x"}"#),
            delta(2, r#"{"type":"input_json_delta","partial_json":"{\"k\":\"é\"}"}"#), end(2), stop("tool_use"), STOP.to_owned(),
        ];
        let run = |pieces: &[Vec<u8>]| {
            let mut decoder = decoder();
            split_anywhere(pieces, |data, events| decoder.decode(data, events))
        };
        let stream: Vec<u8> = events.iter().flat_map(|data| format!("event: x\ndata: {data}\n\n").into_bytes()).collect();
        let whole = run(std::slice::from_ref(&stream));
        prop_assert!(whole.ends_with("completed m1 [60, 30, 20, 7, 0, 67]\n"), "{}", whole);
        prop_assert_eq!(run(&crate::testing::pieces(&stream, &cuts)), whole);
    }

    #[test]
    fn any_text_does_no_harm(texts in prop::collection::vec(crate::testing::any_json(), 0..6)) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let _ = read(&texts);
    }
}
