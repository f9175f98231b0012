use std::fmt::Write as _;

use codex_store::RolloutLines;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::{Dialect, Replay};

/// Replays a file of such lines, and shows its messages.
#[track_caller]
fn check(lines: &[(&str, Value)], dialect: Dialect, expected: Expect) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout.jsonl");
    let mut text = String::new();
    for (second, (kind, payload)) in lines.iter().enumerate() {
        let timestamp = format!("2026-01-01T00:00:{second:02}.000Z");
        writeln!(text, "{}", json!({"timestamp": timestamp, "type": kind, "payload": payload})).unwrap();
    }
    std::fs::write(&path, text + "{\"torn").unwrap();
    let mut replay = Replay::open(&path, || Ok(Box::new(RolloutLines::open(&path)?)), dialect).unwrap();
    let mut shown = String::new();
    while let Some(due) = replay.next_line().unwrap() {
        let line: Value = serde_json::from_str(&due.line).unwrap();
        let kind = [&line["msg"]["type"], &line["method"], &line["type"]].into_iter().find_map(Value::as_str);
        let item = line["item"]["type"].as_str().map(|kind| format!(" {kind}")).unwrap_or_default();
        writeln!(shown, "{} s {}{item}", (due.at_ms / 1000) % 60, kind.unwrap_or_default()).unwrap();
    }
    expected.assert_eq(&shown);
}

fn thread() -> Vec<(&'static str, Value)> {
    let meta = json!({"id": "01a1de3b-14fd-7922-828f-0d0916245388", "timestamp": "2026-01-01T00:00:00.000Z",
        "cwd": "/w", "originator": "o", "cli_version": "1", "instructions": null});
    let command = json!({"type": "CommandExecution", "id": "c1", "command": ["ls"], "cwd": "/w",
        "status": "completed", "aggregated_output": "a\n", "exit_code": 0});
    let plan = json!({"type": "function_call", "name": "update_plan", "call_id": "p",
        "arguments": r#"{"plan":[{"step":"Look","status":"completed"}]}"#});
    vec![
        ("session_meta", meta),
        ("event_msg", json!({"type": "task_started", "model_context_window": 10, "turn_id": "t1"})),
        ("event_msg", json!({"type": "user_message", "message": "hi", "images": []})),
        ("response_item", plan),
        ("response_item", json!({"type": "function_call_output", "call_id": "p", "output": "Plan updated"})),
        (
            "event_msg",
            json!({"type": "item_completed", "thread_id": "01a1de3b-14fd-7922-828f-0d0916245388",
            "turn_id": "t1", "item": command}),
        ),
        ("event_msg", json!({"type": "agent_message", "message": "Hello."})),
        ("event_msg", json!({"type": "task_complete", "last_agent_message": "Hello."})),
    ]
}

#[test]
fn a_thread_is_replayed_as_exec_lines() {
    check(
        &thread(),
        Dialect::Exec,
        expect![[r"
            1 s thread.started
            1 s turn.started
            4 s item.started todo_list
            5 s item.started command_execution
            5 s item.completed command_execution
            6 s item.completed agent_message
            7 s item.completed todo_list
            7 s turn.completed
        "]],
    );
}

#[test]
fn a_thread_is_replayed_as_queue_events() {
    check(
        &thread(),
        Dialect::Eq,
        expect![[r"
            1 s session_configured
            1 s task_started
            2 s user_message
            4 s plan_update
            5 s exec_command_begin
            5 s exec_command_end
            6 s agent_message_delta
            6 s agent_message
            7 s task_complete
        "]],
    );
}

#[test]
fn in_notifications() {
    check(
        &thread()[..3],
        Dialect::V2,
        expect![[r"
            1 s thread/started
            1 s thread/status/changed
            1 s turn/started
            2 s item/started
            2 s item/completed
            2 s thread/status/changed
            2 s turn/completed
        "]],
    );
}

#[test]
fn an_old_file_without_beginnings_and_an_end_that_failed() {
    let mut lines = thread();
    lines.remove(1);
    lines.truncate(2);
    lines.push(("event_msg", json!({"type": "error", "message": "no"})));
    lines.push(("event_msg", json!({"type": "task_complete", "last_agent_message": null})));
    check(
        &lines,
        Dialect::Exec,
        expect![[r"
             1 s thread.started
             1 s turn.started
             3 s error
             3 s turn.failed
        "]],
    );
}

#[test]
fn goals_are_reported_again() {
    let goal = json!({"objective": "ship it", "status": "active"});
    let mut lines = thread();
    lines.truncate(1);
    lines.push(("event_msg", json!({"type": "goal_changed", "goal": goal})));
    lines.push(("event_msg", json!({"type": "goal_changed", "goal": "nonsense"})));
    lines.push(("event_msg", json!({"type": "goal_cleared"})));
    check(
        &lines,
        Dialect::V2,
        expect![[r"
            1 s thread/started
            1 s thread/goal/updated
            2 s thread/goal/cleared
            3 s thread/goal/cleared
        "]],
    );
}

#[test]
fn a_broken_off_answer_is_replayed_as_it_was_sent() {
    let item = json!({"type": "AgentMessage", "id": "m", "content": [{"type": "Text", "text": "Hel"}]});
    let mut lines = thread();
    lines.truncate(3);
    let broken_off = json!({"type": "item_interrupted", "thread_id": "01a1de3b-14fd-7922-828f-0d0916245388",
        "turn_id": "t1", "item_id": "m", "item": item});
    lines.push(("event_msg", broken_off));
    lines.push(("event_msg", json!({"type": "turn_aborted", "reason": "interrupted", "turn_id": "t1"})));
    check(
        &lines,
        Dialect::V2,
        expect![[r"
            1 s thread/started
            1 s thread/status/changed
            1 s turn/started
            2 s item/started
            2 s item/completed
            3 s item/started
            3 s item/agentMessage/delta
            4 s thread/status/changed
            4 s turn/completed
        "]],
    );
}
