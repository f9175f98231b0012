//! Agents that are addressed by paths: their tools, the items about them, and what outlives a restart.

use codex_dialects::ProtocolRelease;
use serde_json::{Value, json};

use crate::app_agents::{call, client, items, say, until_end, until_ends};
use crate::app_client::AppClient;
use crate::app_threads::start;

const QUIET: &str = "approval_policy = 'never'\nsandbox_mode = 'danger-full-access'\n";
const PATHS: &str = "approval_policy = 'never'\nsandbox_mode = 'danger-full-access'\nfeatures.multi_agent_v2 = true\n";

fn spawn(id: &str, task: &str) -> Value {
    let message = format!("Look at the {task}");
    call(id, "spawn_agent", json!({"message": message, "task_name": task, "fork_turns": "none"}))
}

/// The root starts an agent and waits for it.
fn spawn_and_wait() -> Vec<Value> {
    let mut spawn = spawn("id-spawn", "tests");
    spawn["args"]["agent_type"] = json!("explorer");
    vec![
        json!({"when": "And now", "items": [{"text": "Nothing more."}]}),
        json!({"when": "id-wait", "items": [{"text": "All done."}]}),
        json!({"when": "id-spawn", "items": [call("id-wait", "wait_agent", json!({"timeout_ms": 10_000}))]}),
        json!({"when": "Look at the tests", "items": [{"text": "Two tests fail."}]}),
        json!({"when": "Have somebody look", "items": [spawn]}),
    ]
}

fn kinds(messages: &[Value]) -> Vec<(String, String)> {
    let activities = items(messages, "item/completed", "subAgentActivity");
    let word = |params: &&Value, name: &str| params["item"][name].as_str().unwrap_or_default().to_owned();
    activities.iter().map(|params| (word(params, "kind"), word(params, "agentPath"))).collect()
}

async fn child_of(client: &mut AppClient) -> Value {
    let listed = client.ok("thread/list", json!({"sourceKinds": ["subAgentThreadSpawn"]})).await;
    listed["data"][0].clone()
}

#[tokio::test]
async fn an_agent_is_known_by_its_path_and_items_tell_what_happens_to_it() {
    let mut client = client(ProtocolRelease::V0166, PATHS, &json!(spawn_and_wait())).await;
    let root = start(&mut client).await;
    say(&mut client, &root, "Have somebody look").await;
    let mut messages = until_ends(&mut client, 2).await;
    say(&mut client, &root, "And now").await;
    messages.extend(until_end(&mut client, &root).await);
    let calls = items(&messages, "item/completed", "collabAgentToolCall");
    let tools: Vec<_> = calls.iter().map(|call| call["item"]["tool"].as_str().unwrap_or_default()).collect();
    assert_eq!(tools, ["spawnAgent", "wait"]);
    let told = |kind: &str| (kind.to_owned(), "/root/tests".to_owned());
    assert_eq!(kinds(&messages), [told("started"), told("completed")]);
    let child = child_of(&mut client).await;
    let activity = items(&messages, "item/completed", "subAgentActivity")[0];
    assert_eq!(activity["item"]["agentThreadId"], child["id"]);
    assert!(activity["item"]["model"].is_string(), "{activity}");
    assert_eq!((&child["agentRole"], &child["parentThreadId"]), (&json!("explorer"), &json!(root)));
    let spawned = &child["source"]["subAgent"]["thread_spawn"];
    assert_eq!((&spawned["agent_path"], &spawned["agent_role"]), (&json!("/root/tests"), &json!("explorer")));
    let read = client.ok("thread/read", json!({"threadId": root, "includeTurns": true})).await;
    let stored = read["thread"]["turns"].as_array().into_iter().flatten();
    let stored = stored.flat_map(|turn| turn["items"].as_array().into_iter().flatten());
    let stored: Vec<_> = stored.filter(|item| item["type"] == "subAgentActivity").map(|item| &item["kind"]).collect();
    assert_eq!(stored, ["started", "completed"]);
    client.end_unread().await;
}

