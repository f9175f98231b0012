//! Steering and the queue, by keys: kept by the server, or here.

use serde_json::{Value, json};

use super::Screen;
use crate::full::calls::Pending;
use crate::full::queue::QueueStep;
use crate::key::Key;
use codex_dialogue::message::Message;

fn queued(screen: &Screen) -> Vec<String> {
    screen.app.queue.entries.iter().map(|entry| entry.message.text.clone()).collect()
}

/// A screen with a running turn and a server that keeps a queue.
fn with_server() -> Screen {
    let mut screen = Screen::new(80, 24);
    serve(&mut screen);
    screen
}

/// Lets the server keep a queue, and a turn run.
pub(super) fn serve(screen: &mut Screen) {
    let id = screen
        .app
        .calls
        .pending
        .iter()
        .find_map(|(id, pending)| matches!(pending, Pending::Queue(QueueStep::Listed)).then_some(*id));
    let answer = json!({"data": [], "isPaused": false});
    screen.input(crate::full::app::Input::Answer(id.expect("it was asked for"), Ok(answer)));
    screen.start_turn();
}

pub(super) fn entry(id: &str, text: &str) -> Value {
    json!({"id": id, "clientUserMessageId": id, "input": [{"type": "text", "text": text}]})
}

/// Another queue, as the server tells it.
pub(super) fn changed(screen: &mut Screen, entries: &[Value]) {
    screen.tell("thread/queue/changed", json!({"threadId": "t"}));
    screen.answer("thread/queue/list", Ok(json!({"data": entries, "isPaused": false})));
}

fn last_call(screen: &Screen) -> Option<(&'static str, Value)> {
    screen.calls().last().map(|(method, params)| (*method, (*params).clone()))
}

#[test]
fn enter_steers_and_tab_queues() {
    let mut screen = Screen::new(80, 24);
    screen.type_text("first");
    screen.press(&[Key::Enter]);
    screen.answer("turn/start", Ok(json!({"turn": {"id": "u"}})));
    screen.type_text("and this");
    screen.press(&[Key::Enter]);
    let steered = screen.calls().last().map(|(method, params)| (*method, params["expectedTurnId"].clone()));
    assert_eq!(steered, Some(("turn/steer", json!("u"))));
    for text in ["later one", "later two", "later three"] {
        screen.type_text(text);
        screen.press(&[Key::Char('\t')]);
    }
    assert!(screen.text().contains("queued: later three"), "{}", screen.text());
    // The last is moved up, the next dropped, and the first edited.
    screen.press(&[Key::BackTab, Key::AltUp, Key::Down, Key::Char('d'), Key::Up, Key::Up, Key::Enter]);
    assert_eq!(queued(&screen), ["later three"]);
    assert_eq!(screen.app.composer.editor.text(), "later one");
    screen.effects.clear();
    screen.end_turn("completed");
    let sent = screen
        .calls()
        .iter()
        .find(|(method, _)| *method == "turn/start")
        .map(|(_, params)| params["input"][0]["text"].clone());
    assert_eq!(sent, Some(json!("later three")));
}

#[test]
fn a_stopped_turn_leaves_the_queue_alone() {
    let mut screen = Screen::new(80, 24);
    screen.start_turn();
    screen.type_text("later");
    screen.press(&[Key::Char('\t'), Key::Esc]);
    assert!(screen.calls().iter().any(|(method, _)| *method == "turn/interrupt"));
    screen.effects.clear();
    screen.end_turn("interrupted");
    assert!(!screen.calls().iter().any(|(method, _)| *method == "turn/start"));
    assert_eq!(queued(&screen), ["later"]);
}

#[test]
fn the_server_keeps_the_queue_and_every_screen_sees_it() {
    let mut screen = with_server();
    screen.type_text("later");
    screen.press(&[Key::Char('\t')]);
    let (method, params) = last_call(&screen).expect("it is sent");
    assert_eq!((method, &params["input"][0]["text"]), ("thread/queue/add", &json!("later")));
    assert_eq!(params["clientUserMessageId"], "run-1");
    assert!(screen.text().contains("queued: later"), "it is shown at once: {}", screen.text());
    screen.answer("thread/queue/add", Ok(json!({"queuedSubmission": entry("a", "later")})));
    // Another screen adds one.
    changed(&mut screen, &[entry("a", "later"), entry("b", "from elsewhere")]);
    assert_eq!(queued(&screen), ["later", "from elsewhere"]);
    screen.end_turn("completed");
    assert!(!screen.calls().iter().any(|(method, _)| *method == "turn/start"), "the server sends the next one");
}

