//! Lists to choose from: models, themes, policies, commands.

use serde_json::{Value, json};

use super::Screen;
use super::states::golden;
use crate::full::app::Input;
use crate::key::Key;
use crate::theme::ThemeName;

fn command(screen: &mut Screen, line: &str) {
    screen.type_text(line);
    screen.press(&[Key::Esc, Key::Enter]);
}

fn models() -> Value {
    json!({"data": [{"model": "m0", "description": "small"}, {"model": "m1", "description": "the usual one"}]})
}

#[test]
fn a_model_is_chosen_from_a_list() {
    golden("models", 12, |screen| {
        command(screen, "/model");
        screen.answer("model/list", Ok(models()));
    });
    let mut screen = Screen::new(80, 12);
    command(&mut screen, "/model");
    screen.answer("model/list", Ok(models()));
    screen.press(&[Key::Up, Key::Enter]);
    let (method, params) = screen.calls().pop().expect("a call");
    assert_eq!((method, &params["model"]), ("thread/settings/update", &json!("m0")));
    command(&mut screen, "/model");
    screen.answer("model/list", Ok(json!({"data": []})));
    assert!(screen.text().contains("lists no models; /model NAME switches"), "{}", screen.text());
}

#[test]
fn a_theme_is_seen_before_it_is_chosen() {
    let mut screen = Screen::new(80, 14);
    let name = |screen: &Screen| screen.app.theme.name();
    command(&mut screen, "/theme");
    assert!(screen.text().contains(">   4  ansi      (current) the 16 colours"), "{}", screen.text());
    screen.press(&[Key::Down, Key::Down]);
    assert_eq!(name(&screen), Some("plain"));
    screen.press(&[Key::Up]);
    assert_eq!(name(&screen), Some("contrast"), "a theme without colours is left as well");
    screen.press(&[Key::Esc]);
    assert_eq!(name(&screen), Some("ansi"), "nothing was chosen");
    command(&mut screen, "/theme");
    screen.press(&[Key::Down, Key::Enter]);
    assert_eq!(name(&screen), Some("contrast"));
    assert!(screen.text().contains("It has no effect: COLORTERM is not `truecolor`"), "{}", screen.text());
    command(&mut screen, "/theme plain");
    assert!(screen.text().contains("To keep it: theme = \"plain\""), "{}", screen.text());
    command(&mut screen, "/theme pink");
    assert!(screen.text().contains("unknown theme `pink`; there are auto, dark"), "{}", screen.text());
    screen.app.theme.choose(ThemeName::Plain);
    command(&mut screen, "/theme dark");
    assert_eq!(name(&screen), Some("dark"));
}

#[test]
fn a_policy_is_chosen_over_its_board() {
    let mut screen = Screen::new(80, 16);
    command(&mut screen, "/approvals");
    let policies = json!({"approvalPolicy": "on-request", "sandbox": {"type": "workspaceWrite"}});
    screen.answer("thread/permissions/read", Ok(policies));
    screen.press(&[Key::Enter]);
    assert!(screen.text().contains(">   2  on-request  (current) you are asked when"), "{}", screen.text());
    screen.press(&[Key::Esc]);
    assert!(screen.text().contains("Approval policy · 2"), "{}", screen.text());
    screen.press(&[Key::Enter, Key::Up, Key::Enter]);
    let (method, params) = screen.calls().pop().expect("a call");
    assert_eq!((method, &params["approvalPolicy"]), ("thread/settings/update", &json!("untrusted")));
    screen.effects.clear();
    screen.input(Input::Answer(screen.app.calls.next - 1, Ok(json!({}))));
    assert_eq!(screen.calls()[0].0, "thread/permissions/read", "the board is read again");
    // Neither a sandbox nor approvals: that has to be typed, so the conversation is in view.
    screen.press(&[Key::Down, Key::Enter]);
    screen.app.thread.as_mut().expect("a thread").approvals = "never".to_owned();
    screen.type_text("danger");
    screen.press(&[Key::Enter]);
    assert!(screen.text().contains("without asking you. Type yes"), "{}", screen.text());
}

