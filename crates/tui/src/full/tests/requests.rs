//! Requests: approvals and forms, by keys.

use std::time::Duration;

use codex_client::Event;
use codex_client::approvals::Decision;
use codex_wire::ids::RequestId;
use serde_json::{Value, json};

use super::Screen;
use crate::full::app::{Effect, Input};
use crate::full::approval::Panel;
use crate::input::{Mouse, MouseKind};
use crate::key::Key;
use crate::keymap::{Binding, Keymap};

const QUIET: Duration = Duration::from_millis(400);

pub(super) fn ask(screen: &mut Screen, id: i64, command: &str) {
    let params =
        json!({"threadId": "t", "turnId": "u", "itemId": "c", "command": command, "cwd": "/w", "reason": null});
    let method = "item/commandExecution/requestApproval".to_owned();
    screen.input(Input::Event(Event::Asked { thread: "t".to_owned(), id: RequestId::Integer(id), method, params }));
}

/// Lets the choices be drawn.
pub(super) fn arm(screen: &mut Screen, number: u64) {
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

pub(super) fn asked(screen: &mut Screen, thread: &str, id: i64, method: &str, params: Value) {
    let (thread, method) = (thread.to_owned(), method.to_owned());
    screen.input(Input::Event(Event::Asked { thread, id: RequestId::Integer(id), method, params }));
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
fn all_open_requests_are_listed_and_shown_in_turn() {
    let mut screen = Screen::new(80, 24);
    screen.start_turn();
    ask(&mut screen, 1, "first");
    ask(&mut screen, 2, "second");
    let params = json!({"threadId": "child", "command": "third", "cwd": "/w"});
    asked(&mut screen, "child", 3, "item/commandExecution/requestApproval", params);
    arm(&mut screen, 1);
    let text = screen.text();
    assert!(text.contains("1 of 3, Tab shows the next"), "{text}");
    assert!(text.contains("» command first") && text.contains("  command third · asked by child"), "{text}");
    // The next one has to be looked at first.
    screen.press(&[Key::Char('\t'), Key::Char('y')]);
    assert_eq!(decisions(&screen), []);
    arm(&mut screen, 2);
    assert!(screen.text().contains("| second"), "{}", screen.text());
    screen.press(&[Key::Char('n')]);
    assert!(matches!(screen.effects.last(), Some(Effect::Decide(RequestId::Integer(2), Decision::Deny { .. }))));
    assert!(screen.text().contains("1 of 2"), "{}", screen.text());
}

#[test]
fn an_answer_of_another_screen_takes_the_request_away() {
    let mut screen = Screen::new(80, 24);
    screen.start_turn();
    ask(&mut screen, 1, "touch canary");
    arm(&mut screen, 1);
    screen.tell("serverRequest/resolved", json!({"threadId": "t", "requestId": 1}));
    screen.press(&[Key::Char('y')]);
    assert_eq!(decisions(&screen), [], "the key is text now");
    assert_eq!(screen.app.composer.editor.text(), "y");
}

#[test]
fn nothing_hides_in_a_request() {
    let mut screen = Screen::new(100, 24);
    screen.start_turn();
    let evil = "echo \u{202e}txt.exe\u{200b}\r\u{1b}[2K\u{1b}]52;c;eA==\u{7}\n[y] yes  [n] no";
    ask(&mut screen, 1, evil);
    arm(&mut screen, 1);
    let text = screen.text();
    assert!(text.contains(r"echo \u{202e}txt.exe\u{200b}\r\u{1b}[2K"), "{text}");
    assert!(text.contains("| [y] yes  [n] no"), "a line of a command has a bar: {text}");
    assert_eq!(text.matches("\n[y] yes").count(), 1, "{text}");
    let wide = "x".repeat(1000) + " && rm -rf ~";
    screen.press(&[Key::Char('n')]);
    ask(&mut screen, 2, &wide);
    arm(&mut screen, 2);
    assert!(screen.text().replace(['\n', '|', ' '], "").contains("&&rm-rf~"), "{}", screen.text());
    screen.press(&[Key::Char('n')]);
    ask(&mut screen, 3, &"x".repeat(1 << 20));
    screen.effects.clear();
    screen.pass(QUIET);
    assert!(screen.effects.contains(&Effect::Discard));
}

pub(super) fn form() -> Value {
    json!({"threadId": "t", "serverName": "docs", "message": "Who\u{202e} are you?", "mode": "form", "requestedSchema": {
        "type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"},
            "size": {"type": "string", "enum": ["s", "m"], "default": "m"},
            "sure": {"type": "boolean"}}}})
}

