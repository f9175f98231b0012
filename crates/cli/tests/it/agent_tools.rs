//! The results of the nine tools as the model reads them: cards, logs, errors, and the same after a restart.

use std::collections::BTreeMap;
use std::path::Path;

use expect_test::expect;
use serde_json::{Value, json};

use crate::program::Place;

pub(crate) const CONFIG: &str = "model_provider = 'scripted'\napproval_policy = 'never'\nsandbox_mode = 'read-only'\n\
                      features.subagent_tools = true\nsubagent_root_inbox_autosubmit = false\n\
                      [model_providers.scripted]\nscript = 'answers.json'\n";

pub(crate) fn place(script: &Value) -> Place {
    Place::new().file("home/answers.json", &script.to_string()).file("home/config.toml", CONFIG)
}

pub(crate) fn call(id: &str, tool: &str, args: Value) -> Value {
    json!({"call": format!("subagent_{tool}"), "id": id, "args": args})
}

pub(crate) fn exec(place: &Place, args: &[&str]) {
    let run = place.run(&[&["exec", "--json", "--skip-git-repo-check"], args].concat(), "");
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
}

/// The files of all threads in a folder: those of agents, or those of roots.
pub(crate) fn rollouts(folder: &Path, are_agents: bool) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(rollouts(&entry.path(), are_agents));
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).expect("a file is text");
        let is_agent = text.lines().next().is_some_and(|meta| meta.contains("parent_thread_id"));
        found.extend((is_agent == are_agents).then_some(text));
    }
    found
}

/// The outputs of the calls of roots, by the ids of the calls.
pub(crate) fn told(place: &Place) -> BTreeMap<String, String> {
    let files = rollouts(&place.path("home/sessions"), false);
    let lines = files.iter().flat_map(|text| text.lines()).filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let outputs = lines.filter(|line| line["payload"]["type"] == "function_call_output");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    outputs.map(|line| (text(&line["payload"]["call_id"]), text(&line["payload"]["output"]))).collect()
}

pub(crate) fn json_of(told: &BTreeMap<String, String>, id: &str) -> Value {
    let text = told.get(id).unwrap_or_else(|| panic!("there is no output of {id}: {told:#?}"));
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{id}: {error}: {text}"))
}

fn members(value: &Value) -> String {
    value.as_object().map(|members| members.keys().cloned().collect::<Vec<_>>().join(" ")).unwrap_or_default()
}