#[test]
fn an_answer_after_the_list_adds_nothing() {
    let mut screen = with_server();
    screen.type_text("later");
    screen.press(&[Key::Char('\t')]);
    changed(&mut screen, &[entry("a", "later")]);
    screen.answer("thread/queue/add", Ok(json!({"queuedSubmission": entry("a", "later")})));
    assert_eq!(queued(&screen), ["later"]);
}

#[test]
fn entries_are_moved_dropped_edited_and_promoted_at_the_server() {
    let mut screen = with_server();
    changed(&mut screen, &[entry("a", "one"), entry("b", "two"), entry("c", "three")]);
    screen.press(&[Key::BackTab, Key::AltUp]);
    assert_eq!(
        last_call(&screen),
        Some(("thread/queue/reorder", json!({"threadId": "t", "queuedSubmissionIds": ["a", "c", "b"]})))
    );
    screen.press(&[Key::Char('d')]);
    assert_eq!(last_call(&screen), Some(("thread/queue/delete", json!({"threadId": "t", "queuedSubmissionId": "c"}))));
    screen.answer("thread/queue/delete", Ok(json!({"deleted": true})));
    assert_eq!(queued(&screen), ["one", "two"]);
    // The first is edited and put back at its place.
    screen.press(&[Key::Up, Key::Enter]);
    assert_eq!(screen.app.composer.editor.text(), "", "the server may have sent it already");
    screen.answer("thread/queue/delete", Ok(json!({"deleted": true})));
    assert_eq!(screen.app.composer.editor.text(), "one");
    screen.type_text(" more");
    screen.press(&[Key::Char('\t')]);
    assert_eq!(queued(&screen), ["one more", "two"]);
    screen.answer("thread/queue/add", Ok(json!({"queuedSubmission": entry("d", "one more")})));
    assert_eq!(
        last_call(&screen),
        Some(("thread/queue/reorder", json!({"threadId": "t", "queuedSubmissionIds": ["d", "b"]})))
    );
    // A promoted message joins the turn that is running.
    screen.press(&[Key::BackTab, Key::Char('s')]);
    screen.answer("thread/queue/delete", Ok(json!({"deleted": true})));
    let (method, params) = last_call(&screen).expect("it is sent");
    assert_eq!((method, &params["input"][0]["text"]), ("turn/steer", &json!("two")));
    // Without a turn, the server starts it.
    screen.end_turn("interrupted");
    screen.press(&[Key::BackTab, Key::Char('s')]);
    assert_eq!(last_call(&screen), Some(("thread/queue/start", json!({"threadId": "t", "queuedSubmissionId": "d"}))));
}

#[test]
fn a_message_that_was_sent_meanwhile_is_not_sent_twice() {
    let mut screen = with_server();
    changed(&mut screen, &[entry("a", "one")]);
    screen.press(&[Key::BackTab, Key::Char('s')]);
    screen.effects.clear();
    let id = screen
        .app
        .calls
        .pending
        .iter()
        .find_map(|(id, pending)| matches!(pending, Pending::Queue(QueueStep::Removed { .. })).then_some(*id));
    screen.input(crate::full::app::Input::Answer(id.expect("it was asked for"), Ok(json!({"deleted": false}))));
    assert!(screen.calls().is_empty());
    assert!(screen.app.hint.as_ref().is_some_and(|hint| hint.contains("sent already")));
}

#[test]
fn a_refused_message_is_given_back() {
    let mut screen = with_server();
    screen.type_text("too long");
    screen.press(&[Key::Char('\t')]);
    screen.answer("thread/queue/add", Err("the queue is full".to_owned()));
    assert_eq!(queued(&screen), [""; 0]);
    assert_eq!(screen.app.composer.editor.text(), "too long");
    assert!(screen.text().contains("the queue is full"), "{}", screen.text());
}

#[test]
fn pictures_stay_with_a_queued_message() {
    let input = json!([{"type": "text", "text": "see [Image a.png] now"}, {"type": "localImage", "path": "/p/a.png"}]);
    let message = Message::from_input(&input);
    let mut editor = crate::editor::Editor::default();
    editor.restore(&message.parts());
    assert_eq!(editor.shown().0, "see [Image a.png] now");
    assert_eq!(Message::with_pictures(editor.text(), editor.pictures()), message);
}
