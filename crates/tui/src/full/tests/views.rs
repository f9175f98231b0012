//! Goldens of whole screens at 80 and 160 columns.

use expect_test::expect_file;
use serde_json::{Value, json};

use super::Screen;
use crate::chat::ThreadToOpen;
use crate::full::app::{Effect, Input};
use crate::key::Key;

/// A thread with everything in it.
pub(super) fn filled(width: u16) -> Screen {
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

/// Compares the screen with the file of a name and its width.
#[track_caller]
pub(super) fn check(screen: &mut Screen, name: &str) {
    // The time zone and the version are those of the machine and of the release.
    let shown = screen.attributes().replace(&crate::chat::written(0), "2026-01-01 00:00");
    let path = format!("goldens/{name}-{}.txt", screen.app.size.0);
    expect_file![path].assert_eq(&shown.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

#[test]
fn transcript() {
    for width in [80, 160] {
        check(&mut filled(width), "transcript");
    }
}

#[test]
fn help_page() {
    for width in [80, 160] {
        let mut screen = Screen::new(width, 24);
        screen.type_text("/help");
        screen.press(&[Key::Enter, Key::Enter]);
        check(&mut screen, "help");
    }
}

/// Opens a view by a command, and answers its call.
fn open(screen: &mut Screen, command: &str, method: &str, answer: Value) {
    screen.type_text(command);
    screen.press(&[Key::Esc, Key::Enter]);
    screen.answer(method, Ok(answer));
}

#[test]
fn threads() {
    for width in [80, 160] {
        let mut screen = Screen::new(width, 14);
        let data = json!([
            {"id": "a", "preview": "fix the parser", "updatedAt": 0, "cwd": "/w"},
            {"id": "c", "preview": "look at the tests", "updatedAt": 0, "cwd": "/w", "parentThreadId": "a"},
            {"id": "b", "name": "Docs", "updatedAt": 0, "cwd": "/elsewhere"},
        ]);
        open(&mut screen, "/resume", "thread/list", json!({"data": data, "nextCursor": null}));
        screen
            .answer("thread/list", Ok(json!({"data": [{"id": "d", "cwd": "/w", "updatedAt": 0}], "nextCursor": null})));
        assert!(screen.text().contains("hidden: 1 in other folders, 1 archived, 1 agents"), "{}", screen.text());
        screen.press(&[Key::Char('\t'), Key::Ctrl('t'), Key::Down]);
        check(&mut screen, "threads");
        screen.press(&[Key::Enter]);
        assert_eq!(screen.effects.last(), Some(&Effect::Open(ThreadToOpen::Resume("c".to_owned()))));
    }
}

#[test]
fn usage() {
    for width in [80, 160] {
        let mut screen = filled(width);
        screen.end_turn("completed");
        let window = |percent: u32, minutes: u32| json!({"usedPercent": percent, "windowDurationMins": minutes});
        let limits = json!({"primary": window(42, 300), "secondary": window(91, 10080), "planType": "pro"});
        screen.tell("account/rateLimits/updated", json!({"rateLimits": limits}));
        screen.type_text("/usage");
        screen.press(&[Key::Esc, Key::Enter]);
        check(&mut screen, "usage");
    }
}

#[test]
fn timeline() {
    for width in [80, 160] {
        let mut screen = filled(width);
        screen.end_turn("completed");
        screen.type_text("/timeline");
        screen.press(&[Key::Esc, Key::Enter]);
        check(&mut screen, "timeline");
        // Only failures, and then by a text.
        screen.press(&[const { Key::Char('f') }; 5]);
        let text = screen.text();
        assert!(text.contains("Timeline: failures · 1") && text.contains("ls src"), "{text}");
        screen.press(&[Key::Char('f')]);
        screen.type_text("/book");
        screen.press(&[Key::Enter]);
        assert!(screen.text().contains("1 of 5, 4 hidden by the filter"), "{}", screen.text());
        screen.resize(width, 12);
        screen.press(&[Key::Enter]);
        assert_eq!(screen.rows()[0], "Answer", "{}", screen.text());
    }
}

#[test]
fn servers() {
    for width in [80, 160] {
        let mut screen = Screen::new(width, 16);
        let tools = json!({"search": {"description": "searches\nall of it"}, "read": {}});
        let data = json!([
            {"name": "docs", "authStatus": "oAuth", "runtimeStatus": "connected", "tools": tools},
            {"name": "broken", "authStatus": "unsupported", "runtimeStatus": "failed", "tools": {},
                "toolsError": "it has ended: \u{1b}[31mexit 1"},
            {"name": "off", "authStatus": "notLoggedIn", "runtimeStatus": "disabled", "tools": {}},
        ]);
        open(&mut screen, "/mcp", "mcpServerStatus/list", json!({"data": data}));
        screen.press(&[Key::Down]);
        check(&mut screen, "mcp");
    }
}

#[test]
fn servers_are_changed() {
    let mut screen = Screen::new(100, 20);
    let data = json!([{"name": "docs", "runtimeStatus": "connected", "tools": {"search": {"description": "finds"}}}]);
    open(&mut screen, "/mcp", "mcpServerStatus/list", json!({"data": data}));
    screen.press(&[Key::Enter]);
    assert!(screen.text().contains("Tools of docs") && screen.text().contains("finds"), "{}", screen.text());
    screen.press(&[Key::Char('q')]);
    let last = |screen: &Screen| screen.calls().last().map(|(method, params)| (*method, (*params).clone()));
    screen.press(&[Key::Char('r')]);
    assert_eq!(last(&screen), Some(("mcpServer/restart", json!({"name": "docs"}))));
    screen.press(&[Key::Char('e')]);
    let key = last(&screen).map(|(_, params)| (params["keyPath"].clone(), params["value"].clone()));
    assert_eq!(key, Some((json!("mcp_servers.docs.enabled"), json!(false))));
    screen.answer("config/value/write", Ok(json!({})));
    assert_eq!(last(&screen).map(|(method, _)| method), Some("config/mcpServer/reload"));
    screen.answer("config/mcpServer/reload", Ok(json!({})));
    assert!(screen.text().contains("docs is disabled"), "{}", screen.text());
    screen.press(&[Key::Char('a')]);
    screen.type_text("files npx 'a b");
    screen.press(&[Key::Enter]);
    assert!(screen.text().contains("files npx 'a b▏"), "a mistake loses no text: {}", screen.text());
    screen.press(&[Key::Char('\''), Key::Enter]);
    let added = last(&screen).map(|(_, params)| (params["keyPath"].clone(), params["value"].clone()));
    assert_eq!(added, Some((json!("mcp_servers.files"), json!({"command": "npx", "args": ["a b"]}))));
    screen.press(&[Key::Char('l')]);
    screen.answer("mcpServer/oauth/login", Ok(json!({"authorizationUrl": "https://x.y/login"})));
    assert!(screen.text().contains("https://x.y/login"), "{}", screen.text());
    screen.tell("mcpServer/oauthLogin/completed", json!({"name": "docs", "success": true}));
    assert!(screen.text().contains("Logged in to docs"), "{}", screen.text());
    screen.press(&[Key::Char('d')]);
    assert_eq!(last(&screen).map(|(method, _)| method), Some("mcpServerStatus/list"), "nothing is removed yet");
    screen.press(&[Key::Char('d')]);
    let removed = last(&screen).map(|(_, params)| (params["keyPath"].clone(), params["value"].clone()));
    assert_eq!(removed, Some((json!("mcp_servers.docs"), Value::Null)));
}

fn permissions() -> Value {
    json!({
        "approvalPolicy": "on-request",
        "sandbox": {"type": "workspaceWrite", "writableRoots": ["/data"], "networkAccess": false},
        "rules": [
            {"decision": "forbidden", "text": "prefix_rule(pattern=[\"rm\"], decision=\"forbidden\")",
                "file": "/home/me/.codex/rules/team.rules", "line": 2, "justification": "use trash"},
            {"decision": "allow", "text": "prefix_rule(pattern=[\"cargo\", \"test\"])",
                "file": "/home/me/.codex/rules/default.rules", "line": 7, "sandboxOnly": true},
        ],
        "grants": [{"id": "3", "kind": "command", "text": "bash -lc 'make' in /w"}],
    })
}

#[test]
fn approval_policy() {
    for width in [80, 160] {
        let mut screen = Screen::new(width, 24);
        open(&mut screen, "/approvals", "thread/permissions/read", permissions());
        screen.press(&[Key::Char('c')]);
        screen.type_text("rm -r x");
        screen.press(&[Key::Enter]);
        let rule = permissions()["rules"][0].clone();
        let told =
            json!({"outcome": "refuse", "sandboxed": true, "reason": "it is forbidden by a rule", "rules": [rule]});
        screen.answer("thread/permissions/check", Ok(told));
        screen.press(&[Key::Down, Key::Down]);
        check(&mut screen, "policy");
        screen.press(&[Key::Char('d'), Key::Char('d')]);
        let deleted = screen.calls().last().map(|(method, params)| (*method, params["line"].clone()));
        assert_eq!(deleted, Some(("thread/permissions/rule/delete", json!(2))));
        screen.press(&[Key::End, Key::Char('d'), Key::Char('d')]);
        let revoked = screen.calls().last().map(|(method, params)| (*method, params["grantId"].clone()));
        assert_eq!(revoked, Some(("thread/permissions/revoke", json!("3"))));
    }
}

#[test]
fn agents() {
    for width in [80, 160] {
        let mut screen = Screen::new(width, 16);
        let mail =
            json!({"sender_agent_id": 0, "recipient_agent_id": 1, "interrupt": false, "prompt": "Hurry, please"});
        let agent = |id: u64, depth: u64, label: &str, status: &str, inbox: Value| {
            json!({"agentId": id, "threadId": format!("aaaa-{id:08}"), "parentThreadId": "t", "depth": depth,
                "label": label, "status": status, "summary": "Look at the tests", "inbox": inbox})
        };
        let data = json!([
            agent(1, 1, "tester", "running", json!([mail])),
            agent(2, 2, "reader", "idle", json!([])),
            agent(3, 1, "", "failed", json!([])),
        ]);
        open(&mut screen, "/agents", "thread/agents/read", json!({"data": data, "inbox": []}));
        check(&mut screen, "agents");
        screen.press(&[Key::Char('i')]);
        assert!(screen.text().contains("Hurry, please"), "{}", screen.text());
        screen.press(&[Key::Esc]);
        screen.tell("turn/started", json!({"threadId": "aaaa-00000001", "turn": {"id": "u1"}}));
        screen.press(&[Key::Char('s')]);
        let stopped = screen.calls().last().map(|(method, params)| (*method, params["turnId"].clone()));
        assert_eq!(stopped, Some(("turn/interrupt", json!("u1"))));
        screen.press(&[Key::Enter]);
        assert_eq!(screen.effects.last(), Some(&Effect::Open(ThreadToOpen::Resume("aaaa-00000001".to_owned()))));
        // From the agent, the first entry leads back.
        let mut answer = super::opened(&[]);
        answer["thread"]["id"] = json!("aaaa-00000001");
        screen.input(Input::Opened(Ok(answer), false));
        open(&mut screen, "/agents", "thread/agents/read", json!({"data": [], "inbox": []}));
        assert!(screen.text().contains("back to t"), "{}", screen.text());
        screen.press(&[Key::Enter]);
        assert_eq!(screen.effects.last(), Some(&Effect::Open(ThreadToOpen::Resume("t".to_owned()))));
    }
}

#[test]
fn terminals() {
    for width in [80, 160] {
        let mut screen = Screen::new(width, 12);
        let data = json!([
            {"itemId": "c", "processId": "1", "command": "/bin/bash -lc 'npm run dev'", "cwd": "/home/me/w"},
            {"itemId": "d", "processId": "2", "command": "sleep 600", "cwd": "/tmp"},
        ]);
        open(&mut screen, "/ps", "thread/backgroundTerminals/list", json!({"data": data, "nextCursor": null}));
        check(&mut screen, "terminals");
        screen.press(&[Key::Down, Key::Char('s'), Key::Char('s')]);
        let ended = screen.calls().last().map(|(method, params)| (*method, params["processId"].clone()));
        assert_eq!(ended, Some(("thread/backgroundTerminals/terminate", json!("2"))));
        screen.press(&[Key::Char('S'), Key::Char('S')]);
        assert_eq!(screen.calls().last().map(|(method, _)| *method), Some("thread/backgroundTerminals/clean"));
    }
}

#[test]
fn changes() {
    for width in [80, 160] {
        let mut screen = filled(width);
        screen.end_turn("completed");
        screen.type_text("/diff thread");
        screen.press(&[Key::Enter]);
        check(&mut screen, "changes");
        let diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old words here\n+new words here\n";
        screen.tell("turn/diff/updated", json!({"threadId": "t", "turnId": "u", "diff": diff}));
        screen.press(&[Key::Esc]);
        screen.type_text("/diff turn");
        screen.press(&[Key::Enter]);
        let text = screen.text();
        assert!(text.contains("Changes of the latest turn") && text.contains("+new words here"), "{text}");
    }
}
