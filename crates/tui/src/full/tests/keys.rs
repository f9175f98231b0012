//! Keys: answers, steering, the queue, folds, search, selection.

use std::time::Duration;

use codex_client::Event;
use codex_client::approvals::Decision;
use codex_wire::ids::RequestId;
use serde_json::json;

use super::Screen;
use crate::full::app::{Effect, Input};
use crate::input::{Mouse, MouseKind};
use crate::key::Key;

const QUIET: Duration = Duration::from_millis(400);

fn ask(screen: &mut Screen, id: i64, command: &str) {
    let params =
        json!({"threadId": "t", "turnId": "u", "itemId": "c", "command": command, "cwd": "/w", "reason": null});
    let method = "item/commandExecution/requestApproval".to_owned();
    screen.input(Input::Event(Event::Asked { thread: "t".to_owned(), id: RequestId::Integer(id), method, params }));
}

/// Lets the choices be drawn.
fn arm(screen: &mut Screen, number: u64) {
    screen.pass(QUIET);
    assert!(screen.effects.contains(&Effect::Discard), "keys typed before are discarded");
    screen.effects.clear();
    screen.app.panel.readiness.wake(screen.now, || number);
    screen.input(Input::Discarded(number));
    screen.rows();
    let now = screen.now;
    screen.input(Input::Drawn(now));
}

fn decisions(screen: &Screen) -> Vec<Decision> {
    let decided = |effect: &Effect| match effect {
        Effect::Decide(_, decision) => Some(decision.clone()),
        _ => None,
    };
    screen.effects.iter().filter_map(decided).collect()
}

#[test]
fn no_key_typed_before_the_choices_were_drawn_answers() {
    let mut screen = Screen::new(80, 24);
    screen.start_turn();
    ask(&mut screen, 1, "touch canary");
    screen.press(&[Key::Char('y'), Key::Enter, Key::Char('a')]);
    assert_eq!(decisions(&screen), []);
    arm(&mut screen, 1);
    assert!(screen.text().contains("[y] yes"), "{}", screen.text());
    screen.press(&[Key::Enter, Key::Char(' '), Key::Paste("y".to_owned())]);
    assert_eq!(decisions(&screen), [], "only the named keys answer");
    screen.press(&[Key::Char('y')]);
    assert_eq!(decisions(&screen), [Decision::Allow]);
}

#[test]
fn a_long_request_is_read_to_its_end_before_it_can_be_approved() {
    let mut screen = Screen::new(80, 12);
    screen.start_turn();
    let command = (0..20).map(|number| format!("echo {number}")).collect::<Vec<_>>().join("\n");
    ask(&mut screen, 1, &command);
    arm(&mut screen, 1);
    screen.press(&[Key::Char('y')]);
    assert_eq!(decisions(&screen), []);
    for number in 2..5 {
        screen.press(&[Key::Char(' ')]);
        if screen.app.panel.readiness.deadline().is_some() {
            arm(&mut screen, number);
        }
    }
    assert!(screen.text().contains("echo 19") && screen.text().contains("[y] yes"), "{}", screen.text());
    screen.press(&[Key::Char('y')]);
    assert_eq!(decisions(&screen), [Decision::Allow]);
}

#[test]
fn a_request_that_is_answered_elsewhere_goes_and_a_child_is_named() {
    let mut screen = Screen::new(80, 24);
    screen.start_turn();
    let states = json!({"child": {"status": "running"}});
    screen.item(
        "item/completed",
        json!({"type": "collabAgentToolCall", "id": "s", "tool": "spawnAgent", "prompt": "look", "agentsStates": states}),
    );
    ask(&mut screen, 1, "one");
    let params = json!({"threadId": "child", "command": "two", "cwd": "/w"});
    let method = "item/commandExecution/requestApproval".to_owned();
    let asked = Event::Asked { thread: "child".to_owned(), id: RequestId::Integer(2), method, params };
    screen.input(Input::Event(asked));
    assert!(screen.text().contains("1 of 2"));
    screen.tell("serverRequest/resolved", json!({"threadId": "t", "requestId": 1}));
    let text = screen.text();
    assert!(text.contains("asked by child") && text.contains("two") && !text.contains("1 of 2"), "{text}");
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
    assert_eq!(Vec::from(screen.app.queue.clone()), ["later three"]);
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
    assert_eq!(screen.app.queue.len(), 1);
}

