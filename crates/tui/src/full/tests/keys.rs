//! Keys: folds, search, selection, policies.

use serde_json::json;

use super::Screen;
use crate::full::app::{Effect, Input};
use crate::input::{Mouse, MouseKind};
use crate::key::Key;

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
    assert!(!screen.calls().iter().any(|(method, _)| *method == "thread/settings/update"));
    screen.type_text("yes");
    screen.press(&[Key::Enter]);
    assert_eq!(screen.calls().last().map(|(method, _)| *method), Some("thread/settings/update"));
    screen.answer("thread/settings/update", Ok(json!({})));
    assert!(screen.text().contains("danger-full-access/never"), "{}", screen.text());
}
