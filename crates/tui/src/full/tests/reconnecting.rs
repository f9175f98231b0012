//! A connection that breaks and is restored.

use std::collections::BTreeMap;

use codex_client::Event;
use serde_json::json;

use super::{Screen, opened};
use crate::full::app::Input;
use crate::key::Key;

fn thread(status: &str) -> Event {
    let turn =
        json!({"id": "u", "status": status, "items": [{"type": "agentMessage", "id": "a", "text": "All of it."}]});
    let answer = json!({"thread": {"id": "t", "turns": [turn]}, "reset": true});
    codex_client::router::response(&answer).expect("it is a thread")
}

#[test]
fn a_break_is_told_and_the_draft_and_the_turn_stay() {
    let mut screen = Screen::new(80, 24);
    screen.start_turn();
    screen.type_text("a draft");
    screen.input(Input::Event(Event::Disconnected));
    let text = screen.text();
    assert!(text.contains("connecting again") && text.contains("> a draft"), "{text}");
    assert!(text.contains(" disconnected: connecting again · ") && !text.contains("Working"), "{text}");
    screen.press(&[Key::Enter]);
    assert!(screen.text().contains("1 message waits for the connection"), "{}", screen.text());
    screen.type_text("a draft");
    screen.input(Input::Event(thread("inProgress")));
    screen.input(Input::Event(Event::Reconnected { refused: BTreeMap::new() }));
    let text = screen.text();
    assert!(text.contains("All of it.") && text.contains("> a draft") && text.contains("Working"), "{text}");
    assert!(!text.contains("disconnected") && !text.contains("waits for"), "{text}");
    screen.input(Input::Event(thread("completed")));
    assert!(!screen.text().contains("Working"), "a thread that is told as a whole tells whether a turn runs");
    let refused = BTreeMap::from([("t".to_owned(), "there is no such thread".to_owned())]);
    screen.input(Input::Event(Event::Reconnected { refused }));
    assert!(screen.text().contains("there is no such thread"), "{}", screen.text());
}

#[test]
fn a_turn_that_ends_before_its_start_is_answered_is_over() {
    let mut screen = Screen::new(80, 24);
    screen.type_text("quick");
    screen.press(&[Key::Enter]);
    screen.start_turn();
    screen.end_turn("completed");
    screen.answer("turn/start", Ok(json!({"turn": {"id": "u", "status": "inProgress"}})));
    assert!(!screen.text().contains("Working"), "{}", screen.text());
    screen.type_text("slow");
    screen.press(&[Key::Enter]);
    screen.answer("turn/start", Ok(json!({"turn": {"id": "v", "status": "inProgress"}})));
    assert!(screen.text().contains("Working"), "{}", screen.text());
}

#[test]
fn a_message_keeps_its_name_when_its_turn_ends_before_it() {
    let mut screen = Screen::new(80, 24);
    screen.start_turn();
    screen.type_text("and this");
    screen.press(&[Key::Enter]);
    screen.answer("turn/steer", Err("no active turn".to_owned()));
    let names = |screen: &Screen, wanted: &str| {
        let calls = screen.calls();
        let call = calls.iter().find(|(method, _)| *method == wanted).expect("it is called");
        call.1["clientUserMessageId"].clone()
    };
    let (steered, started) = (names(&screen, "turn/steer"), names(&screen, "turn/start"));
    assert!(steered.is_string());
    assert_eq!(steered, started, "the server takes it once");
    screen.end_turn("completed");
    screen.answer("turn/start", Ok(json!({"turn": {"id": "u", "status": "completed"}})));
    assert!(!screen.text().contains("Working"), "{}", screen.text());
}

#[test]
fn a_resumed_thread_tells_how_its_latest_turn_has_ended() {
    let turn =
        |id: &str, status: &str| json!({"id": id, "status": status, "items": [], "error": {"message": "no money"}});
    for (status, told) in [("interrupted", "Interrupted"), ("failed", "error: no money"), ("completed", "")] {
        let mut screen = Screen::new(80, 16);
        screen.input(Input::Opened(Ok(opened(&[turn("a", "failed"), turn("b", status)])), false));
        let text = screen.text();
        assert!(text.contains(told), "{text}");
        assert_eq!(text.matches("no money").count(), usize::from(status == "failed"), "only the latest: {text}");
    }
}
