//! Goldens of the states of the prompt, of requests, lists and pages, at 80 and 160 columns.

use serde_json::json;

use super::requests::{arm, ask, asked, form};
use super::views::{check, filled};
use super::{Screen, back, queue};
use crate::full::app::Input;
use crate::key::Key;
use crate::vim::Vim;

/// Plays something on screens of both widths, and compares them with their goldens.
#[track_caller]
pub(super) fn golden(name: &str, height: u16, play: impl Fn(&mut Screen)) {
    for width in [80, 160] {
        let mut screen = Screen::new(width, height);
        play(&mut screen);
        check(&mut screen, name);
    }
}

fn answer(screen: &mut Screen, id: &str, text: &str) {
    screen.item("item/completed", json!({"type": "agentMessage", "id": id, "text": text}));
}

#[test]
fn a_new_thread_invites() {
    golden("start", 12, |_| {});
}

#[test]
fn a_prompt_of_several_lines_with_a_paste() {
    golden("composer", 14, |screen| {
        screen.type_text("Look at 日本語 and this:");
        screen.press(&[Key::NewLine, Key::Paste("pasted words ".repeat(200)), Key::Char(' ')]);
        screen.type_text("with words enough to need another row at eighty columns, not at more");
    });
}

#[test]
fn the_prompt_in_the_modes_of_vi() {
    golden("vim", 10, |screen| {
        screen.app.composer.vim = Some(Vim::default());
        screen.type_text("some words to select");
        screen.press(&[Key::Esc, Key::Char('b'), Key::Char('v'), Key::Char('e')]);
    });
}

#[test]
fn lists_at_a_slash_and_an_at_sign() {
    golden("commands", 16, |screen| {
        screen.type_text("/");
        screen.press(&[Key::Down]);
    });
    golden("files", 14, |screen| {
        screen.type_text("see @ma");
        screen.answer("fuzzyFileSearch/sessionStart", Err("there is no such method".to_owned()));
        let files = json!({"files": [{"path": "src/main.rs"}, {"path": "docs/manual/a-long-name.md"}]});
        screen.answer("fuzzyFileSearch", Ok(files));
    });
}

#[test]
fn a_search_marks_what_it_has_found() {
    let rain = |screen: &mut Screen| {
        screen.start_turn();
        answer(screen, "a", "It rains in Bergen.");
        answer(screen, "b", "It is dry in Oslo.");
        screen.end_turn("completed");
        screen.press(&[Key::Ctrl('s')]);
        screen.type_text("RAIN");
    };
    golden("search", 16, rain);
    golden("found", 16, |screen| {
        rain(screen);
        screen.press(&[Key::Enter]);
    });
    golden("not-found", 16, |screen| {
        rain(screen);
        screen.type_text("bow");
        screen.press(&[Key::Enter]);
    });
}

#[test]
fn a_turn_that_runs_and_messages_that_wait() {
    golden("working", 14, |screen| {
        screen.type_text("first");
        screen.press(&[Key::Enter]);
        screen.answer("turn/start", Ok(json!({"turn": {"id": "u"}})));
        screen.type_text("and this");
        screen.press(&[Key::Enter]);
        screen.answer("turn/steer", Ok(json!({})));
    });
    golden("queue", 14, |screen| {
        queue::serve(screen);
        queue::changed(screen, &[queue::entry("1", "then the tests"), queue::entry("2", "and the docs")]);
        screen.press(&[Key::BackTab]);
    });
}

#[test]
fn approvals() {
    golden("approval-command", 14, |screen| {
        screen.start_turn();
        let params = json!({"threadId": "t", "turnId": "u", "itemId": "c", "command": "cargo test --all", "cwd": "/w",
            "reason": "needs the network", "proposedExecpolicyAmendment": ["cargo", "test"]});
        asked(screen, "t", 1, "item/commandExecution/requestApproval", params);
        arm(screen, 1);
    });
    golden("approval-changes", 18, |screen| {
        screen.start_turn();
        let diff = "@@ -1,3 +1,3 @@\n fn main() {\n-    old();\n+    new();\n }\n";
        let changes = json!([{"path": "/home/me/w/src/a.rs", "kind": {"type": "update"}, "diff": diff}]);
        screen
            .item("item/started", json!({"type": "fileChange", "id": "f", "status": "inProgress", "changes": changes}));
        let params = json!({"threadId": "t", "turnId": "u", "itemId": "f", "reason": null});
        asked(screen, "t", 1, "item/fileChange/requestApproval", params);
        arm(screen, 1);
    });
    golden("approval-several", 20, |screen| {
        screen.start_turn();
        ask(screen, 1, "first");
        let params = json!({"threadId": "child", "command": "second", "cwd": "/w"});
        asked(screen, "child", 2, "item/commandExecution/requestApproval", params);
        arm(screen, 1);
    });
    golden("approval-long", 12, |screen| {
        screen.start_turn();
        ask(screen, 1, &(0..30).map(|number| format!("echo {number}")).collect::<Vec<_>>().join("\n"));
        arm(screen, 1);
    });
    golden("approval-pending", 10, |screen| {
        screen.start_turn();
        ask(screen, 1, "make");
    });
    golden("permissions", 14, |screen| {
        screen.start_turn();
        let params = json!({"threadId": "t", "cwd": "/w", "permissions": {"fileSystem": {"write": ["/srv"]}}});
        asked(screen, "t", 1, "item/permissions/requestApproval", params);
        arm(screen, 1);
    });
}

