//! The roles of agents, and the agents of other releases.

use std::path::Path;

use codex_dialects::ProtocolRelease;
use serde_json::{Value, json};

use crate::app_agents::{client, items, say, until_ends};
use crate::app_client::AppClient;
use crate::app_threads::start;

const READS: &str = "approval_policy = 'on-request'\nsandbox_mode = 'read-only'\n";
const WRITES: &str = "approval_policy = 'never'\nsandbox_mode = 'danger-full-access'\n";

fn call(id: &str, tool: &str, args: &Value) -> Value {
    json!({"call": tool, "namespace": "multi_agent_v1", "id": id, "args": args})
}

/// The root starts an agent in a role, which is told `told`.
fn script(role: &str, told: &str) -> Value {
    let args = json!({"message": "Check the diff", "agent_type": role});
    json!([
        {"when": "unknown agent_type", "items": [{"text": "No such role."}]},
        {"when": "id-spawn", "items": [{"text": "Started."}]},
        {"when": ["Check the diff", told], "items": [{"text": "It is fine."}]},
        {"when": "Have it checked", "items": [call("id-spawn", "spawn_agent", &args)]},
    ])
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder can be made");
    std::fs::write(path, text).expect("a file can be written");
}

/// The settings of the only child's requests, as its file tells them, and the child.
async fn child(client: &mut AppClient) -> (Value, Value) {
    let listed = client.ok("thread/list", json!({"sourceKinds": ["subAgentThreadSpawn"]})).await;
    let child = listed["data"][0].clone();
    let path = child["path"].as_str().expect("it has a file");
    let lines = std::fs::read_to_string(path).expect("it is there");
    let contexts = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    let mut contexts = contexts.filter(|line| line["type"] == "turn_context");
    (contexts.next().expect("it has asked")["payload"].clone(), child)
}

#[tokio::test]
async fn a_role_gives_an_agent_its_model_its_instructions_and_narrower_policies() {
    let config = format!(
        "{WRITES}agents.reviewer.description = 'Reviews'\nagents.reviewer.config_file = 'roles/reviewer.toml'\n\
         agents.reviewer.nickname_candidates = ['Iris']\n"
    );
    let mut client = client(ProtocolRelease::V0166, &config, &script("reviewer", "Only review.")).await;
    let role = "model = 'small'\nmodel_reasoning_effort = 'low'\nsandbox_mode = 'read-only'\n\
                approval_policy = 'untrusted'\ndeveloper_instructions = 'Only review.'\n";
    write(&client.home("roles/reviewer.toml"), role);
    let root = start(&mut client).await;
    say(&mut client, &root, "Have it checked").await;
    let messages = until_ends(&mut client, 2).await;
    let said = items(&messages, "item/completed", "agentMessage");
    assert!(said.iter().any(|said| said["item"]["text"] == "It is fine."), "{messages:#?}");
    let (context, thread) = child(&mut client).await;
    assert_eq!((&context["model"], &context["effort"]), (&json!("small"), &json!("low")));
    assert_eq!(
        (&context["sandbox_policy"]["type"], &context["approval_policy"]),
        (&json!("read-only"), &json!("untrusted"))
    );
    assert_eq!((&thread["agentRole"], &thread["agentNickname"]), (&json!("reviewer"), &json!("Iris")));
    client.end_unread().await;
}

#[tokio::test]
async fn a_project_can_add_roles_only_if_it_is_trusted_and_they_widen_nothing() {
    let wide = "sandbox_mode = 'danger-full-access'\napproval_policy = 'never'\n\
                developer_instructions = 'Do as you like.'\n";
    for is_trusted in [false, true] {
        let mut first = client(ProtocolRelease::V0166, READS, &script("wild", "Do as you like.")).await;
        let work = first.work("");
        let named = "[agents.wild]\ndescription = 'Wild'\nconfig_file = 'wild.toml'\n";
        write(&work.join(".codex/config.toml"), named);
        write(&work.join(".codex/wild.toml"), wide);
        let (config, folder) = (first.home("config.toml"), work.canonicalize().expect("it is there"));
        let trust = format!("[projects.'{}']\ntrust_level = 'trusted'\n", folder.display());
        let text = std::fs::read_to_string(&config).expect("it is there");
        if is_trusted {
            write(&config, &format!("{text}{trust}"));
        }
        let root = start(&mut first).await;
        say(&mut first, &root, "Have it checked").await;
        let messages = until_ends(&mut first, if is_trusted { 2 } else { 1 }).await;
        let said = items(&messages, "item/completed", "agentMessage");
        if is_trusted {
            let (context, _) = child(&mut first).await;
            assert_eq!(context["sandbox_policy"]["type"], "read-only");
            assert_eq!(context["approval_policy"], "on-request");
        } else {
            assert_eq!(said[0]["item"]["text"], "No such role.");
        }
        first.end_unread().await;
    }
}

