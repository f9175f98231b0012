//! The status line, the title, folds of the configuration, links, scripts of the world, and bad input.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Screen;
use crate::full::app::{Effect, Input};
use crate::full::status::DisplaySettings;
use crate::input::{Mouse, MouseKind};
use crate::key::Key;

fn titles(screen: &Screen) -> Vec<&str> {
    let title = |effect: &'_ Effect| matches!(effect, Effect::Title(_));
    let titles = screen.effects.iter().filter(|effect| title(effect));
    titles.map(|effect| if let Effect::Title(title) = effect { title.as_str() } else { "" }).collect()
}

#[test]
fn the_status_line_has_the_parts_of_the_configuration() {
    let parts = ["branch", "thread", "model"].map(str::to_owned).to_vec();
    let mut screen = Screen::with(80, 24, DisplaySettings { status_line: Some(parts), ..DisplaySettings::default() });
    screen.app.branch = Some("main".to_owned());
    let rows = screen.rows();
    assert_eq!(rows.last().map(String::as_str), Some(" main · t · m1"));
}

#[test]
fn a_program_writes_the_status_line_and_is_asked_only_after_changes() {
    let words = vec!["my-status".to_owned()];
    let settings = DisplaySettings { status_command: Some(words.clone()), ..DisplaySettings::default() };
    let mut screen = Screen::with(80, 24, settings);
    let asked =
        |screen: &Screen| screen.effects.iter().filter(|effect| matches!(effect, Effect::Program { .. })).count();
    screen.start_turn();
    assert_eq!(asked(&screen), 1);
    screen.delta("m", "text");
    screen.type_text("typed");
    assert_eq!(asked(&screen), 1, "nothing that it could show has changed");
    let id = screen.effects.iter().rev().find_map(|effect| match effect {
        Effect::Program { id, .. } => Some(*id),
        _ => None,
    });
    screen.input(Input::Answer(id.expect("it was asked"), Ok(json!("\u{1b}[31mnice\nmore"))));
    let rows = screen.rows();
    assert!(rows.last().is_some_and(|row| row.ends_with("[31mnice")), "{rows:?}");
}

#[test]
fn the_title_tells_who_waits_and_a_window_behind_is_notified() {
    let mut screen = Screen::new(80, 24);
    screen.start_turn();
    assert_eq!(titles(&screen).last(), Some(&"codex · w · working"));
    screen.input(Input::Focus(false));
    super::requests::ask(&mut screen, 1, "make");
    assert_eq!(titles(&screen).last(), Some(&"codex · w · needs you"));
    assert!(screen.effects.contains(&Effect::Notify("an approval is needed".to_owned())));
    let before = screen.effects.len();
    screen.input(Input::Focus(true));
    screen.tell("serverRequest/resolved", json!({"threadId": "t", "requestId": 1}));
    screen.end_turn("completed");
    let notified = screen.effects[before..].iter().any(|effect| matches!(effect, Effect::Notify(_)));
    assert!(!notified, "the window is in front");
    assert_eq!(titles(&screen).last(), Some(&"codex · w"));
}

fn command(screen: &mut Screen, id: &str, lines: usize) {
    let output = (0..lines).map(|number| format!("out {number}")).collect::<Vec<_>>().join("\n");
    screen.item(
        "item/completed",
        json!({"type": "commandExecution", "id": id, "command": "make", "cwd": "/w", "status": "completed",
            "exitCode": 0, "durationMs": 1, "aggregatedOutput": output}),
    );
}

#[test]
fn the_configuration_folds_and_a_key_unfolds_one_item() {
    for (fold, hidden) in [("commands", 30), ("preview", 20), ("all", 0)] {
        let settings = DisplaySettings { fold: Some(fold.to_owned()), ..DisplaySettings::default() };
        let mut screen = Screen::with(80, 80, settings);
        screen.start_turn();
        command(&mut screen, "c", 30);
        let text = screen.text();
        assert_eq!(text.contains("more lines"), hidden > 0, "{fold}: {text}");
        assert_eq!(text.matches("│ out").count(), 30 - hidden, "{fold}: {text}");
    }
    let mut screen = Screen::new(80, 120);
    screen.start_turn();
    command(&mut screen, "c", 30);
    command(&mut screen, "d", 30);
    let counts: Vec<usize> = (0..3)
        .map(|_| {
            screen.press(&[Key::Alt('o')]);
            screen.text().matches("│ out").count()
        })
        .collect();
    assert_eq!(counts, [40, 10, 20], "all, commands and the preview of the last one; the first keeps its own");
}