fn command(screen: &mut Screen, lines: usize) {
    let output = (0..lines).map(|number| format!("out {number}")).collect::<Vec<_>>().join("\n");
    screen.item(
        "item/completed",
        json!({"type": "commandExecution", "id": "c", "command": "make", "cwd": "/w",
        "status": "completed", "exitCode": 0, "durationMs": 1200, "aggregatedOutput": output}),
    );
}

#[test]
fn every_fold_level_shows_what_it_says_and_no_output_is_out_of_reach() {
    let mut screen = Screen::new(80, 60);
    screen.start_turn();
    command(&mut screen, 30);
    let text = screen.text();
    assert!(text.contains("out 4\n") && text.contains("… 20 more lines") && text.contains("out 29"), "{text}");
    assert!(!text.contains("out 10\n"));
    screen.press(&[Key::Ctrl('o')]);
    let text = screen.text();
    assert!((0..30).all(|number| text.contains(&format!("out {number}\n"))), "{text}");
    screen.press(&[Key::Ctrl('o')]);
    let text = screen.text();
    assert!(text.contains("$ make") && text.contains("… 30 more lines") && !text.contains("out"), "{text}");
    // A click on the mark shows all of this item.
    let row = screen.rows().iter().position(|row| row.contains("more lines")).expect("it is there");
    let at = |kind| Input::Mouse(Mouse { kind, column: 4, row: u16::try_from(row).expect("it is small") });
    screen.input(at(MouseKind::Press));
    screen.input(at(MouseKind::Release));
    assert!(screen.text().contains("out 17\n"));
}

#[test]
fn a_selection_is_the_text_without_its_layout() {
    let mut screen = Screen::new(30, 24);
    screen.start_turn();
    let text = "A sentence that is broken over several rows.\n\n```\ncode line\n  more\n```\n";
    screen.item("item/completed", json!({"type": "agentMessage", "id": "m", "text": text}));
    let rows = screen.rows();
    let row = |text: &str| {
        u16::try_from(rows.iter().position(|row| row.contains(text)).expect("it is there")).expect("small")
    };
    let (first, last) = (row("A sentence"), row("more"));
    let at = |kind, column, row| Input::Mouse(Mouse { kind, column, row });
    screen.input(at(MouseKind::Press, 0, first));
    screen.input(at(MouseKind::Drag, 29, last));
    screen.input(at(MouseKind::Release, 29, last));
    let expected = "A sentence that is broken over several rows.\n\ncode line\n  more";
    assert_eq!(screen.effects.last(), Some(&Effect::Copy(expected.to_owned())));
}

#[test]
fn the_wheel_scrolls_and_never_edits() {
    let mut screen = Screen::new(80, 10);
    screen.start_turn();
    command(&mut screen, 9);
    let wheel = |kind| Input::Mouse(Mouse { kind, column: 0, row: 0 });
    screen.input(wheel(MouseKind::WheelUp));
    assert!(screen.app.transcript.top.is_some());
    screen.input(wheel(MouseKind::WheelDown));
    assert!(screen.app.transcript.top.is_none());
    assert_eq!(screen.app.composer.editor.text(), "");
}

#[test]
fn search_and_turns_move_the_view() {
    let mut screen = Screen::new(80, 10);
    screen.start_turn();
    for number in 0..10 {
        let text = format!("question {number}");
        screen.item(
            "item/completed",
            json!({"type": "userMessage", "id": format!("q{number}"), "content": [{"type": "text", "text": text}]}),
        );
        screen.item(
            "item/completed",
            json!({"type": "agentMessage", "id": format!("a{number}"), "text": format!("answer {number}\n\nmore")}),
        );
    }
    screen.press(&[Key::Ctrl('s')]);
    screen.type_text("ANSWER 3");
    screen.press(&[Key::Enter]);
    assert_eq!(screen.rows()[0], "answer 3");
    screen.press(&[Key::AltUp, Key::AltUp]);
    assert_eq!(screen.rows()[0], "> question 2");
    screen.press(&[Key::AltDown]);
    assert_eq!(screen.rows()[0], "> question 3");
    screen.press(&[Key::Alt('>')]);
    assert!(screen.text().contains("answer 9"));
}