#[test]
fn a_form_of_a_server_is_filled_in_by_keys() {
    let mut screen = Screen::new(80, 24);
    screen.start_turn();
    asked(&mut screen, "t", 1, "mcpServer/elicitation/request", form());
    screen.type_text("typed before");
    screen.press(&[Key::Enter, Key::Enter]);
    arm(&mut screen, 1);
    let text = screen.text();
    assert!(text.contains(r"Who\u{202e} are you?") && text.contains("» name (required)"), "{text}");
    assert!(!text.contains("typed before"), "earlier keys are no values: {text}");
    screen.press(&[Key::Enter]);
    assert!(screen.text().contains("a value is required"), "{}", screen.text());
    screen.type_text("yn q");
    screen.press(&[Key::Enter, Key::Char('1'), Key::Enter, Key::Char('y'), Key::Enter]);
    assert_eq!(decisions(&screen), [], "nothing is sent before the button");
    screen.press(&[Key::Enter]);
    let content = json!({"name": "yn q", "size": "s", "sure": true});
    assert_eq!(decisions(&screen), [Decision::Result(json!({"action": "accept", "content": content}))]);
}

#[test]
fn a_form_is_declined_or_cancelled() {
    for (keys, expected) in
        [(vec![Key::BackTab, Key::Enter], Decision::deny("declined")), (vec![Key::Esc], Decision::Cancel)]
    {
        let mut screen = Screen::new(80, 24);
        screen.start_turn();
        asked(&mut screen, "t", 1, "mcpServer/elicitation/request", form());
        arm(&mut screen, 1);
        screen.press(&keys);
        assert_eq!(decisions(&screen), [expected]);
    }
}

#[test]
fn a_form_that_does_not_fit_follows_the_focus() {
    let mut screen = Screen::new(60, 10);
    screen.start_turn();
    let properties: serde_json::Map<String, Value> =
        (0..30).map(|number| (format!("field{number}"), json!({"type": "string"}))).collect();
    let params = json!({"serverName": "s", "message": "m", "requestedSchema": {"properties": properties}});
    asked(&mut screen, "t", 1, "mcpServer/elicitation/request", params);
    arm(&mut screen, 1);
    screen.press(&vec![Key::Char('\t'); 20]);
    assert!(screen.text().contains("field20"), "{}", screen.text());
    screen.press(&vec![Key::Char('\t'); 10]);
    assert!(screen.text().contains("[ Send ]"), "{}", screen.text());
    screen.resize(3, 2);
    screen.rows();
    screen.resize(1, 1);
    screen.rows();
}

#[test]
fn a_question_of_the_model_is_answered_or_stops_the_turn() {
    let params = json!({"threadId": "t", "autoResolutionMs": 60_000, "questions": [{"id": "q", "header": "Store",
        "question": "Which?", "options": [{"label": "SQLite", "description": "a file"}, {"label": "Postgres", "description": ""}]}]});
    let mut screen = Screen::new(80, 24);
    screen.start_turn();
    asked(&mut screen, "t", 1, "item/tool/requestUserInput", params.clone());
    arm(&mut screen, 1);
    assert!(screen.text().contains("59 s left"), "{}", screen.text());
    screen.press(&[Key::Char('2'), Key::Enter, Key::Enter]);
    let answers = json!({"answers": {"q": {"answers": ["Postgres"]}}});
    assert_eq!(decisions(&screen), [Decision::Result(answers)]);
    screen.effects.clear();
    asked(&mut screen, "t", 2, "item/tool/requestUserInput", params);
    arm(&mut screen, 2);
    screen.press(&[Key::Esc]);
    assert_eq!(decisions(&screen), [Decision::Result(json!({"answers": {}}))]);
    assert!(screen.calls().iter().any(|(method, _)| *method == "turn/interrupt"));
}

#[test]
fn permissions_are_granted_as_asked_and_no_more() {
    let permissions = json!({"fileSystem": {"write": ["/srv"]}});
    let params = json!({"threadId": "t", "cwd": "/w", "permissions": permissions});
    for (key, scope) in [('y', "turn"), ('a', "session")] {
        let mut screen = Screen::new(80, 24);
        screen.start_turn();
        asked(&mut screen, "t", 1, "item/permissions/requestApproval", params.clone());
        arm(&mut screen, 1);
        assert!(screen.text().contains("| write /srv"), "{}", screen.text());
        screen.press(&[Key::Char(key)]);
        assert_eq!(decisions(&screen), [Decision::Result(json!({"permissions": permissions, "scope": scope}))]);
    }
}

#[test]
fn an_address_is_copied_when_it_is_accepted() {
    let mut screen = Screen::new(80, 24);
    screen.start_turn();
    let params = json!({"serverName": "docs", "message": "Log in", "mode": "url", "url": "https://example.org/login"});
    asked(&mut screen, "t", 1, "mcpServer/elicitation/request", params);
    arm(&mut screen, 1);
    screen.press(&[Key::Char('y')]);
    assert!(screen.effects.contains(&Effect::Copy("https://example.org/login".to_owned())));
    assert_eq!(decisions(&screen), [Decision::Allow]);
}