#[test]
fn a_command_of_the_list_runs_and_another_word_begins_with_the_best_one() {
    let mut screen = Screen::new(80, 24);
    screen.type_text("/");
    screen.press(&[Key::Down, Key::Down, Key::Down]);
    screen.type_text("usa");
    screen.press(&[Key::Enter]);
    assert!(screen.text().contains(" Usage"), "{}", screen.text());
    screen.press(&[Key::Esc]);
    screen.type_text("/renam");
    screen.press(&[Key::Enter]);
    assert!(screen.text().contains("> /rename"), "it needs a name: {}", screen.text());
    screen.type_text("My name");
    screen.press(&[Key::Enter]);
    screen.answer("thread/name/set", Ok(json!({})));
    assert!(screen.text().contains("This thread is called My name"), "{}", screen.text());
    command(&mut screen, "/rename");
    assert!(screen.text().contains("/rename NAME"), "{}", screen.text());
}

#[test]
fn uncommitted_changes_name_new_files_and_say_where_there_is_no_repository() {
    let mut screen = Screen::new(80, 16);
    let output = |text: &str| Ok(json!({"exitCode": 0, "stdout": text}));
    let diff = |screen: &mut Screen, diff: Result<Value, String>, new: Result<Value, String>| {
        command(screen, "/diff");
        screen.answer("command/exec", diff);
        screen.answer("command/exec", new);
        screen.text()
    };
    let text = diff(&mut screen, output(""), output("a.txt\nb.txt\n"));
    assert!(text.contains(" Uncommitted changes") && text.contains("new b.txt (not added to git"), "{text}");
    screen.press(&[Key::Esc]);
    let text = diff(&mut screen, output(""), output(""));
    assert!(text.contains("No uncommitted changes."), "{text}");
    let failed = || Ok(json!({"exitCode": 128, "stdout": ""}));
    let text = diff(&mut screen, failed(), failed());
    assert!(text.contains("There is no repository here"), "{text}");
    command(&mut screen, "/diff turn");
    assert!(screen.text().contains("Changes of the latest turn: none."), "{}", screen.text());
}

#[test]
fn hints_are_seen_while_the_model_works_and_cleared_text_comes_back() {
    let mut screen = Screen::new(44, 12);
    screen.type_text("a long text");
    screen.press(&[Key::Ctrl('c')]);
    let text = screen.text();
    assert!(text.contains("Press Ctrl-C again to quit\n") && !text.contains("a long text"), "{text}");
    screen.resize(80, 12);
    assert!(screen.text().contains("again to quit · Ctrl-/ brings the text back"), "{}", screen.text());
    screen.press(&[Key::Ctrl('7')]);
    assert_eq!(screen.app.composer.editor.text(), "a long text");
    screen.start_turn();
    screen.press(&[Key::Ctrl('o')]);
    assert!(screen.text().contains("Working… 0 s · Showing: all · Esc or Ctrl-C to stop"), "{}", screen.text());
    for number in 0..20 {
        let id = format!("m{number}");
        screen.item("item/completed", json!({"type": "agentMessage", "id": id, "text": "words"}));
    }
    screen.press(&[Key::PageUp]);
    assert!(screen.text().contains("to stop · Scrolled back, Alt-> for the end"), "{}", screen.text());
    screen.resize(40, 12);
    assert!(screen.text().contains("Working… 0 s · Esc or Ctrl-C to stop\n"), "what fits: {}", screen.text());
    screen.resize(80, 12);
    screen.press(&[Key::Ctrl('c')]);
    assert!(screen.text().contains("Press Ctrl-C again to quit · Esc to stop"), "{}", screen.text());
}

#[test]
fn a_list_that_is_empty_says_why() {
    let mut screen = Screen::new(80, 12);
    screen.type_text("see @");
    assert!(screen.text().contains("Type a part of the name of a file"), "{}", screen.text());
    screen.press(&[Key::Ctrl('u'), Key::Char('$')]);
    screen.answer("skills/list", Ok(json!({"data": [{"skills": []}]})));
    assert!(screen.text().contains("There are no skills"), "{}", screen.text());
}

#[test]
fn the_text_of_a_command_is_no_earlier_prompt() {
    let mut screen = Screen::new(80, 24);
    command(&mut screen, "/init");
    assert!(screen.calls().iter().any(|(method, _)| *method == "turn/start"), "{:?}", screen.calls());
    screen.press(&[Key::Up]);
    assert_eq!(screen.app.composer.editor.text(), "/init");
}