#[tokio::test]
async fn a_resumed_thread_has_the_tools_and_the_paths_that_it_began_with() {
    let mut script = spawn_and_wait();
    let more = [
        json!({"when": "already an agent /root/tests", "items": [{"text": "It is taken."}]}),
        json!({"when": "Once more", "items": [spawn("id-again", "tests")]}),
    ];
    script.splice(0..0, more);
    let mut first = client(ProtocolRelease::V0166, PATHS, &json!(script)).await;
    let root = start(&mut first).await;
    say(&mut first, &root, "Have somebody look").await;
    until_ends(&mut first, 2).await;
    let config = first.home("config.toml");
    let text = std::fs::read_to_string(&config).expect("it is there");
    let plain = text.replace("features.multi_agent_v2 = true\n", "");
    assert_ne!(plain, text);
    let mut client = first.start_again_after(|| std::fs::write(config, plain).expect("it can be written")).await;
    let resumed = client.ok("thread/resume", json!({"threadId": root})).await;
    let rollout = resumed["thread"]["path"].as_str().expect("a path");
    let lines = std::fs::read_to_string(rollout).expect("it is there");
    let first_line = lines.lines().next().unwrap_or_default();
    assert!(first_line.contains(r#""multi_agent_version":"v2""#), "{first_line}");
    let is_context = |line: &&str| line.contains(r#""type":"turn_context""#);
    assert!(lines.lines().filter(is_context).all(|line| line.contains(r#""multi_agent_version":"v2""#)));
    assert_eq!(lines.matches(r#""type":"sub_agent_activity""#).count(), 2, "{lines}");
    say(&mut client, &root, "Once more").await;
    let messages = until_end(&mut client, &root).await;
    let said = items(&messages, "item/completed", "agentMessage");
    assert_eq!(said[0]["item"]["text"], "It is taken.");
    client.end_unread().await;
}

#[tokio::test]
async fn a_message_waits_and_a_follow_up_task_does_not() {
    let message = call("id-message", "send_message", json!({"target": "tests", "message": "Mind the gap"}));
    let task = call("id-task", "followup_task", json!({"target": "/root/tests", "message": "Try once more"}));
    let mut script = vec![
        json!({"when": ["id-task", "They pass now."], "items": [{"text": "Thanks."}]}),
        json!({"when": "id-wait-2", "items": [{"text": "Thanks."}]}),
        json!({"when": "id-task", "items": [call("id-wait-2", "wait_agent", json!({}))]}),
        json!({"when": "id-message", "items": [task]}),
        json!({"when": ["Mind the gap", "Try once more"], "items": [{"text": "They pass now."}]}),
        json!({"when": "Ask again", "items": [message]}),
    ];
    script.extend(spawn_and_wait());
    let mut client = client(ProtocolRelease::V0166, PATHS, &json!(script)).await;
    let root = start(&mut client).await;
    say(&mut client, &root, "Have somebody look").await;
    let mut messages = until_ends(&mut client, 2).await;
    say(&mut client, &root, "Ask again").await;
    messages.extend(until_ends(&mut client, 2).await);
    let said: Vec<_> = items(&messages, "item/completed", "agentMessage");
    let said: Vec<_> = said.iter().map(|said| said["item"]["text"].as_str().unwrap_or_default()).collect();
    assert!(said.contains(&"They pass now.") && said.contains(&"Thanks."), "{said:?}");
    let interacted = kinds(&messages).into_iter().filter(|(kind, _)| kind == "interacted").count();
    assert_eq!(interacted, 2);
    client.end_unread().await;
}

#[tokio::test]
async fn bad_calls_are_errors_for_the_model_and_start_nothing() {
    let long = "x".repeat(2000);
    let bad = [
        ("spawn_agent", json!({}), "`task_name` is required"),
        ("spawn_agent", json!({"task_name": "a"}), "`message` is required"),
        ("spawn_agent", json!({"task_name": "Bad Name", "message": "p"}), "`task_name` has to consist of"),
        ("spawn_agent", json!({"task_name": "a", "message": " "}), "the prompt must not be empty"),
        (
            "spawn_agent",
            json!({"task_name": "a", "message": "p", "agent_type": "nobody"}),
            "unknown agent_type `nobody`; the roles are: explorer",
        ),
        (
            "spawn_agent",
            json!({"task_name": "a", "message": "p", "fork_turns": "x"}),
            "fork_turns must be `none`, `all`",
        ),
        ("send_message", json!({"target": "nobody", "message": "p"}), "there is no agent `nobody`"),
        ("send_message", json!({"target": long, "message": "p"}), "is not a path of an agent"),
        ("send_message", json!({"target": "/root", "message": "p"}), "cannot send a message to itself"),
        ("followup_task", json!({"target": "/root", "message": "p"}), "follow-up tasks cannot target the root"),
        ("wait_agent", json!({"timeout_ms": 5}), "timeout_ms must be between 10000 and 3600000"),
        ("wait_agent", json!({"timeout_ms": "soon"}), "failed to parse function arguments"),
        ("list_agents", json!({"path_prefix": "/elsewhere"}), "`/elsewhere` is not a path of an agent"),
        ("interrupt_agent", json!({"target": "/root"}), "cannot be interrupted"),
        ("interrupt_agent", json!({}), "`target` is required"),
    ];
    let calls: Vec<Value> =
        bad.iter().enumerate().map(|(at, (tool, args, _))| call(&format!("id-{at}"), tool, args.clone())).collect();
    let errors: Vec<&str> = bad.iter().map(|(.., error)| *error).collect();
    let script = json!([{"when": errors, "items": [{"text": "All refused."}]}, {"items": calls}]);
    let mut client = client(ProtocolRelease::V0166, PATHS, &script).await;
    let root = start(&mut client).await;
    say(&mut client, &root, "Try everything").await;
    let messages = until_end(&mut client, &root).await;
    let said = items(&messages, "item/completed", "agentMessage");
    assert_eq!(said.iter().map(|said| &said["item"]["text"]).collect::<Vec<_>>(), ["All refused."], "{messages:#?}");
    assert!(kinds(&messages).is_empty());
    assert_eq!(child_of(&mut client).await, Value::Null);
    client.end_unread().await;
}

#[tokio::test]
async fn the_catalogue_says_which_tools_a_model_has() {
    let script = json!([
        {"when": "Look at the tests", "items": [{"text": "Two tests fail."}]},
        {"when": "Have somebody look", "items": [spawn("id-spawn", "tests")]},
    ]);
    let config = format!("{QUIET}model = 'trained'\nmodel_catalog_json = 'models.json'\n");
    let mut first = client(ProtocolRelease::V0166, &config, &script).await;
    let catalogue = json!({"models": [{"slug": "trained", "multi_agent_version": "v2"}]});
    std::fs::write(first.home("models.json"), catalogue.to_string()).expect("it can be written");
    let root = start(&mut first).await;
    say(&mut first, &root, "Have somebody look").await;
    let messages = until_ends(&mut first, 2).await;
    assert_eq!(kinds(&messages)[0], ("started".to_owned(), "/root/tests".to_owned()));
    first.end_unread().await;
}

#[tokio::test]
async fn an_agent_that_is_interrupted_goes_on_with_another_task() {
    let interrupt = call("id-stop", "interrupt_agent", json!({"target": "tests"}));
    let list = call("id-list", "list_agents", json!({"path_prefix": "/root/tests"}));
    let script = json!([
        {"when": ["id-list", r#"\"agent_status\":\"interrupted\""#], "items": [{"text": "It has stopped."}]},
        {"when": ["id-stop", r#"\"previous_status\":\"running\""#], "items": [list]},
        {"when": "id-spawn", "items": [interrupt]},
        {"when": "Look at the tests", "items": [{"call": "shell", "id": "id-sleep", "args": {"command": ["sleep", "600"]}}]},
        {"when": "Have somebody look", "items": [spawn("id-spawn", "tests")]},
    ]);
    let mut client = client(ProtocolRelease::V0166, PATHS, &script).await;
    let root = start(&mut client).await;
    say(&mut client, &root, "Have somebody look").await;
    let messages = until_ends(&mut client, 2).await;
    let said = items(&messages, "item/completed", "agentMessage");
    assert_eq!(said.iter().map(|said| &said["item"]["text"]).collect::<Vec<_>>(), ["It has stopped."], "{messages:#?}");
    client.end_unread().await;
}