#[test]
fn forms() {
    golden("form", 20, |screen| {
        screen.start_turn();
        asked(screen, "t", 1, "mcpServer/elicitation/request", form());
        arm(screen, 1);
        screen.press(&[Key::Enter]);
    });
    golden("question", 16, |screen| {
        screen.start_turn();
        let options = json!([{"label": "SQLite", "description": "a file"}, {"label": "Postgres", "description": ""}]);
        let params = json!({"threadId": "t", "autoResolutionMs": 60_000,
            "questions": [{"id": "q", "header": "Store", "question": "Which?", "options": options}]});
        asked(screen, "t", 1, "item/tool/requestUserInput", params);
        arm(screen, 1);
    });
    golden("address", 14, |screen| {
        screen.start_turn();
        let params =
            json!({"serverName": "docs", "message": "Log in", "mode": "url", "url": "https://example.org/login"});
        asked(screen, "t", 1, "mcpServer/elicitation/request", params);
        arm(screen, 1);
    });
}

#[test]
fn lists_of_earlier_messages_and_prompts() {
    golden("earlier", 12, |screen| {
        let turns = [back::turn("1", "fix the parser"), back::turn("2", "and now the tests")];
        screen.tell("thread/started", json!({"thread": {"id": "t", "turns": turns}}));
        screen.press(&[Key::Esc, Key::Esc]);
    });
    golden("prompts", 12, |screen| {
        for text in ["fix the parser", "and now the tests"] {
            screen.app.history.add(None, text);
        }
        screen.press(&[Key::Ctrl('r'), Key::Down]);
    });
}

#[test]
fn pages() {
    for (name, command) in [("keys", "/keys"), ("status", "/status")] {
        golden(name, 24, |screen| {
            screen.type_text(command);
            screen.press(&[Key::Esc, Key::Enter]);
        });
    }
}

#[test]
fn views_with_nothing_to_show_say_so() {
    for (name, command, method) in [
        ("agents-none", "/agents", "thread/agents/read"),
        ("mcp-none", "/mcp", "mcpServerStatus/list"),
        ("terminals-none", "/ps", "thread/backgroundTerminals/list"),
    ] {
        golden(name, 10, |screen| {
            screen.type_text(command);
            screen.press(&[Key::Esc, Key::Enter]);
            screen.answer(method, Ok(json!({"data": [], "inbox": [], "nextCursor": null})));
        });
    }
    golden("timeline-none", 10, |screen| {
        screen.type_text("/timeline");
        screen.press(&[Key::Esc, Key::Enter]);
    });
}

#[test]
fn fold_levels() {
    for (name, presses) in [("fold-all", 1), ("fold-commands", 2)] {
        for width in [80, 160] {
            let mut screen = filled(width);
            let output = (0..14).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n");
            let item = json!({"type": "commandExecution", "id": "d", "command": "seq 14", "cwd": "/w",
                "status": "completed", "exitCode": 0, "durationMs": 1, "aggregatedOutput": output});
            screen.item("item/completed", item);
            screen.press(&vec![Key::Ctrl('o'); presses]);
            check(&mut screen, name);
        }
    }
}

#[test]
fn a_server_that_is_gone_and_a_turn_that_failed() {
    golden("lost", 14, |screen| {
        screen.start_turn();
        let error = json!({"message": "the model is overloaded"});
        let turn = json!({"id": "u", "status": "failed", "items": [], "error": error});
        screen.tell("turn/completed", json!({"threadId": "t", "turn": turn}));
        screen.input(Input::Lost("connection reset".to_owned()));
    });
}

#[test]
fn a_transcript_that_is_scrolled_back() {
    golden("scrolled", 12, |screen| {
        screen.start_turn();
        for number in 0..20 {
            answer(screen, &format!("a{number}"), &format!("Answer {number}."));
        }
        screen.end_turn("completed");
        screen.press(&[Key::PageUp]);
    });
}