#[test]
fn a_search_finds_and_unfolds_hidden_output() {
    let mut screen = Screen::new(80, 10);
    screen.start_turn();
    command(&mut screen, "c", 3000);
    for number in 0..20 {
        let text = format!("answer {number}");
        screen.item("item/completed", json!({"type": "agentMessage", "id": format!("a{number}"), "text": text}));
    }
    assert!(!screen.text().contains("out 1500"));
    screen.press(&[Key::Ctrl('s')]);
    screen.type_text("OUT 1500");
    screen.press(&[Key::Enter]);
    assert_eq!(screen.rows()[0], "  │ out 1500");
}

#[test]
fn answers_are_copied_whole_and_code_without_fence_and_indent() {
    let mut screen = Screen::new(40, 24);
    screen.start_turn();
    let text = "A long sentence that is wrapped at this width.\n\n1. item\n\n   ```sh\n   ls -l\n     more\n   ```\n";
    screen.item("item/completed", json!({"type": "agentMessage", "id": "m", "text": text}));
    screen.end_turn("completed");
    for (command, copied) in [("/copy", text), ("/copy code", "ls -l\n  more\n")] {
        screen.type_text(command);
        screen.press(&[Key::Esc, Key::Enter]);
        assert!(screen.effects.contains(&Effect::Copy(copied.to_owned())), "{command}");
    }
    screen.type_text("/export notes.md");
    screen.press(&[Key::Enter]);
    let exported = screen.effects.iter().any(|effect| match effect {
        Effect::Export { name, text, .. } => name.as_deref() == Some("notes.md") && text.contains("A long sentence"),
        _ => false,
    });
    assert!(exported);
}

#[test]
fn commands_of_other_releases_mean_the_same() {
    for (other, method) in [
        ("/permissions", "thread/permissions/read"),
        ("/subagents", "thread/agents/read"),
        ("/agent", "thread/agents/read"),
        ("/ps", "thread/backgroundTerminals/list"),
        ("/stop", "thread/backgroundTerminals/clean"),
        ("/mcp", "mcpServerStatus/list"),
        ("/resume", "thread/list"),
        ("/archive", "thread/archive"),
        ("/rename New name", "thread/name/set"),
        ("/compact", "thread/compact/start"),
    ] {
        let mut screen = Screen::new(80, 24);
        screen.type_text(other);
        screen.press(&[Key::Esc, Key::Enter]);
        assert!(screen.calls().iter().any(|(called, _)| *called == method), "{other}");
    }
}

/// The columns of wide, combining and right-to-left text are those of the terminal, so nothing is cut or shifted.
#[test]
fn scripts_of_the_world_keep_their_columns() {
    let samples = [
        "日本語のとても長い文章です。改行されます。",
        "ภาษาไทยไม่มีช่องว่าง",
        "emoji 🦀🚀 wide",
        "עברית וערבית العربية",
        "e\u{301}a\u{308} combining",
    ];
    for width in [20, 33, 80] {
        let mut screen = Screen::new(width, 40);
        screen.start_turn();
        for (at, text) in samples.iter().enumerate() {
            let item = json!({"type": "agentMessage", "id": format!("m{at}"), "text": format!("{text} end{at}")});
            screen.item("item/completed", item);
        }
        let joined: String = screen.rows().concat().split_whitespace().collect();
        for (at, text) in samples.iter().enumerate() {
            let wanted: String = format!("{text} end{at}").split_whitespace().collect();
            assert!(joined.contains(&wanted), "{width}: {wanted} in {joined}");
        }
    }
}

