//! The settings of trees of agents, and the tools of `multi_agent_v1`, in the real program.

use expect_test::expect;
use serde_json::{Value, json};

use crate::agent_tools::{CONFIG, call, exec, json_of, place, rollouts, told};
use crate::program::{Place, say};

/// A root that starts one agent and waits for it.
fn one_child(child: &Value) -> Value {
    json!([
        {"when": "id-await", "items": [{"text": "All done."}]},
        {"when": "id-spawn", "items": [call("id-await", "await", json!({}))]},
        child,
        {"items": [call("id-spawn", "spawn", json!({"prompt": "Look at it"}))]},
    ])
}

fn with_config(place: Place, more: &str) -> Place {
    place.file("home/config.toml", &format!("{more}\n{CONFIG}"))
}

/// Each model answers only if it was told the instructions of its role.
#[test]
fn files_in_the_home_folder_replace_the_instructions_of_roles() {
    let built_in = place(&json!([
        {"when": ["id-spawn", "You can start subagents"], "items": [{"text": "All done."}]},
        {"when": ["Look at it", "You are a subagent"], "items": [{"text": "Seen."}]},
        {"items": [call("id-spawn", "spawn", json!({"prompt": "Look at it"}))]},
    ]));
    exec(&built_in, &["Have it looked at."]);
    let own = place(&json!([
        {"when": ["id-await", "Rules of the root"], "items": [{"text": "All done."}]},
        {"when": ["id-spawn", "Rules of the root"], "items": [call("id-await", "await", json!({}))]},
        {"when": ["Look at it", "Rules of the child"], "items": [{"text": "Seen."}]},
        {"items": [call("id-spawn", "spawn", json!({"prompt": "Look at it"}))]},
    ]));
    let own =
        own.file("home/AGENTS.root.md", "Rules of the root").file("home/AGENTS.subagent.md", "Rules of the child");
    exec(&own, &["Have it looked at."]);
    assert_eq!(json_of(&told(&own), "id-await")["completion"], json!({"Completed": {"last_message": "Seen."}}));
}

