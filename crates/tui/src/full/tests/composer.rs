//! The composer, by keys: pastes, pictures, lists, vi, other keys, drafts.

use std::time::Duration;

use serde_json::json;

use super::Screen;
use crate::full::app::{Effect, Input};
use crate::key::Key;
use crate::keymap::{Binding, Keymap};
use crate::vim::Vim;

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
    assert!(screen.text().contains("> [Image a picture.png]"), "{}", screen.text());
    screen.press(&[Key::Paste("/nowhere/b.png".to_owned())]);
    assert_eq!(
        screen.app.composer.editor.text(),
        "[Image a picture.png]/nowhere/b.png",
        "a file that is not there is text"
    );
    screen.press(&[Key::Enter]);
    let input = screen.calls().last().map(|(_, params)| params["input"][1].clone());
    assert_eq!(input, Some(json!({"type": "localImage", "path": path})));
    screen.press(&[Key::Paste(path.display().to_string()), Key::Backspace]);
    assert!(screen.app.composer.editor.is_empty());
}

#[test]
fn the_picture_on_the_clipboard_is_attached() {
    let mut screen = Screen::new(80, 24);
    screen.type_text("see ");
    for (answer, shown) in
        [(Err("there is none".to_owned()), "there is none"), (Ok(json!("/d/a.png")), "see [Image a.png]")]
    {
        screen.press(&[Key::Ctrl('v')]);
        let asked = screen.effects.iter().rev().find_map(|effect| match effect {
            Effect::Picture(id) => Some(*id),
            _ => None,
        });
        screen.input(Input::Answer(asked.expect("it is asked for"), answer));
        assert!(screen.text().contains(shown), "{}", screen.text());
    }
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
    screen.answer("fuzzyFileSearch/sessionStart", Err("there is no such method".to_owned()));
    screen.answer("fuzzyFileSearch", Ok(json!({"files": [{"path": "src/main.rs"}]})));
    screen.press(&[Key::Enter]);
    assert_eq!(screen.app.composer.editor.text(), "see @src/main.rs ");
    assert!(screen.effects.iter().all(|effect| !matches!(effect, Effect::Call { method: "turn/start", .. })));
}

#[test]
fn prompts_and_skills_are_listed_and_used() {
    let mut screen = Screen::new(80, 24);
    screen.type_text("/");
    let prompt =
        json!({"name": "fix", "description": "Fix a\u{202e} bug", "argumentHint": "FILE", "content": "Fix $1 now."});
    screen.answer("customPrompt/list", Ok(json!({"data": [prompt]})));
    screen.type_text("fi");
    assert!(screen.text().contains(" /prompts:fix "), "{}", screen.text());
    screen.press(&[Key::Char('\t')]);
    screen.type_text("main.rs");
    screen.press(&[Key::Enter]);
    let sent = screen.calls().last().map(|(method, params)| (*method, params["input"][0]["text"].clone()));
    assert_eq!(sent, Some(("turn/start", json!("Fix main.rs now."))));
    screen.type_text("/prompts:gone x");
    screen.press(&[Key::Enter]);
    assert_eq!(screen.app.composer.editor.text(), "/prompts:gone x", "nothing is sent by mistake");
    screen.press(&[Key::Ctrl('u')]);
    screen.type_text("use $");
    let skill = json!({"name": "docs", "description": "Write docs", "path": "/s/SKILL.md", "enabled": true});
    screen.answer("skills/list", Ok(json!({"data": [{"cwd": "/w", "skills": [skill]}]})));
    screen.type_text("d");
    screen.press(&[Key::Enter]);
    assert_eq!(screen.app.composer.editor.text(), "use $docs ");
    screen.press(&[Key::Enter]);
    let input = screen.calls().last().map(|(_, params)| params["input"].clone());
    let skill = json!({"type": "skill", "name": "docs", "path": "/s/SKILL.md"});
    assert_eq!(input, Some(json!([{"type": "text", "text": "use $docs "}, skill])));
}

#[test]
fn files_are_searched_while_somebody_types() {
    let mut screen = Screen::new(80, 24);
    screen.type_text("see @m");
    assert_eq!(screen.calls().last().map(|(method, _)| *method), Some("fuzzyFileSearch/sessionStart"));
    screen.answer("fuzzyFileSearch/sessionStart", Ok(json!({})));
    screen.type_text("a");
    let asked = screen.calls().last().map(|(method, params)| (*method, params["query"].clone()));
    assert_eq!(asked, Some(("fuzzyFileSearch/sessionUpdate", json!("ma"))));
    let found = |query: &str, path: &str| json!({"sessionId": "codex-chat", "query": query, "files": [{"path": path}]});
    screen.tell("fuzzyFileSearch/sessionUpdated", found("m", "old"));
    assert!(!screen.text().contains("@old"), "an answer to an earlier word is none");
    screen.tell("fuzzyFileSearch/sessionUpdated", found("ma", "src/ma\u{202e}in.rs"));
    screen.press(&[Key::Char('\t')]);
    assert_eq!(screen.app.composer.editor.text(), "see @src/ma\u{fffd}in.rs ");
    screen.type_text("x");
    assert!(screen.calls().iter().any(|(method, _)| *method == "fuzzyFileSearch/sessionStop"));
}