#[test]
fn bad_input_is_shown_and_nothing_breaks() {
    let mut screen = Screen::new(80, 24);
    screen.start_turn();
    let kinds = ["agentMessage", "commandExecution", "fileChange", "mcpToolCall", "reasoning", "odd", ""];
    let odd = [json!(null), json!(7), json!("\u{1b}]52;c;eA==\u{7}\u{202e}x"), json!([[], {}]), json!({"a": 1})];
    for (at, kind) in kinds.iter().enumerate() {
        for (place, value) in odd.iter().enumerate() {
            let mut item = json!({"type": kind, "id": format!("{at}-{place}")});
            for name in [
                "text",
                "command",
                "aggregatedOutput",
                "changes",
                "summary",
                "content",
                "arguments",
                "result",
                "status",
            ] {
                item[name] = value.clone();
            }
            screen.item("item/completed", item);
        }
    }
    for answer in
        [json!(null), json!([1]), json!({"data": [7, {"tools": 3}, {"name": {}}], "rules": [{}], "grants": [4]})]
    {
        for (command, method) in [
            ("/mcp", "mcpServerStatus/list"),
            ("/approvals", "thread/permissions/read"),
            ("/agents", "thread/agents/read"),
            ("/ps", "thread/backgroundTerminals/list"),
        ] {
            screen.type_text(command);
            screen.press(&[Key::Esc, Key::Enter]);
            if screen.app.overlay.is_none() {
                continue;
            }
            screen.answer(method, Ok(answer.clone()));
            for (width, height) in [(1, 1), (2, 3), (80, 24)] {
                screen.resize(width, height);
                assert_eq!(screen.rows().len(), usize::from(height));
            }
            screen.press(&[Key::Down, Key::Enter, Key::Esc, Key::Esc]);
            screen.app.overlay = None;
        }
    }
    assert!(!screen.text().contains('\u{1b}'));
}

/// Whether a diff of 10,000 files can be opened and scrolled.
#[test]
fn a_diff_of_ten_thousand_files_scrolls() {
    let mut screen = Screen::new(80, 24);
    let mut diff = String::new();
    for at in 0..10_000 {
        let head = format!("diff --git a/f{at} b/f{at}\n--- a/f{at}\n+++ b/f{at}\n@@ -1 +1 @@");
        writeln!(diff, "{head}\n-old {at}\n+new {at}").expect("text is written");
    }
    screen.start_turn();
    screen.tell("turn/diff/updated", json!({"threadId": "t", "turnId": "u", "diff": diff}));
    screen.end_turn("completed");
    screen.type_text("/diff turn");
    screen.press(&[Key::Enter]);
    assert!(screen.text().contains("change f0 +1"), "{}", screen.text());
    screen.press(&[Key::End]);
    assert!(screen.text().contains("+new 9999"), "{}", screen.text());
    screen.press(&[Key::Home, Key::Char('/')]);
    screen.type_text("new 5000");
    screen.press(&[Key::Enter]);
    assert!(screen.rows()[1].contains("+new 5000"), "{}", screen.text());
    let wheel = Input::Mouse(Mouse { kind: MouseKind::WheelDown, column: 0, row: 3 });
    screen.input(wheel);
    assert!(!screen.rows()[1].contains("+new 5000"));
}

/// Earlier turns come page by page, and the place in view stays.
#[test]
fn earlier_turns_are_put_before_the_latest() {
    let turn = |number: usize| {
        let items: Vec<Value> = (0..5)
            .map(|at| json!({"type": "agentMessage", "id": format!("{number}-{at}"), "text": format!("text {number}.{at}")}))
            .collect();
        json!({"id": format!("turn {number}"), "status": "completed", "items": items})
    };
    let mut screen = Screen::new(80, 12);
    let mut answer = super::opened(&[]);
    answer["thread"]["preview"] = json!("before");
    answer["initialTurnsPage"] = json!({"data": [turn(9), turn(8)], "nextCursor": "after:8"});
    screen.input(Input::Opened(Ok(answer), false));
    screen.press(&[Key::PageUp]);
    let before = screen.text();
    screen.answer("thread/turns/list", Ok(json!({"data": [turn(7), turn(6)], "nextCursor": "after:6"})));
    assert_eq!(screen.text(), before, "nothing moves");
    screen.answer("thread/turns/list", Ok(json!({"data": [turn(5)], "nextCursor": null})));
    screen.item("item/started", json!({"type": "agentMessage", "id": "new", "text": "new text"}));
    let thread = screen.app.thread.as_ref().and_then(|open| screen.app.client.thread(&open.id));
    let all: Vec<String> = screen
        .app
        .transcript
        .unprinted(thread, 80, true)
        .iter()
        .map(|row| row.iter().map(|span| span.text.as_str()).collect::<String>())
        .filter(|row| row.contains("text"))
        .collect();
    let wanted: Vec<String> = (5..10)
        .flat_map(|number| (0..5).map(move |at| format!("text {number}.{at}")))
        .chain(["new text".to_owned()])
        .collect();
    assert_eq!(all, wanted);
    let first = &screen.app.transcript.entries[0];
    assert!(
        matches!(first, crate::full::transcript::Entry::Note { .. }),
        "what the chat says at the start is above all"
    );
}