const ROOT: &str = "01a1de3d-d983-79e2-8f9f-ffb417df2574";
const CHILD: &str = "01a1de3d-da70-71e1-82d0-f8f026c05c25";
const CHILD_FILE: &str = include_str!("../../../wire/tests/samples/rollout-0.166-child-agent.jsonl");

/// The file of a root of 0.166 that has started the child of the sample, and has waited for it.
fn root_file(cwd: &str) -> String {
    let line = |at: &str, kind: &str, payload: &Value| {
        let timestamp = format!("2026-11-15T08:05:{at}Z");
        format!("{}\n", json!({"timestamp": timestamp, "type": kind, "payload": payload}))
    };
    let turn = "01a1de3d-d9b2-71b1-92e8-c8b96a1809f1";
    let item = |item: &Value| json!({"type": "item_completed", "thread_id": ROOT, "turn_id": turn, "item": item});
    let called = |id: &str, tool: &str, state: &Value| {
        json!({
            "type": "CollabAgentToolCall", "id": id, "tool": tool, "status": "completed", "sender_thread_id": ROOT,
            "receiver_thread_ids": [CHILD], "receiver_agents": [{"thread_id": CHILD, "agent_nickname": "Nash"}],
            "prompt": "child task please", "model": "mock-model", "reasoning_effort": "medium",
            "agents_states": {CHILD: state},
        })
    };
    let meta = json!({
        "session_id": ROOT, "id": ROOT, "timestamp": "2026-11-15T08:05:57.751Z", "cwd": cwd, "originator": "probe",
        "cli_version": "0.166.0", "source": "vscode", "model_provider": "mine", "history_mode": "paginated",
    });
    let context = json!({
        "turn_id": turn, "cwd": cwd, "approval_policy": "never", "sandbox_policy": {"type": "danger-full-access"},
        "model": "mock-model", "multi_agent_version": "v1", "summary": "none",
    });
    let said = json!({"type": "UserMessage", "id": "u", "content": [{"type": "text", "text": "Start somebody", "text_elements": []}]});
    let message =
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Start somebody"}]});
    [
        line("57.787", "session_meta", &meta),
        line("57.939", "event_msg", &json!({"type": "task_started", "turn_id": turn})),
        line("57.940", "turn_context", &context),
        line("57.950", "response_item", &message),
        line("57.952", "event_msg", &item(&said)),
        line("58.018", "event_msg", &item(&called("call_132", "spawn_agent", &json!("pending_init")))),
        line(
            "58.100",
            "event_msg",
            &item(&called("call_133", "wait", &json!({"completed": "Hello from the fake model."}))),
        ),
        line("58.119", "event_msg", &json!({"type": "task_complete", "turn_id": turn, "last_agent_message": null})),
    ]
    .concat()
}

#[tokio::test]
async fn a_root_of_another_release_knows_its_children_and_a_message_restarts_one() {
    let send = json!({"target": CHILD, "message": "Please continue"});
    let script = json!([
        {"when": "id-wait", "items": [{"text": "Thanks."}]},
        {"when": "id-send", "items": [call("id-wait", "wait_agent", &json!({"targets": [CHILD]}))]},
        {"when": ["Hello from the fake model.", "Please continue"], "items": [{"text": "I am back."}]},
        {"when": "Ask Nash", "items": [call("id-send", "send_input", &send)]},
    ]);
    let mut client = client(ProtocolRelease::V0166, WRITES, &script).await;
    let work = client.work("").display().to_string();
    let cwd = work.trim_end_matches('/');
    let day = client.home("sessions/2026/11/15");
    let child = CHILD_FILE.replace("/home/me/project", cwd);
    write(&day.join(format!("rollout-2026-11-15T08-05-57-{ROOT}.jsonl")), &root_file(cwd));
    write(&day.join(format!("rollout-2026-11-15T08-05-58-{CHILD}.jsonl")), &child);
    client.ok("thread/resume", json!({"threadId": ROOT})).await;
    say(&mut client, ROOT, "Ask Nash").await;
    let messages = until_ends(&mut client, 2).await;
    let said = items(&messages, "item/completed", "agentMessage");
    let texts: Vec<_> = said.iter().map(|said| (&said["threadId"], &said["item"]["text"])).collect();
    assert!(texts.contains(&(&json!(CHILD), &json!("I am back."))), "{messages:#?}");
    assert!(texts.contains(&(&json!(ROOT), &json!("Thanks."))), "{texts:?}");
    let calls = items(&messages, "item/completed", "collabAgentToolCall");
    assert_eq!(calls[1]["item"]["agentsStates"][CHILD]["message"], "I am back.");
    let resumed = client.ok("thread/read", json!({"threadId": ROOT})).await;
    let lines = std::fs::read_to_string(resumed["thread"]["path"].as_str().expect("a path")).expect("it is there");
    assert!(lines.contains(r#""event":"created""#) && lines.contains(r#""label":"Nash""#), "{lines}");
    client.end_unread().await;
}