/// These tools have no instructions of their own, and those of the files are added.
#[test]
fn files_in_the_home_folder_are_added_with_the_tools_of_the_namespace() {
    let call = |id: &str, tool: &str, args: Value| json!({"call": tool, "namespace": "multi_agent_v1", "id": id, "args": args});
    let script = json!([
        {"when": ["id-wait", "Rules of the root"], "items": [{"text": "All done."}]},
        {"when": ["id-spawn", "Rules of the root"], "find": {"child": "agent_id[^0-9a-f]+([0-9a-f-]{36})"},
         "items": [call("id-wait", "wait_agent", json!({"targets": ["${child}"]}))]},
        {"when": ["Look at it", "Rules of the child"], "items": [{"text": "Seen."}]},
        {"items": [call("id-spawn", "spawn_agent", json!({"message": "Look at it"}))]},
    ]);
    let place = place(&script)
        .file("home/config.toml", &CONFIG.replace("features.subagent_tools", "features.multi_agent"))
        .file("home/AGENTS.root.md", "Rules of the root")
        .file("home/AGENTS.subagent.md", "Rules of the child");
    exec(&place, &["Have it looked at."]);
    assert!(told(&place)["id-wait"].contains(r#"{"completed":"Seen."}"#), "{:?}", told(&place));
}

/// The prompt is a message of the user, or the output of a call that the child seems to have made.
#[test]
fn messages_of_the_root_are_those_of_a_user_unless_that_is_switched_off() {
    let script = one_child(&json!({"when": "Look at it", "items": [{"text": "Seen."}]}));
    for (is_user, switch) in [(true, ""), (false, "root_agent_uses_user_messages = false")] {
        let place = with_config(place(&script), switch);
        let run = place.run(&["exec", "--json", "--skip-git-repo-check", "Have it looked at."], "");
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        assert_eq!(json_of(&told(&place), "id-await")["completion_status"], "completed");
        let text = rollouts(&place.path("home/sessions"), true).concat();
        let text: String = text.split_inclusive('\n').filter(|line| line.contains("Look at it")).collect();
        let is_message = |line: &&str| line.contains(r#""role":"user""#);
        let is_output = |line: &&str| line.contains("function_call_output") && line.contains(r#"injected\":true"#);
        assert_eq!(text.lines().any(|line| is_message(&line)), is_user, "{text}");
        assert_eq!(text.lines().any(|line| is_output(&line)), !is_user, "{text}");
    }
}

#[test]
fn a_full_tree_is_an_error_and_an_end_frees_a_slot() {
    let hang = json!([{"text": "On", "done": false}, {"hang": true}]);
    let spawn = |id: &str| call(id, "spawn", json!({"prompt": "Hang on"}));
    let script = json!([
        {"when": "id-third", "items": [{"text": "All done."}]},
        {"when": "id-cancel", "items": [spawn("id-third")]},
        {"when": "id-second", "items": [call("id-cancel", "cancel", json!({"agent_id": 1}))]},
        {"when": "id-first", "items": [spawn("id-second")]},
        {"when": "Hang on", "repeat": true, "items": hang},
        {"items": [spawn("id-first")]},
    ]);
    let place = with_config(place(&script), "max_active_subagents = 1");
    exec(&place, &["Start some."]);
    let told = told(&place);
    let refused = "subagent limit reached: at most 1 active subagents per session; wait for one, or cancel one";
    assert_eq!(told["id-second"], refused);
    assert_eq!(json_of(&told, "id-third")["agent_id"], 2, "no number is used twice, and none is lost");
    let run = with_config(place, "max_active_subagents = 0").run(&["exec", "--skip-git-repo-check", "Hello"], "");
    assert!(run.code != Some(0) && run.stderr.contains("max_active_subagents"), "{}", run.stderr);
}

/// A request that is tried again is no end of a task.
#[test]
fn a_retried_request_of_a_child_is_no_failure() {
    let mut script = one_child(&json!({"when": "Look at it", "items": [{"text": "Seen."}]}));
    let busy = json!({"when": "Look at it", "status": 503, "body": {"error": {"message": "busy"}}});
    // The root has spawned by then, so that its requests are answered by the entries before.
    script.as_array_mut().expect("a list").insert(2, busy);
    let place = place(&script);
    exec(&place, &["Have it looked at."]);
    assert_eq!(json_of(&told(&place), "id-await")["completion"], json!({"Completed": {"last_message": "Seen."}}));
}

#[test]
fn an_idle_root_goes_on_when_an_agent_is_done() {
    let script = json!([
        {"when": "Seen.", "items": [{"text": "I have heard."}]},
        {"when": "id-spawn", "items": [{"text": "Started."}]},
        {"when": "id-look", "items": [{"text": "Seen."}]},
        {"when": "Look at it", "items": [{"call": "shell", "id": "id-look", "args": {"command":
            ["sh", "-c", "while ! test -e go; do sleep 0.01; done"]}}]},
        {"items": [call("id-spawn", "spawn", json!({"prompt": "Look at it"}))]},
    ]);
    let config =
        CONFIG.replace("subagent_root_inbox_autosubmit = false\n", "").replace("read-only", "danger-full-access");
    let place = place(&script).file("home/config.toml", &config);
    let mut codex = place.start(&["proto"]);
    codex.send(&say("1", "Have it looked at."));
    assert_eq!(codex.until("task_complete")["msg"]["last_agent_message"], "Started.");
    let place = place.file("project/go", "");
    assert_eq!(codex.until("task_complete")["msg"]["last_agent_message"], "I have heard.");
    drop(place);
}

#[test]
fn the_tools_of_the_namespace_close_and_reopen_an_agent_and_refuse_bad_calls() {
    let call = |id: &str, tool: &str, args: Value| json!({"call": tool, "namespace": "multi_agent_v1", "id": id, "args": args});
    let unknown = "01a1de3d-da70-71e1-82d0-f8f026c05c25";
    let find = json!({"child": "agent_id[^0-9a-f]+([0-9a-f-]{36})"});
    let wait = |id: &str| call(id, "wait_agent", json!({"targets": ["${child}"]}));
    let bad = [
        call("bad id", "send_input", json!({"target": "nope", "message": "p"})),
        call("unknown id", "send_input", json!({"target": unknown, "message": "p"})),
        call("unknown end", "close_agent", json!({"target": unknown})),
        call("unknown resume", "resume_agent", json!({"id": unknown})),
        call("unknown wait", "wait_agent", json!({"targets": [unknown]})),
        call("no target", "wait_agent", json!({"targets": []})),
        call("short wait", "wait_agent", json!({"targets": [unknown], "timeout_ms": 9999})),
        call("long wait", "wait_agent", json!({"targets": [unknown], "timeout_ms": 3_600_001})),
        call("no prompt", "spawn_agent", json!({})),
        call("unknown role", "spawn_agent", json!({"message": "p", "agent_type": "nobody"})),
    ];
    let script = json!([
        {"when": "bad id", "items": [{"text": "All done."}]},
        {"when": "id-wait-2", "items": bad},
        {"when": "id-send", "find": find, "items": [wait("id-wait-2")]},
        {"when": "id-resume", "find": find, "items": [call("id-send", "send_input", json!({"target": "${child}", "message": "Once more"}))]},
        {"when": "id-close", "find": find, "items": [call("id-resume", "resume_agent", json!({"id": "${child}"}))]},
        {"when": "id-wait", "find": find, "items": [call("id-close", "close_agent", json!({"target": "${child}"}))]},
        {"when": "id-spawn", "find": find, "items": [wait("id-wait")]},
        {"when": "Once more", "items": [{"text": "Seen again."}]},
        {"when": "Look at it", "items": [{"text": "Seen."}]},
        {"items": [call("id-spawn", "spawn_agent", json!({"message": "Look at it"}))]},
    ]);
    let config = CONFIG.replace("features.subagent_tools", "features.multi_agent");
    let place = place(&script).file("home/config.toml", &config);
    exec(&place, &["Have it looked at."]);
    let told = told(&place);
    let spawned = json_of(&told, "id-spawn");
    let (child, nickname) =
        (spawned["agent_id"].as_str().expect("an id"), spawned["nickname"].as_str().expect("a name"));
    let submission = json_of(&told, "id-send")["submission_id"].as_str().expect("an id").to_owned();
    let ids = ["id-spawn", "id-wait", "id-close", "id-resume", "id-send", "id-wait-2"];
    let names = bad.iter().filter_map(|call| call["id"].as_str());
    let lines = ids.into_iter().chain(names).map(|id| format!("{id}: {}", told[id]));
    let shown = lines.collect::<Vec<_>>().join("\n") + "\n";
    let shown = [(child, "CHILD"), (nickname, "NAME"), (unknown, "UNKNOWN"), (&submission, "SUBMISSION")]
        .iter()
        .fold(shown, |shown, (from, to)| shown.replace(from, to));
    expect![[r#"
        id-spawn: {"agent_id":"CHILD","nickname":"NAME"}
        id-wait: {"status":{"CHILD":{"completed":"Seen."}},"timed_out":false}
        id-close: {"previous_status":{"completed":"Seen."}}
        id-resume: {"status":{"completed":"Seen."}}
        id-send: {"submission_id":"SUBMISSION"}
        id-wait-2: {"status":{"CHILD":{"completed":"Seen again."}},"timed_out":false}
        bad id: invalid agent id nope: invalid character: found `n` at 0
        unknown id: agent with id UNKNOWN not found
        unknown end: agent with id UNKNOWN not found
        unknown resume: agent with id UNKNOWN not found
        unknown wait: {"status":{"UNKNOWN":"not_found"},"timed_out":false}
        no target: targets must name at least one agent
        short wait: timeout_ms must be between 10000 and 3600000
        long wait: timeout_ms must be between 10000 and 3600000
        no prompt: the prompt must not be empty
        unknown role: unknown agent_type `nobody`; the roles are: explorer
    "#]]
    .assert_eq(&shown);
}