#[test]
fn an_idle_chat_waits_for_nothing_and_writes_nothing() {
    let mut screen = Screen::new(80, 24);
    screen.start_turn();
    assert!(screen.app.deadline().is_some(), "the duration of the turn is updated");
    screen.end_turn("completed");
    screen.rows();
    assert_eq!(screen.app.deadline(), None);
    assert_eq!(screen.shown.update(screen.app.draw()), b"");
}

#[test]
fn a_line_of_a_megabyte_is_shown_and_searched() {
    let mut screen = Screen::new(80, 24);
    screen.start_turn();
    let line = "x".repeat(1 << 20);
    screen.item("item/completed", json!({"type": "agentMessage", "id": "m", "text": format!("{line} the end")}));
    screen.item(
        "item/completed",
        json!({"type": "commandExecution", "id": "c", "command": "cat", "cwd": "/w", "status": "completed",
            "exitCode": 0, "durationMs": 1, "aggregatedOutput": format!("{line}needle{line}")}),
    );
    screen.end_turn("completed");
    assert_eq!(screen.rows().len(), 24);
    screen.press(&[Key::Ctrl('s')]);
    screen.type_text("needle");
    screen.press(&[Key::Enter]);
    assert!(screen.text().contains("needle"), "{}", screen.text());
    assert!(!screen.text().contains("Not found"), "{}", screen.text());
}

#[test]
fn marks_that_turn_or_hide_text_are_seen() {
    let mut screen = Screen::new(80, 24);
    screen.start_turn();
    let evil = "user\u{202e}\u{2066}txt.exe\u{2069} zero\u{200b}width \u{1b}[2Jgone";
    screen.item("item/completed", json!({"type": "agentMessage", "id": "m", "text": evil}));
    screen
        .item("item/completed", json!({"type": "userMessage", "id": "q", "content": [{"type": "text", "text": evil}]}));
    let text = screen.text();
    for hidden in ['\u{202e}', '\u{2066}', '\u{2069}', '\u{1b}'] {
        assert!(!text.contains(hidden), "{text:?}");
    }
    assert_eq!(text.matches("txt.exe").count(), 2, "{text}");
}

#[test]
fn a_search_begins_in_view_and_goes_around() {
    let mut screen = Screen::new(80, 12);
    screen.start_turn();
    for number in 0..30 {
        let text = if number % 10 == 0 { format!("needle {number}") } else { format!("hay {number}") };
        screen.item("item/completed", json!({"type": "agentMessage", "id": format!("a{number}"), "text": text}));
    }
    screen.end_turn("completed");
    screen.press(&[Key::Ctrl('s')]);
    screen.type_text("needle");
    screen.press(&[Key::Enter]);
    let mut found = Vec::new();
    for _ in 0..4 {
        let place = screen.app.transcript.found.expect("it is found");
        let thread = screen.app.open_thread();
        let rows = screen.app.transcript.rows(place.entry, thread, 80);
        found.push(rows.get(place.row).map(|laid| crate::laid::logical(&laid.row)).unwrap_or_default());
        assert!(screen.text().contains(&found[found.len() - 1]), "{}", screen.text());
        screen.press(&[Key::Alt('n')]);
    }
    assert_eq!(found, ["needle 20", "needle 10", "needle 0", "needle 20"]);
}

