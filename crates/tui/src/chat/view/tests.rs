//! Renders recorded notifications.

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

fn tell(view: &mut View, method: &str, params: &Value) {
    view.event(&codex_client::router::notification(method, params.clone()));
}

/// Plays notifications, one method and its parameters per line, and compares the text. Styles are letters in braces.
#[track_caller]
fn check(notification: &[(&str, Value)], expected: Expect) {
    let mut view = View::new(true);
    view.cwd = "/w".into();
    for (method, params) in notification {
        tell(&mut view, method, params);
    }
    let letter = |style| match style {
        Style::Plain => 'p',
        Style::Dim => 'd',
        Style::Bold => 'b',
        Style::Green => 'g',
        Style::Yellow => 'y',
        Style::Red => 'r',
        Style::Gutter => '|',
        Style::Hang => '-',
        Style::Italic => 'i',
        Style::Heading => 'h',
        Style::Code => 'c',
        _ => '?',
    };
    let shown: Vec<_> = view.take().iter().map(|span| format!("{{{}}}{}", letter(span.style), span.text)).collect();
    expected.assert_eq(&shown.concat());
}

fn command(status: &str, output: Option<&str>, exit: Option<i32>) -> Value {
    json!({"item": {"type": "commandExecution", "id": "call_2", "command": "bash -lc 'ls -la'", "cwd": "/w",
        "processId": null, "status": status, "commandActions": [], "aggregatedOutput": output, "exitCode": exit,
        "durationMs": exit.map(|_| 175)}, "threadId": "t", "turnId": "0"})
}

fn delta(text: &str) -> Value {
    json!({"threadId": "t", "turnId": "0", "itemId": "call_2", "delta": text})
}