#[test]
fn a_paste_of_a_megabyte_is_one_edit() {
    let mut screen = Screen::new(80, 24);
    let pasted = "line\n".repeat(200_000);
    let before = std::time::Instant::now();
    screen.press(&[Key::Paste(pasted.clone())]);
    screen.rows();
    assert!(before.elapsed() < Duration::from_secs(2), "{:?}", before.elapsed());
    assert_eq!(screen.app.composer.editor.text(), pasted);
    assert!(screen.calls().is_empty(), "nothing is sent");
    screen.press(&[Key::Ctrl('7')]);
    assert_eq!(screen.app.composer.editor.text(), "");
    screen.press(&[Key::Alt('z')]);
    assert_eq!(screen.app.composer.editor.text(), pasted);
}

#[test]
fn the_path_of_a_picture_is_attached() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a picture.png");
    std::fs::write(&path, b"png").expect("a file");
    let mut screen = Screen::new(80, 24);
    screen.press(&[Key::Paste(format!("'{}'\n", path.display()))]);
    assert!(screen.text().contains("attached: a picture.png"), "{}", screen.text());
    screen.press(&[Key::Paste("/nowhere/b.png".to_owned())]);
    assert_eq!(screen.app.composer.editor.text(), "/nowhere/b.png", "a file that is not there is text");
    screen.press(&[Key::Enter]);
    let input = screen.calls().last().map(|(_, params)| params["input"][1].clone());
    assert_eq!(input, Some(json!({"type": "localImage", "path": path})));
    screen.press(&[Key::Paste(path.display().to_string()), Key::Backspace]);
    assert!(screen.app.calls.pictures.is_empty());
}

#[test]
fn lists_complete_commands_and_files() {
    let mut screen = Screen::new(80, 24);
    screen.type_text("/sta");
    assert!(screen.text().contains(" /status "), "{}", screen.text());
    screen.press(&[Key::Char('\t')]);
    assert_eq!(screen.app.composer.editor.text(), "/status");
    screen.press(&[Key::Enter]);
    assert!(screen.text().contains("on-request"), "{}", screen.text());
    screen.press(&[Key::Char('q')]);
    screen.type_text("see @ma");
    screen.answer("fuzzyFileSearch", Ok(json!({"files": [{"path": "src/main.rs"}]})));
    screen.press(&[Key::Enter]);
    assert_eq!(screen.app.composer.editor.text(), "see @src/main.rs ");
    assert!(screen.effects.iter().all(|effect| !matches!(effect, Effect::Call { method: "turn/start", .. })));
}

#[test]
fn esc_twice_goes_back_to_an_earlier_message() {
    let mut screen = Screen::new(80, 24);
    let turn = |id: &str, text: &str| {
        json!({"id": id, "status": "completed", "items": [
        {"type": "userMessage", "id": id, "content": [{"type": "text", "text": text}]}]})
    };
    screen.tell("thread/started", json!({"thread": {"id": "t", "turns": [turn("1", "one"), turn("2", "two")]}}));
    screen.press(&[Key::Esc, Key::Esc]);
    assert!(screen.text().contains("1 back  two"), "{}", screen.text());
    screen.press(&[Key::Enter]);
    assert_eq!(
        screen.calls().last().map(|(method, params)| (*method, params["numTurns"].clone())),
        Some(("thread/rollback", json!(1)))
    );
    screen.answer("thread/rollback", Ok(json!({"thread": {"id": "t", "turns": [turn("1", "one")]}})));
    assert_eq!(screen.app.composer.editor.text(), "two");
    assert!(!screen.text().contains("> two\n\n"), "{}", screen.text());
}

#[test]
fn a_server_that_goes_is_told_and_the_screen_stays() {
    let mut screen = Screen::new(80, 24);
    screen.start_turn();
    screen.input(Input::Lost("the server stopped".to_owned()));
    screen.type_text("still here");
    let text = screen.text();
    assert!(
        text.contains("the server is gone") && text.contains("> still here") && text.contains("disconnected"),
        "{text}"
    );
    screen.press(&[Key::Ctrl('c'), Key::Ctrl('c')]);
    assert_eq!(screen.effects.last(), Some(&Effect::Leave));
}

#[test]
fn full_access_is_confirmed() {
    let mut screen = Screen::new(80, 24);
    screen.type_text("/approvals never danger-full-access");
    screen.press(&[Key::Enter]);
    assert!(screen.calls().is_empty());
    screen.type_text("yes");
    screen.press(&[Key::Enter]);
    assert_eq!(screen.calls().last().map(|(method, _)| *method), Some("thread/settings/update"));
    screen.answer("thread/settings/update", Ok(json!({})));
    assert!(screen.text().contains("danger-full-access/never"), "{}", screen.text());
}