#[test]
fn other_keys_can_answer() {
    use crate::keymap::{Binding, Keymap};
    let mut screen = Screen::new(80, 24);
    let binding = Binding { action: "approve".to_owned(), keys: vec!["ctrl-y".to_owned()], at: "1".to_owned() };
    screen.app.settings.keymap = Keymap::new(&[binding]);
    screen.start_turn();
    ask(&mut screen, 1, "ls");
    arm(&mut screen, 1);
    screen.press(&[Key::Char('y'), Key::Char('Y')]);
    assert_eq!(decisions(&screen), [], "it has another key now");
    screen.press(&[Key::Ctrl('y')]);
    assert_eq!(decisions(&screen), [Decision::Allow]);
}

#[test]
fn on_a_narrow_screen_the_whole_request_is_in_view_before_it_is_approved() {
    // The choices need several rows, which the request must not be behind.
    for (width, height) in [(24, 12), (16, 14), (30, 9)] {
        let mut screen = Screen::new(width, height);
        screen.start_turn();
        ask(&mut screen, 1, "first\nsecond\nthird\nfourth\nfifth");
        let mut seen = String::new();
        for number in 1..9 {
            arm(&mut screen, number);
            seen.push_str(&screen.text());
            if screen.text().contains("[y]") {
                break;
            }
            assert!(screen.text().contains("[space] more"), "{}", screen.text());
            screen.press(&[Key::Char('y'), Key::Char(' ')]);
            assert_eq!(decisions(&screen), []);
        }
        let words = ["Approval", "| first", "| second", "| fifth", "[y] yes", "[esc] no, and", "waiting"];
        assert!(words.iter().all(|word| seen.contains(word)), "{width}x{height}: {seen}");
        screen.press(&[Key::Char('y')]);
        assert_eq!(decisions(&screen).len(), 1);
    }
    let mut screen = Screen::new(10, 5);
    screen.start_turn();
    ask(&mut screen, 1, "one");
    arm(&mut screen, 1);
    screen.press(&[Key::Char('y')]);
    assert_eq!(decisions(&screen), [], "there is no room for the request");
    screen.press(&[Key::Char('n')]);
    assert_eq!(decisions(&screen).len(), 1);
}

#[test]
fn choices_name_the_keys_that_a_person_has_given_them() {
    let mut screen = Screen::new(80, 14);
    let binding = |action: &str, keys: &[&str]| Binding {
        action: action.to_owned(),
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        at: "config.toml:1".to_owned(),
    };
    screen.app.settings.keymap = Keymap::new(&[binding("approve", &["f5"]), binding("approve-session", &[])]);
    screen.app.panel = Panel::new(&screen.app.settings.keymap);
    screen.start_turn();
    ask(&mut screen, 1, "make");
    arm(&mut screen, 1);
    assert!(screen.text().contains("\n[F5] yes  [n] no  [esc] no, and stop\n"), "{}", screen.text());
    screen.press(&[Key::Char('y'), Key::Char('a')]);
    assert_eq!(decisions(&screen), []);
    screen.press(&[Key::F(5)]);
    assert_eq!(decisions(&screen).len(), 1);
}

#[test]
fn the_wheel_scrolls_a_long_request_and_what_is_behind_a_short_one() {
    let mut screen = Screen::new(80, 12);
    screen.start_turn();
    for number in 0..20 {
        let text = format!("answer {number}");
        screen.item("item/completed", json!({"type": "agentMessage", "id": format!("m{number}"), "text": text}));
    }
    ask(&mut screen, 1, "make");
    arm(&mut screen, 1);
    let wheel = |screen: &mut Screen, kind: MouseKind| screen.input(Input::Mouse(Mouse { kind, row: 1, column: 1 }));
    wheel(&mut screen, MouseKind::WheelUp);
    assert!(screen.app.transcript.top.is_some() && screen.text().contains("[y] yes"), "{}", screen.text());
    screen.press(&[Key::Char('n')]);
    ask(&mut screen, 2, &(0..30).map(|number| format!("echo {number}")).collect::<Vec<_>>().join("\n"));
    arm(&mut screen, 2);
    assert!(!screen.text().contains("echo 10"), "{}", screen.text());
    wheel(&mut screen, MouseKind::WheelDown);
    assert!(screen.text().contains("echo 10") && !screen.text().contains("[space]"), "new text is looked at first");
    for number in 3..20 {
        arm(&mut screen, number);
        wheel(&mut screen, MouseKind::WheelDown);
        if screen.app.panel.is_open() {
            break;
        }
    }
    assert!(screen.text().contains("echo 29") && screen.text().contains("[y] yes"), "{}", screen.text());
    assert_eq!(decisions(&screen), [], "the wheel answers nothing");
}

#[test]
fn a_text_that_is_typed_into_a_request_answers_nothing() {
    let mut screen = Screen::new(80, 12);
    screen.start_turn();
    ask(&mut screen, 1, "make");
    arm(&mut screen, 1);
    screen.type_text("/agents and yes");
    assert_eq!(decisions(&screen), [], "the first character is no choice, and the others belong to it");
    assert!(!screen.text().contains("[y] yes"), "{}", screen.text());
    arm(&mut screen, 2);
    screen.press(&[Key::Char('y')]);
    assert_eq!(decisions(&screen), [Decision::Allow]);
}
