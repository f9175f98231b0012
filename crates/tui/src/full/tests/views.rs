//! Goldens of whole screens at 80 and 160 columns.

use expect_test::expect_file;
use serde_json::json;

use super::Screen;
use crate::key::Key;

/// A thread with everything in it.
fn filled(width: u16) -> Screen {
    let mut screen = Screen::new(width, 40);
    screen.start_turn();
    screen.item(
        "item/completed",
        json!({"type": "userMessage", "id": "q", "content": [{"type": "text", "text": "How does it work?"}]}),
    );
    screen.item(
        "item/completed",
        json!({"type": "reasoning", "id": "r", "summary": ["**Looking** at the sources"], "content": []}),
    );
    screen.item(
        "item/completed",
        json!({"type": "commandExecution", "id": "c", "command": "bash -lc 'ls src'", "cwd": "/w",
        "status": "failed", "exitCode": 2, "durationMs": 300, "aggregatedOutput": "a.rs\nb.rs\n"}),
    );
    let diff = "@@ -1,3 +1,3 @@\n fn main() {\n-    old();\n+    new();\n }\n";
    screen.item(
        "item/completed",
        json!({"type": "fileChange", "id": "f", "status": "completed",
        "changes": [{"path": "/home/me/w/src/a.rs", "kind": {"type": "update"}, "diff": diff}]}),
    );
    screen.tell(
        "turn/plan/updated",
        json!({"threadId": "t", "turnId": "u", "explanation": "in two steps",
        "plan": [{"step": "read", "status": "completed"}, {"step": "write", "status": "inProgress"}]}),
    );
    let text = "## Answer\n\nSee [the book](https://doc.rust-lang.org/book/) and `main`:\n\n```rust\nfn main() { let x = 1; } // end\n```\n\n| a | b |\n|---|---|\n| one | 日本 |\n";
    screen.item("item/completed", json!({"type": "agentMessage", "id": "m", "text": text}));
    let total = json!({"inputTokens": 1200, "cachedInputTokens": 200, "outputTokens": 30, "totalTokens": 1230});
    screen.tell(
        "thread/tokenUsage/updated",
        json!({"threadId": "t", "tokenUsage": {"total": total, "last": total,
        "modelContextWindow": 10000, "threadCost": 0.25}}),
    );
    screen.answer_branch();
    screen
}

impl Screen {
    fn answer_branch(&mut self) {
        self.app.branch = Some("main".to_owned());
    }
}

#[track_caller]
fn check(screen: &mut Screen, expected: &Golden) {
    // The time zone and the version are those of the machine and of the release.
    let shown = screen.attributes().replace(&crate::chat::written(0), "2026-01-01 00:00");
    expected.0.assert_eq(&shown.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

struct Golden(expect_test::ExpectFile);

macro_rules! golden {
    ($name:literal) => {
        Golden(expect_file![concat!("goldens/", $name, ".txt")])
    };
}

#[test]
fn transcript() {
    check(&mut filled(80), &golden!("transcript-80"));
    check(&mut filled(160), &golden!("transcript-160"));
}

#[test]
fn help_page() {
    for (width, golden) in [(80, golden!("help-80")), (160, golden!("help-160"))] {
        let mut screen = Screen::new(width, 24);
        screen.type_text("/help");
        screen.press(&[Key::Enter, Key::Enter]);
        check(&mut screen, &golden);
    }
}

#[test]
fn threads() {
    for (width, golden) in [(80, golden!("threads-80")), (160, golden!("threads-160"))] {
        let mut screen = Screen::new(width, 12);
        screen.type_text("/resume");
        screen.press(&[Key::Esc, Key::Enter]);
        let data = json!([{"id": "a", "preview": "fix the parser", "updatedAt": null}, {"id": "b", "name": "Docs", "updatedAt": null}]);
        screen.answer("thread/list", Ok(json!({"data": data, "nextCursor": null})));
        check(&mut screen, &golden);
    }
}

#[test]
fn usage_and_timeline() {
    for (width, golden) in [(80, golden!("usage-80")), (160, golden!("usage-160"))] {
        let mut screen = filled(width);
        screen.end_turn("completed");
        screen.type_text("/usage");
        screen.press(&[Key::Esc, Key::Enter]);
        check(&mut screen, &golden);
    }
    for (width, golden) in [(80, golden!("timeline-80")), (160, golden!("timeline-160"))] {
        let mut screen = filled(width);
        screen.end_turn("completed");
        screen.type_text("/timeline");
        screen.press(&[Key::Esc, Key::Enter]);
        check(&mut screen, &golden);
    }
}

#[test]
fn servers() {
    for (width, golden) in [(80, golden!("mcp-80")), (160, golden!("mcp-160"))] {
        let mut screen = Screen::new(width, 12);
        screen.type_text("/mcp");
        screen.press(&[Key::Esc, Key::Enter]);
        let tools = json!({"search": {"description": "searches"}});
        screen.answer(
            "mcpServerStatus/list",
            Ok(json!({"data": [{"name": "docs", "authStatus": "oAuth", "tools": tools}]})),
        );
        check(&mut screen, &golden);
    }
}
