use proptest::prelude::*;

use super::*;
use crate::testing::{any_json, origin, pieces, show, split_anywhere};

fn read(data: &[&str]) -> String {
    let mut decoder = ResponsesDecoder::new(origin(), false);
    show(data, |data, events| match data {
        Some(data) => decoder.decode(data, events),
        None => Err(ModelError::Disconnected { source: None }),
    })
}

fn event(kind: &str, item: &str) -> String {
    format!(r#"{{"type":"response.output_item.{kind}","item":{item}}}"#)
}

fn function(id: &str, arguments: &str) -> String {
    format!(r#"{{"type":"function_call","name":"shell","call_id":"{id}","arguments":"{arguments}"}}"#)
}

const COMPLETED: &str = r#"{"type":"response.completed","response":{"id":"r"}}"#;

#[test]
fn calls_may_be_announced_or_not_and_under_another_id() {
    let whole = event("done", &function("a", "{}"));
    let done = "done {\"type\":\"function_call\",\"name\":\"shell\",\"arguments\":\"{}\",\"call_id\":\"a\"}\n";
    let end = "completed r none\n";
    assert_eq!(read(&[&whole, COMPLETED]), [done, end].concat());
    for announced in ["a", "preliminary"] {
        let begun = event("added", &function(announced, ""));
        assert_eq!(read(&[&begun, &whole, COMPLETED]), ["added function_call\n", done, end].concat());
    }
}

#[test]
fn a_call_that_never_closes_or_an_id_used_twice_ends_the_answer() {
    let begun = event("added", &function("a", ""));
    let custom = event("added", r#"{"type":"custom_tool_call","name":"apply_patch","call_id":"b","input":""}"#);
    let whole = event("done", &function("a", "{}"));
    let error = |data: &[&str]| read(data).lines().last().unwrap_or_default().to_owned();
    for (data, expected) in [
        (vec![&*begun, COMPLETED], "the call of shell never closes"),
        (vec![&*begun, &*custom, &*whole, COMPLETED], "the call of apply_patch never closes"),
        (vec![&*begun, &*whole, &*whole], "the id \"a\" is used for two calls"),
    ] {
        assert_eq!(error(&data), format!("error stream disconnected before completion: {expected}"));
    }
}

#[test]
fn the_number_of_calls_is_limited() {
    let calls: Vec<String> = (0..=MOST_CALLS).map(|n| event("done", &function(&n.to_string(), "{}"))).collect();
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    assert!(read(&calls).ends_with("the model made more than 512 calls at once\n"));
    let announced: Vec<String> = (0..=MOST_CALLS).map(|n| event("added", &function(&n.to_string(), ""))).collect();
    let announced: Vec<&str> = announced.iter().map(String::as_str).collect();
    assert!(read(&announced).ends_with("the model made more than 512 calls at once\n"));
}

proptest! {
    #[test]
    fn any_split_of_bytes_gives_the_same_events(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let events = [
            r#"{"type":"response.created","response":{"id":"r"}}"#.to_owned(),
            event("added", r#"{"type":"reasoning","id":"rs","summary":[]}"#),
            r#"{"type":"response.reasoning_summary_part.added","item_id":"rs","summary_index":0}"#.to_owned(),
            r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs","summary_index":0,"delta":"hé 🎉"}"#.to_owned(),
            event("done", r#"{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"hé 🎉"}],"encrypted_content":"x"}"#),
            event("added", r#"{"type":"message","role":"assistant","id":"m","content":[]}"#),
            r#"{"type":"response.output_text.delta","item_id":"m","delta":"a\n漢"}"#.to_owned(),
            event("done", r#"{"type":"message","role":"assistant","id":"m","content":[{"type":"output_text","text":"a\n漢"}]}"#),
            event("added", &function("c", "")),
            event("done", &function("c", r#"{\"k\":\"é\"}"#)),
            COMPLETED.to_owned(),
        ];
        let run = |pieces: &[Vec<u8>]| {
            let mut decoder = ResponsesDecoder::new(origin(), true);
            split_anywhere(pieces, |data, events| decoder.decode(data, events))
        };
        let stream: Vec<u8> = events.iter().flat_map(|data| format!("event: x\r\ndata: {data}\r\n\r\n").into_bytes()).collect();
        let whole = run(std::slice::from_ref(&stream));
        prop_assert!(whole.contains("text \"a\\n漢\"") && whole.ends_with("completed r none\n"), "{}", whole);
        prop_assert_eq!(run(&pieces(&stream, &cuts)), whole);
    }

    #[test]
    fn any_text_does_no_harm(texts in prop::collection::vec(any_json(), 0..6)) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let _ = read(&texts);
    }
}