#[test]
fn a_short_status_line_keeps_what_waits() {
    let mut screen = Screen::new(120, 24);
    screen.app.branch = Some("a-branch-with-a-long-name".to_owned());
    screen.start_turn();
    super::requests::ask(&mut screen, 1, "make");
    for width in [120, 100, 80, 60, 40, 20] {
        screen.resize(width, 24);
        let rows = screen.rows();
        let last = rows.last().expect("there are rows");
        assert!(last.contains("1 waiting for you"), "{width}: {last}");
        assert_eq!(last.contains("a-branch-with-a-long-name"), width >= 100, "{width}: {last}");
    }
}

/// An answer that streams in is shown as if it had come at once, at every step.
#[test]
fn a_stream_is_shown_like_the_whole_answer() {
    let text = "# Title\n\nSome *words* and `code`.\n\n- one\n- two\n\n```rust\nlet x = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThe [end].\n\n[end]: https://x.y\n";
    let mut screen = Screen::new(60, 40);
    screen.start_turn();
    screen.item("item/started", json!({"type": "agentMessage", "id": "m", "text": ""}));
    for at in 0..text.len() {
        screen.delta("m", &text[at..=at]);
        let mut whole = Screen::new(60, 40);
        whole.start_turn();
        whole.item("item/completed", json!({"type": "agentMessage", "id": "m", "text": text[..=at].to_owned()}));
        assert_eq!(screen.text(), whole.text(), "{:?}", &text[..=at]);
    }
    screen.item("item/completed", json!({"type": "agentMessage", "id": "m", "text": "Another text."}));
    let shown = screen.text();
    assert!(shown.contains("Another text.") && !shown.contains("Title"), "the last word counts: {shown}");
}

#[test]
fn a_search_finds_what_is_seen_over_marks_wraps_and_in_labels() {
    let mut screen = Screen::new(40, 16);
    screen.start_turn();
    let text = "The parser reads **one line at a time**, see `src/parse.rs` for it.";
    screen.item("item/completed", json!({"type": "agentMessage", "id": "a", "text": text}));
    screen.item(
        "item/completed",
        json!({"type": "commandExecution", "id": "c", "command": "make", "status": "failed", "exitCode": 7,
            "aggregatedOutput": ""}),
    );
    for (sought, row) in [("a time, see", Some("line at a time, see")), ("Exit 7", Some("exit 7")), ("exit 8", None)] {
        screen.press(&[Key::Ctrl('s'), Key::Ctrl('u')]);
        screen.type_text(sought);
        screen.press(&[Key::Enter]);
        let shown = screen.text();
        assert_eq!(shown.contains("Not found"), row.is_none(), "{sought}: {shown}");
        assert_eq!(screen.app.transcript.found.is_some(), row.is_some(), "{sought}");
    }
    // A line break of the layout is none of the text.
    screen.press(&[Key::Ctrl('s')]);
    screen.type_text("reads one line at a time, see src");
    screen.press(&[Key::Enter]);
    assert!(screen.app.transcript.found.is_some(), "{}", screen.text());
}

#[test]
fn a_review_and_a_summary_are_told_once() {
    let mut screen = Screen::new(80, 20);
    screen.start_turn();
    screen.item("item/completed", json!({"type": "contextCompaction", "id": "s"}));
    screen.tell("thread/compacted", json!({"threadId": "t", "turnId": "u"}));
    screen.item("item/completed", json!({"type": "exitedReviewMode", "id": "e", "review": "All is well."}));
    assert_eq!(screen.text().matches("All is well.").count(), 1, "it is seen until the answer has come");
    screen.item("item/completed", json!({"type": "agentMessage", "id": "a", "text": "All is well."}));
    let text = screen.text();
    assert_eq!((text.matches("All is well.").count(), text.matches("Compacted").count()), (1, 1), "{text}");
    let mut other = Screen::new(80, 20);
    other.start_turn();
    other.tell("thread/compacted", json!({"threadId": "t", "turnId": "u"}));
    assert!(other.text().contains("Compacted"), "of releases without an item: {}", other.text());
}
