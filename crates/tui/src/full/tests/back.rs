//! Going back and forward, by keys.

use serde_json::{Value, json};

use super::Screen;
use crate::chat::ThreadToOpen;
use crate::full::app::{Effect, Input};
use crate::key::Key;

pub(super) fn turn(id: &str, text: &str) -> Value {
    json!({"id": id, "status": "completed", "items": [
        {"type": "userMessage", "id": id, "content": [{"type": "text", "text": text}]}]})
}

fn thread(id: &str, turns: &[Value]) -> Value {
    json!({"thread": {"id": id, "turns": turns}, "model": "m1", "modelProvider": "p", "cwd": "/home/me/w",
        "approvalPolicy": "on-request", "sandbox": {"type": "workspaceWrite"}})
}

fn with_turns() -> Screen {
    let mut screen = Screen::new(80, 24);
    screen.tell("thread/started", json!({"thread": {"id": "t", "turns": [turn("1", "one"), turn("2", "two")]}}));
    screen
}

#[test]
fn esc_twice_goes_back_and_forward_brings_it_again() {
    let mut screen = with_turns();
    screen.press(&[Key::Esc, Key::Esc]);
    assert!(screen.text().contains("1 back  two"), "{}", screen.text());
    screen.press(&[Key::Enter]);
    let asked = screen.calls().last().map(|(method, params)| (*method, params["lastTurnId"].clone()));
    assert_eq!(asked, Some(("thread/fork", json!("1"))), "the thread itself stays as it is");
    screen.answer("thread/fork", Ok(thread("copy", &[turn("1", "one")])));
    screen.tell("thread/started", json!({"thread": {"id": "copy", "turns": [turn("1", "one")]}}));
    assert_eq!(screen.app.composer.editor.text(), "two", "it can be changed and sent again");
    assert!(!screen.text().contains("> two\n\n"), "{}", screen.text());
    screen.press(&[Key::Alt('r')]);
    assert!(screen.effects.contains(&Effect::Open(ThreadToOpen::Resume("t".to_owned()))));
    let deleted =
        screen.calls().iter().any(|(method, params)| *method == "thread/delete" && params["threadId"] == "copy");
    assert!(deleted, "a copy in which nothing was said is removed");
    screen.input(Input::Opened(Ok(thread("t", &[turn("1", "one"), turn("2", "two")])), false));
    screen.tell("thread/started", json!({"thread": {"id": "t", "turns": [turn("1", "one"), turn("2", "two")]}}));
    assert!(screen.text().contains("> two"), "{}", screen.text());
    screen.press(&[Key::Alt('r')]);
    assert!(screen.app.hint.as_ref().is_some_and(|hint| hint.contains("nothing to return to")));
}

#[test]
fn a_copy_in_which_something_was_said_stays() {
    let mut screen = with_turns();
    screen.press(&[Key::Esc, Key::Esc, Key::Enter]);
    screen.answer("thread/fork", Ok(thread("copy", &[turn("1", "one")])));
    screen.tell("thread/started", json!({"thread": {"id": "copy", "turns": [turn("1", "one"), turn("3", "other")]}}));
    screen.type_text("/forward");
    screen.press(&[Key::Ctrl('a'), Key::Ctrl('k')]);
    screen.press(&[Key::Alt('r')]);
    assert!(!screen.calls().iter().any(|(method, _)| *method == "thread/delete"));
    assert!(screen.effects.contains(&Effect::Open(ThreadToOpen::Resume("t".to_owned()))));
}

#[test]
fn before_the_first_message_there_is_a_new_thread() {
    let mut screen = with_turns();
    screen.press(&[Key::Esc, Key::Esc, Key::Down, Key::Enter]);
    assert_eq!(screen.calls().last().map(|(method, _)| *method), Some("thread/start"));
    screen.answer("thread/start", Err("the disk is full".to_owned()));
    assert!(screen.text().contains("the disk is full"), "{}", screen.text());
    assert_eq!(screen.app.thread_id().as_deref(), Some("t"), "nothing has changed");
}