#[test]
fn a_turn_from_prompt_to_tokens() {
    let user = json!({"item": {"type": "userMessage", "id": "u", "content": [{"type": "text", "text": "hi"}]}});
    let message = json!({"item": {"type": "agentMessage", "id": "m", "text": "Hello."}});
    let total = json!({"inputTokens": 120, "cachedInputTokens": 20, "outputTokens": 30});
    let usage = json!({"tokenUsage": {"total": total, "turnCost": 0.0125, "threadCost": 0.5}});
    let done = json!({"turn": {"id": "0", "rootTurnId": "0", "items": [], "status": "completed", "durationMs": 1500}});
    check(
        &[
            ("turn/started", json!({"turn": {"id": "0"}})),
            ("item/completed", user),
            ("item/reasoning/summaryTextDelta", json!({"itemId": "r", "delta": "**Thinking**", "summaryIndex": 0})),
            ("item/agentMessage/delta", delta("Hel")),
            ("item/agentMessage/delta", delta("lo.")),
            ("item/completed", message),
            ("thread/tokenUsage/updated", usage),
            ("turn/completed", done),
        ],
        expect![[r#"
            {b}> hi{p}

            {|}  ~ {b}Thinking{p}

            Hello.

            {d}tokens: 120 in (20 cached), 30 out, cost 0.0125, 1.5 s
            {p}
        "#]],
    );
}

#[test]
fn a_command_has_a_status_and_a_duration() {
    check(
        &[
            ("item/started", command("inProgress", None, None)),
            ("item/commandExecution/outputDelta", delta("a\x1b[31mb")),
            ("item/completed", command("completed", Some("a\x1b[31mb"), Some(0))),
        ],
        expect![[r#"
            {g}$ {b}ls -la{p}
            {|}  │ {d}a�[31mb{p}
            {d}  exit 0, 0.2 s{p}

        "#]],
    );
    check(
        &[("item/started", command("inProgress", None, None)), ("item/completed", command("failed", None, Some(3)))],
        expect![[r#"
            {g}$ {b}ls -la{p}
            {r}  exit 3, 0.2 s{p}

        "#]],
    );
}

#[test]
fn of_much_output_the_beginning_and_the_end_are_shown() {
    let output = (1..=100).map(|number| format!("{number}\n")).collect::<Vec<_>>().concat();
    let mut view = View::new(true);
    tell(&mut view, "item/started", &command("inProgress", None, None));
    for line in output.split_inclusive('\n') {
        tell(&mut view, "item/commandExecution/outputDelta", &delta(line));
    }
    tell(&mut view, "item/completed", &command("completed", Some(&output), Some(0)));
    let shown: String = view.take().iter().map(|span| span.text.as_str()).collect();
    assert!(
        shown.contains("\n  │ 20\n  │ … 75 more lines …\n  │ 96\n  │ 97\n  │ 98\n  │ 99\n  │ 100\n  exit 0"),
        "{shown}"
    );
    assert!(!shown.contains("│ 21\n"), "{shown}");
}

#[test]
fn changes_plans_and_trouble() {
    let changes = json!([
        {"path": "/w/README.md", "kind": {"type": "update", "move_path": null}, "diff": "@@ -1 +1 @@\n-old\n+new\n"},
        {"path": "/w/n\u{1b}[8mew", "kind": {"type": "add"}, "diff": "hello\n"},
    ]);
    let patch = |status: &str| json!({"item": {"type": "fileChange", "id": "p", "changes": changes, "status": status}});
    let plan = json!({"explanation": null, "plan": [{"step": "Look", "status": "completed"}, {"step": "Do", "status": "inProgress"}]});
    let failed = json!({"turn": {"id": "0", "rootTurnId": "0", "items": [], "status": "failed",
        "error": {"message": "no key\nset one"}}});
    check(
        &[
            ("item/started", patch("inProgress")),
            ("item/completed", patch("completed")),
            ("turn/plan/updated", plan),
            ("error", json!({"error": {"message": "it broke off"}, "willRetry": true})),
            ("error", json!({"error": {"message": "told with the turn"}, "willRetry": false})),
            ("warning", json!({"message": "careful"})),
            ("turn/completed", failed),
        ],
        expect![[r#"
            {b}change README.md{g} +1{r} −1{p}
            {-}    1 {r}-old{p}
            {-}    1 {g}+new{p}
            {b}add n\u{1b}[8mew{g} +1{p}
            {-}    1 {g}+hello{p}
            {d}  applied{p}

            {b}Plan{p}
            {g}  [x] Look{p}
            {b}  [>] Do{p}

            {y}retry: {p}it broke off
            {y}warning: {p}careful
            {r}error: {p}no key
            set one

        "#]],
    );
}

#[test]
fn unknown_data_is_skipped() {
    check(
        &[
            ("item/started", json!({"item": {"type": "hologram", "id": "h"}})),
            ("item/completed", json!({"item": 3})),
            ("turn/completed", json!({})),
            ("something/new", json!(null)),
            ("item/agentMessage/delta", json!({"delta": 7})),
        ],
        expect![""],
    );
}

#[test]
fn only_a_shell_around_a_script_is_left_out() {
    for (line, shown) in [
        ("bash -lc 'ls -la'", "ls -la"),
        ("/bin/bash -c ls", "ls"),
        (r#"bash -lc "it's""#, "it's"),
        (r#"bash -lc "a $b""#, r#"bash -lc "a $b""#),
        ("sudo /bin/bash -lc 'rm x'", "sudo /bin/bash -lc 'rm x'"),
        ("bash -lc 'a' 'b'", "bash -lc 'a' 'b'"),
        ("git push", "git push"),
    ] {
        assert_eq!(command_text(line), shown);
    }
}

#[test]
fn a_change_too_long_to_be_shown_is_known_to_be() {
    let mut view = View::new(true);
    let patch = |id: &str, length: usize| {
        let changes = json!([{"path": "/w/a", "kind": {"type": "add"}, "diff": "x".repeat(length)}]);
        json!({"item": {"type": "fileChange", "id": id, "changes": changes, "status": "inProgress"}})
    };
    tell(&mut view, "item/started", &patch("short", CHANGE_BYTES));
    tell(&mut view, "item/started", &patch("long", CHANGE_BYTES + 1));
    assert!(view.is_whole("short"));
    assert!(!view.is_whole("long"));
}

#[test]
fn consecutive_failures_are_counted_and_shown_once() {
    let error =
        |message: &str| json!({"error": {"message": message}, "willRetry": true, "threadId": "t", "turnId": "0"});
    let mut view = View::new(true);
    let unreachable = "could not get an answer from a.invalid:443: error sending request: dns error: no such name";
    tell(&mut view, "error", &error(unreachable));
    tell(&mut view, "error", &error(unreachable));
    tell(&mut view, "error", &error("slow down"));
    assert_eq!(view.retries(), 3);
    let shown: String = view.take().iter().map(|span| span.text.as_str()).collect();
    assert_eq!(shown, "retry: cannot reach a.invalid: name not found\nretry: slow down\n");
    tell(&mut view, "item/agentMessage/delta", &delta("at last"));
    assert_eq!(view.retries(), 0);
}