#[test]
fn a_bad_call_is_told_what_is_wrong_and_changes_nothing() {
    let long = |length: usize| "x".repeat(length);
    let bad = [
        ("unknown id", "send_message", json!({"agent_id": 99, "prompt": "p"})),
        ("unknown log", "logs", json!({"agent_id": 99})),
        ("unknown end", "cancel", json!({"agent_id": 99})),
        ("unknown wait", "await", json!({"agent_ids": [99]})),
        ("unknown watch", "watchdog", json!({"agent_id": 99})),
        ("no id", "send_message", json!({"prompt": "p"})),
        ("root to root", "send_message", json!({"agent_id": 0, "prompt": "p"})),
        ("empty prompt", "spawn", json!({"prompt": " \n "})),
        ("no prompt", "spawn", json!({})),
        ("long prompt", "spawn", json!({"prompt": long(1_100_000)})),
        ("long label", "spawn", json!({"prompt": "p", "label": long(1_000_000)})),
        ("wide mode", "spawn", json!({"prompt": "p", "sandbox_mode": "danger-full-access"})),
        ("other mode", "spawn", json!({"prompt": "p", "sandbox_mode": "everything"})),
        ("other folder", "spawn", json!({"prompt": "p", "isolation": "container"})),
        ("no repository", "spawn", json!({"prompt": "p", "isolation": "worktree"})),
        ("wide fork", "fork", json!({"sandbox_mode": "workspace_write"})),
        ("short wait", "await", json!({"timeout_s": 299})),
        ("long wait", "await", json!({"timeout_s": 1801})),
        ("nobody", "await", json!({"timeout_s": 0})),
        ("short watch", "watchdog", json!({"agent_id": 0, "interval_s": 29})),
        ("nothing to prune", "prune", json!({})),
        ("no one to prune", "prune", json!({"agent_ids": []})),
        ("wrong type", "logs", json!({"agent_id": "one"})),
    ];
    let calls: Vec<Value> = bad.iter().map(|(id, tool, args)| call(id, tool, args.clone())).collect();
    let script = json!([
        {"when": "id-list", "items": [{"text": "All done."}]},
        {"when": "unknown id", "items": [call("id-list", "list", json!({"all": true}))]},
        {"items": calls},
    ]);
    let place = place(&script);
    exec(&place, &["Try everything."]);
    let told = told(&place);
    let lines = bad.iter().map(|(id, ..)| format!("{id}: {}", told[*id].lines().next().unwrap_or_default()));
    let shown = lines.collect::<Vec<_>>().join("\n") + "\n";
    let shown = place.without_path(&shown);
    expect![[r#"
        unknown id: agent_id 99 not found; refresh subagent_list
        unknown log: agent_id 99 not found; refresh subagent_list
        unknown end: agent_id 99 not found; refresh subagent_list
        unknown wait: agent_id 99 not found; refresh subagent_list
        unknown watch: agent_id 99 not found; refresh subagent_list
        no id: `agent_id` is required
        root to root: an agent cannot send a message to itself
        empty prompt: the prompt must not be empty
        no prompt: the prompt must not be empty
        long prompt: the prompt has 1100000 bytes; at most 1048576 are allowed
        long label: the label has 1000000 characters; at most 200 are allowed
        wide mode: sandbox_mode danger-full-access is wider than your own; a subagent never gets more access than its parent
        other mode: unknown sandbox_mode `everything`; use read-only, workspace-write or danger-full-access
        other folder: unknown isolation `container`; use `worktree`, or leave it out to share your folder
        no repository: subagent failed to start: no worktree could be made: TEMP/project is not in a git repository
        wide fork: sandbox_mode workspace_write is wider than your own; a subagent never gets more access than its parent
        short wait: timeout_s must be at least 300 seconds; 0 or nothing waits 1800 seconds
        long wait: timeout_s must be at most 1800 seconds
        nobody: no active subagents to await; start one with subagent_spawn first
        short watch: interval_s must be at least 30 seconds
        nothing to prune: pass either `agent_ids` with at least one id, or `all: true`
        no one to prune: pass either `agent_ids` with at least one id, or `all: true`
        wrong type: failed to parse function arguments: invalid type: string "one", expected u64 at line 1 column 18
    "#]].assert_eq(&shown);
    assert_eq!(json_of(&told, "id-list"), json!({"sessions": []}));
}

/// The root starts an agent, forks, and uses every tool on them.
fn all_tools() -> Place {
    let script = json!([
        // After the restart.
        {"when": "again-logs", "items": [{"text": "Looked."}]},
        {"when": "again-list", "items": [
            call("again-logs", "logs", json!({"agent_id": 1, "limit": 500})),
            call("again-fork-logs", "logs", json!({"agent_id": 2, "limit": 500})),
            call("again-newest", "logs", json!({"agent_id": 1, "limit": 1})),
        ]},
        {"when": "Look again", "items": [call("again-list", "list", json!({}))]},
        // Before it, the last call first.
        {"when": "id-gone", "items": [{"text": "All done."}]},
        {"when": "id-prune", "items": [call("id-gone", "send_message", json!({"agent_id": 3, "prompt": "p"}))]},
        {"when": "id-cancel", "items": [call("id-prune", "prune", json!({"agent_ids": [3, 99]}))]},
        {"when": "id-hanging", "items": [call("id-cancel", "cancel", json!({"agent_id": 3, "reason": "no need"}))]},
        {"when": "id-unwatch-2", "items": [call("id-hanging", "spawn", json!({"prompt": "Hang on"}))]},
        {"when": "id-unwatch", "items": [call("id-unwatch-2", "watchdog", json!({"agent_id": 1, "cancel": true}))]},
        {"when": "id-watch-2", "items": [call("id-unwatch", "watchdog", json!({"agent_id": 1, "cancel": true}))]},
        {"when": "id-watch", "items": [call("id-watch-2", "watchdog", json!({"agent_id": 1, "interval_s": 30}))]},
        {"when": "id-list", "items": [call("id-watch", "watchdog", json!({"agent_id": 1, "message": "Well?"}))]},
        {"when": "id-small", "items": [call("id-list", "list", json!({}))]},
        {"when": "id-logs", "items": [call("id-small", "logs", json!({"agent_id": 1, "limit": 200, "max_bytes": 300}))]},
        {"when": "id-joined", "items": [call("id-logs", "logs", json!({"agent_id": 1, "limit": 200}))]},
        {"when": ["child_session_id", "id-fork", "\\\"role\\\":\\\"child\\\""], "items": [{"text": "I am the copy."}]},
        {"when": "id-fork", "items": [call("id-joined", "await", json!({"agent_ids": [2]}))]},
        {"when": "id-await", "items": [call("id-fork", "fork", json!({"prompt": "Be a copy", "label": "copy"}))]},
        {"when": "id-spawn", "items": [call("id-await", "await", json!({}))]},
        {"when": "Hang on", "items": [{"text": "On", "done": false}, {"hang": true}]},
        {"when": "Look at  the tests", "items": [{"text": "Two tests fail."}]},
        {"items": [call("id-spawn", "spawn", json!({"prompt": "Look at  the tests", "label": " tester "}))]},
    ]);
    place(&script)
}

#[test]
fn every_tool_answers_with_the_members_that_it_always_had() {
    let place = all_tools();
    exec(&place, &["Use all tools."]);
    let told = told(&place);
    let ids =
        ["id-spawn", "id-await", "id-fork", "id-joined", "id-logs", "id-list", "id-watch", "id-cancel", "id-prune"];
    let mut shown: Vec<String> = ids.iter().map(|id| format!("{id}: {}", members(&json_of(&told, id)))).collect();
    shown.push(format!("a listed one: {}", members(&json_of(&told, "id-list")["sessions"][0])));
    shown.push(format!("metadata: {}", members(&json_of(&told, "id-await")["metadata"])));
    shown.push(format!("payload: {}", members(&json_of(&told, "id-fork")["payload"])));
    shown.push(format!("a pruned id: {}\n", told["id-gone"]));
    let shown = shown.join("\n");
    expect![[r#"
        id-spawn: session_id agent_id parent_agent_id origin status label summary parent_session_id started_at_ms initial_message_count pending_messages pending_interrupts model
        id-await: session_id completion_status lifecycle_status started_at_ms timed_out messages completion metadata injected
        id-fork: session_id agent_id parent_agent_id origin status label summary parent_session_id started_at_ms initial_message_count pending_messages pending_interrupts model payload
        id-joined: session_id completion_status lifecycle_status started_at_ms timed_out messages completion metadata injected
        id-logs: session_id returned total_available more_available earliest_ms latest_ms events
        id-list: sessions
        id-watch: agent_id interval_s message action
        id-cancel: session_id agent_id parent_agent_id origin status label summary parent_session_id started_at_ms initial_message_count pending_messages pending_interrupts reason
        id-prune: request pruned skipped_active unknown errors counts
        a listed one: session_id agent_id parent_agent_id origin status label summary parent_session_id started_at_ms initial_message_count pending_messages pending_interrupts reasoning_header
        metadata: session_id agent_id parent_agent_id origin status label summary parent_session_id pending_interrupts initial_message_count pending_messages reasoning_header
        payload: role parent_session_id child_session_id label summary prompt
        a pruned id: agent_id 3 is no longer active; refresh subagent_list
    "#]].assert_eq(&shown);

    let spawned = json_of(&told, "id-spawn");
    assert_eq!((&spawned["label"], &spawned["summary"]), (&json!("tester"), &json!("Look at the tests")));
    assert_eq!((&spawned["agent_id"], &spawned["initial_message_count"]), (&json!(1), &json!(0)));
    let awaited = json_of(&told, "id-await");
    assert_eq!(awaited["completion"], json!({"Completed": {"last_message": "Two tests fail."}}));
    assert_eq!(json_of(&told, "id-joined")["completion"], json!({"Completed": {"last_message": "I am the copy."}}));
    let forked = json_of(&told, "id-fork");
    assert!(forked["initial_message_count"].as_u64().expect("a number") >= 5, "{forked}");
    let logs = json_of(&told, "id-logs");
    assert_eq!((&logs["returned"], &logs["more_available"]), (&logs["total_available"], &json!(false)));
    assert!(logs.to_string().contains("Two tests fail."), "{logs}");
    let small = json_of(&told, "id-small");
    assert!(small["events"].to_string().len() <= 300 && small["more_available"] == true, "{small}");
    let intervals = ["id-watch", "id-watch-2"].map(|id| json_of(&told, id)["interval_s"].clone());
    assert_eq!(intervals, [300, 30]);
    let actions =
        ["id-watch", "id-watch-2", "id-unwatch", "id-unwatch-2"].map(|id| json_of(&told, id)["action"].clone());
    assert_eq!(actions, ["started", "replaced", "canceled", "not_found"]);
    let canceled = json_of(&told, "id-cancel");
    assert_eq!((&canceled["status"], &canceled["reason"]), (&json!("canceled"), &json!("no need")));
    let pruned = json_of(&told, "id-prune");
    assert_eq!((&pruned["counts"]["pruned"], &pruned["unknown"]), (&json!(1), &json!([99])), "{pruned}");
}

#[test]
fn after_a_restart_agents_have_their_logs_and_the_number_of_messages_that_they_began_with() {
    let place = all_tools();
    exec(&place, &["Use all tools."]);
    let before = told(&place);
    exec(&place, &["resume", "--last", "Look again"]);
    let after = told(&place);
    let listed = json_of(&after, "again-list");
    let counts: Vec<&Value> =
        listed["sessions"].as_array().expect("a list").iter().map(|agent| &agent["initial_message_count"]).collect();
    assert_eq!(counts, [&json!(0), &json_of(&before, "id-fork")["initial_message_count"]], "{listed}");
    let kinds = |logs: &Value| -> Vec<String> {
        let events = logs["events"].as_array().expect("a list").iter();
        events.map(|event| event["event"]["msg"]["type"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let logs = json_of(&after, "again-logs");
    assert!(logs.to_string().contains("Two tests fail."), "{logs}");
    assert!(kinds(&logs).contains(&"agent_message".to_owned()) && kinds(&logs).contains(&"task_complete".to_owned()));
    assert_eq!(json_of(&after, "again-newest")["returned"], 1);
    let copy = json_of(&after, "again-fork-logs");
    assert!(copy.to_string().contains("I am the copy."), "{copy}");
    assert!(!copy.to_string().contains("Use all tools."), "events of its parent are not its own: {copy}");
}