#[test]
fn the_keys_of_vi_work_and_esc_still_stops_the_turn() {
    let mut screen = Screen::new(80, 24);
    screen.app.composer.vim = Some(Vim::default());
    screen.type_text("one two three");
    screen.press(&[Key::Esc]);
    screen.type_text("bdwu");
    screen.press(&[Key::Ctrl('r')]);
    assert!(screen.text().contains(": one two"), "{}", screen.text());
    screen.type_text("0viw");
    assert!(screen.text().contains("v one two"), "{}", screen.text());
    assert!(screen.attributes().contains("rrr"), "the selection is seen");
    screen.type_text("csix");
    screen.press(&[Key::Enter]);
    let sent = screen.calls().last().map(|(_, params)| params["input"][0]["text"].clone());
    assert_eq!(sent, Some(json!("six two ")));
    assert_eq!(screen.app.composer.mark(), "> ", "the next message is typed at once");
    screen.start_turn();
    screen.press(&[Key::Esc, Key::Esc]);
    assert_eq!(screen.calls().last().map(|(method, _)| *method), Some("turn/interrupt"));
}

#[test]
fn keys_can_be_changed_and_mistakes_are_listed() {
    let mut screen = Screen::new(80, 24);
    let binding = |action: &str, key: &str, line: u32| Binding {
        action: action.to_owned(),
        keys: vec![key.to_owned()],
        at: format!("config.toml:{line}"),
    };
    screen.app.settings.keymap = Keymap::new(&[
        binding("new-line", "enter", 3),
        binding("send", "alt-s", 4),
        binding("cut-word", "f2", 5),
        binding("nonsense", "f3", 6),
    ]);
    screen.type_text("one two");
    screen.press(&[Key::F(2), Key::Ctrl('w'), Key::Enter]);
    screen.type_text("three");
    assert_eq!(screen.app.composer.editor.text(), "one \nthree");
    screen.press(&[Key::Alt('s')]);
    let sent = screen.calls().last().map(|(_, params)| params["input"][0]["text"].clone());
    assert_eq!(sent, Some(json!("one \nthree")));
    screen.type_text("/keys");
    screen.press(&[Key::Alt('s')]);
    let text = screen.text();
    assert!(text.contains("config.toml:6: there is no action `nonsense`"), "{text}");
    assert!(text.contains("alt-s") && text.contains("(send)"), "{text}");
}

#[test]
fn a_draft_is_kept_by_thread_and_removed_when_it_is_sent() {
    let mut screen = Screen::new(80, 24);
    let drafts = |screen: &Screen| -> Vec<(String, Option<String>)> {
        let draft = |effect: &Effect| match effect {
            Effect::KeepDraft(name, draft) => Some((name.clone(), draft.clone())),
            _ => None,
        };
        screen.effects.iter().filter_map(draft).collect()
    };
    screen.type_text("half a ");
    screen.press(&[Key::Paste("x\n".repeat(20))]);
    assert_eq!(drafts(&screen), [], "not at every key");
    screen.pass(Duration::from_secs(1));
    let (name, draft) = drafts(&screen).pop().expect("it is kept");
    assert_eq!(name, "new in /home/me/w", "nothing was said in this thread yet");
    assert_eq!(screen.app.deadline(), None, "nothing is due any more");
    let mut again = Screen::new(80, 24);
    again.input(Input::Draft(draft.expect("it has a text")));
    assert!(again.text().contains("> half a [Pasted 40 characters]"), "{}", again.text());
    screen.press(&[Key::Enter]);
    assert_eq!(drafts(&screen).last(), Some(&(name, None)));
    screen.start_turn();
    screen.type_text("more");
    screen.input(Input::Leaving);
    let (name, draft) = drafts(&screen).pop().expect("it is kept");
    assert_eq!((name.as_str(), draft.as_deref()), ("t", Some(r#"[{"text":"more"}]"#)));
}

#[test]
fn a_restored_draft_is_removed_though_something_was_typed_just_now() {
    let mut screen = Screen::new(80, 24);
    screen.input(Input::Draft(r#"[{"text":"half"}]"#.to_owned()));
    screen.type_text(" more");
    screen.press(&[Key::Enter]);
    let gone = Effect::KeepDraft("new in /home/me/w".to_owned(), None);
    assert!(screen.effects.contains(&gone), "{:?}", screen.effects);
    // A draft that was saved before the first message keeps no second name.
    let mut screen = Screen::new(80, 24);
    screen.type_text("draft");
    screen.pass(Duration::from_secs(1));
    screen.start_turn();
    screen.type_text("!");
    screen.pass(Duration::from_secs(1));
    assert!(screen.effects.contains(&gone), "{:?}", screen.effects);
}

#[test]
fn a_text_is_written_elsewhere() {
    let mut screen = Screen::new(80, 24);
    screen.type_text("a start");
    screen.press(&[Key::Ctrl('g')]);
    assert_eq!(screen.effects.last(), Some(&Effect::Write("a start".to_owned())));
    screen.input(Input::Written(Ok("a start\nand an end\n".to_owned())));
    assert_eq!(screen.app.composer.editor.text(), "a start\nand an end");
    screen.press(&[Key::Ctrl('7')]);
    assert_eq!(screen.app.composer.editor.text(), "a start");
    screen.input(Input::Written(Err("no editor".to_owned())));
    assert!(screen.text().contains("no editor"), "{}", screen.text());
}

#[test]
fn characters_of_all_scripts_are_one_key_each() {
    let mut screen = Screen::new(40, 12);
    screen.type_text("日本กำ👨\u{200d}👩\u{200d}👧🇳🇴");
    assert!(screen.text().contains("> 日本กำ"), "{}", screen.text());
    screen.press(&[Key::Backspace, Key::Backspace, Key::Backspace]);
    assert_eq!(screen.app.composer.editor.text(), "日本");
    let cursor = screen.app.draw().cursor.expect("there is one");
    assert_eq!(cursor.1, 6, "the real cursor is where an input method draws");
}
