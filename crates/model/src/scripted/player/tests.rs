use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::*;
use crate::scripted::responses_events;

/// Plays a script to some requests; shows which entry answers each, and the answers of the model.
#[track_caller]
fn check(script: &str, requests: &[&str], expected: Expect) {
    let mut player = Player::new(Script::from_json(script).unwrap());
    let mut shown = String::new();
    for request in requests {
        let Taken { number, entry } = player.take(|| format!(r#"{{"input":["{request}"]}}"#).into_bytes());
        let items = format!("{:?}", entry.items);
        let said = entry.plain.map_or(items, |plain| format!("{} {}", plain.status, plain.body));
        writeln!(shown, "{request} -> {number:?} {said}").unwrap();
    }
    expected.assert_eq(&shown);
}

#[test]
fn entries_play_in_order_until_the_script_is_used_up() {
    check(
        r#"[{"items": [{"hang": true}]}, {"items": []}]"#,
        &["a", "b", "c"],
        expect![[r#"
            a -> Some(1) [Hang]
            b -> Some(2) []
            c -> None 500 {"error":{"message":"script exhausted"}}
        "#]],
    );
}

#[test]
fn wanted_entries_go_first_and_repeated_ones_stay() {
    check(
        r#"{"entries": [{"items": []}, {"when": ["ALPHA", "x"]}, {"when": "ALPHA", "repeat": true}, {"repeat": true}]}"#,
        &["ALPHA", "b", "ALPHA x", "ALPHA x", "b", "b"],
        expect![[r#"
            ALPHA -> Some(3) []
            b -> Some(1) []
            ALPHA x -> Some(2) []
            ALPHA x -> Some(3) []
            b -> Some(4) []
            b -> Some(4) []
        "#]],
    );
}

#[test]
fn found_texts_are_filled_in() {
    check(
        r#"[{"find": {"n": "ID (\\d+)", "w": "w\\w+", "no": "never"},
             "items": [{"call": "t", "args": {"id": "${n}", "all": ["${w}-${n}", "${no}"]}}, {"text": "${n}"}]}]"#,
        &["ID 1 then ID 22 and word"],
        expect![[r#"
            ID 1 then ID 22 and word -> Some(1) [Call(Call { name: "t", args: Object {"id": Number(22), "all": Array [String("word-22"), String("${no}")]}, namespace: None, id: None }), Text(Text { whole: "22", deltas: None, done: true, id: None })]
        "#]],
    );
}

#[test]
fn requests_are_searched_with_spaces() {
    assert_eq!(request_text(br#"{"a":[1,"\u00e9"],"b":{}}"#), r#"{"a": [1, "é"], "b": {}}"#);
    assert_eq!(request_text(b"nonsense"), r#"{"unparsable": 8}"#);
}

#[track_caller]
fn check_wrong(script: &str, expected: Expect) {
    expected.assert_eq(&Script::from_json(script).unwrap_err().to_string());
}

#[test]
fn wrong_scripts_are_explained() {
    check_wrong("nonsense", expect!["the script is not JSON"]);
    check_wrong("5", expect!["a script is a list of entries, or an object with nothing but `entries`"]);
    check_wrong(
        r#"{"entries": [], "more": 1}"#,
        expect!["a script is a list of entries, or an object with nothing but `entries`"],
    );
    check_wrong(
        r#"[{}, {"itmes": []}]"#,
        expect![
            "entry 2 of the script: unknown field `itmes`, expected one of `id`, `items`, `usage`, `when`, `repeat`, `find`, `headers`, `status`, `body`, `delay_ms`, `end`, `follows_schema`"
        ],
    );
    check_wrong(
        r#"[{"items": [{"text": "a"}, {"text": "b", "delta": []}]}]"#,
        expect!["entry 1 of the script: item 2: unknown field `delta`, expected one of `text`, `deltas`, `done`, `id`"],
    );
    check_wrong(
        r#"[{"items": [{"say": "a"}]}]"#,
        expect![[r#"entry 1 of the script: item 1: of no known kind: {"say":"a"}"#]],
    );
    check_wrong(
        r#"[{"items": [{"pause_ms": -1}]}]"#,
        expect!["entry 1 of the script: item 1: cannot convert float seconds to Duration: value is negative"],
    );
    check_wrong(
        r#"[{"end": "torn"}]"#,
        expect![
            "entry 1 of the script: unknown variant `torn`, expected one of `completed`, `cut`, `reset`, `failed`, `incomplete`"
        ],
    );
    check_wrong(
        r#"[{"find": {"n": "("}}]"#,
        expect!["entry 1 of the script: `find` of `n`: found open group without closing ')'"],
    );
}

/// Shows the steps of the first entry, one per line.
#[track_caller]
fn check_steps(entry: &str, expected: Expect) {
    let mut player = Player::new(Script::from_json(&format!("[{entry}]")).unwrap());
    let Taken { number, entry } = player.take(Vec::new);
    let lines = responses_events(entry, number.unwrap()).map(|step| match step {
        crate::scripted::Step::Event(event) => format!("{event}\n"),
        other => format!("{other:?}\n"),
    });
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn messages_with_pauses() {
    check_steps(
        r#"{"items": [{"text": "Hello", "deltas": ["Hel", {"pause_ms": 1.5}, "lo"]}, {"hang": true}], "usage": {"cached": 7}}"#,
        expect![[r#"
            {"type":"response.created","response":{"id":"resp-1"}}
            {"type":"response.output_item.added","output_index":0,"item":{"type":"message","role":"assistant","id":"msg-1-1","content":[]}}
            {"type":"response.output_text.delta","item_id":"msg-1-1","output_index":0,"content_index":0,"delta":"Hel"}
            Pause(1.5ms)
            {"type":"response.output_text.delta","item_id":"msg-1-1","output_index":0,"content_index":0,"delta":"lo"}
            {"type":"response.output_item.done","output_index":0,"item":{"type":"message","role":"assistant","id":"msg-1-1","content":[{"type":"output_text","text":"Hello"}]}}
            Hang
            {"type":"response.completed","response":{"id":"resp-1","usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":7,"cache_write_tokens":0},"output_tokens":10,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":110},"text":{"format":{"type":"text"}}}}
        "#]],
    );
}

#[test]
fn thoughts() {
    check_steps(
        r#"{"items": [{"reasoning": ["éü", "x"], "raw": "abc", "id": "R"}], "end": "cut"}"#,
        expect![[r#"
            {"type":"response.created","response":{"id":"resp-1"}}
            {"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"R","summary":[]}}
            {"type":"response.reasoning_summary_part.added","item_id":"R","summary_index":0}
            {"type":"response.reasoning_summary_text.delta","item_id":"R","summary_index":0,"delta":"é"}
            {"type":"response.reasoning_summary_text.delta","item_id":"R","summary_index":0,"delta":"ü"}
            {"type":"response.reasoning_summary_text.done","item_id":"R","summary_index":0,"text":"éü"}
            {"type":"response.reasoning_summary_part.added","item_id":"R","summary_index":1}
            {"type":"response.reasoning_summary_text.delta","item_id":"R","summary_index":1,"delta":"x"}
            {"type":"response.reasoning_summary_text.done","item_id":"R","summary_index":1,"text":"x"}
            {"type":"response.reasoning_text.delta","item_id":"R","content_index":0,"delta":"a"}
            {"type":"response.reasoning_text.delta","item_id":"R","content_index":0,"delta":"bc"}
            {"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"R","encrypted_content":"c2VjcmV0","summary":[{"type":"summary_text","text":"éü"},{"type":"summary_text","text":"x"}],"content":[{"type":"reasoning_text","text":"abc"}]}}
        "#]],
    );
}

#[test]
fn calls() {
    check_steps(
        r#"{"id": "R", "items": [
            {"call": "shell", "args": {"command": ["echo", "hi"]}},
            {"call": "t", "args": "{raw", "namespace": "ns", "id": "X"},
            {"custom": "apply_patch", "input": "*** Begin"},
            {"local_shell": ["ls"], "timeout_ms": 5},
            {"web_search": "rust"},
            {"event": {"type": "x"}}], "end": {"incomplete": "max_output_tokens"}}"#,
        expect![[r#"
            {"type":"response.created","response":{"id":"R"}}
            {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc-1-1","name":"shell","call_id":"call-1-1","arguments":""}}
            {"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc-1-1","name":"shell","call_id":"call-1-1","arguments":"{\"command\": [\"echo\", \"hi\"]}"}}
            {"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"X","name":"t","call_id":"X","namespace":"ns","arguments":""}}
            {"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"X","name":"t","call_id":"X","namespace":"ns","arguments":"{raw"}}
            {"type":"response.output_item.added","output_index":2,"item":{"type":"custom_tool_call","name":"apply_patch","status":"completed","call_id":"call-1-3","input":""}}
            {"type":"response.output_item.done","output_index":2,"item":{"type":"custom_tool_call","name":"apply_patch","status":"completed","call_id":"call-1-3","input":"*** Begin"}}
            {"type":"response.output_item.done","output_index":3,"item":{"type":"local_shell_call","call_id":"call-1-4","status":"completed","action":{"type":"exec","command":["ls"],"timeout_ms":5}}}
            {"type":"response.output_item.added","output_index":4,"item":{"type":"web_search_call","id":"ws-1-5","status":"in_progress"}}
            {"type":"response.output_item.done","output_index":4,"item":{"type":"web_search_call","id":"ws-1-5","status":"completed","action":{"type":"search","query":"rust"}}}
            {"type":"x"}
            {"type":"response.incomplete","response":{"id":"R","incomplete_details":{"reason":"max_output_tokens"}}}
        "#]],
    );
}
