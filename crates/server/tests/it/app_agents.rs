//! Child agents over the app-server: both sets of tools, in all dialects, and what outlives a restart.

use codex_dialects::ProtocolRelease;
use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::start;

const PLAYS: &str = "model_provider = 'mine'\n[model_providers.mine]\nname = 'Mine'\nwire_api = 'scripted'\n\
                     script = 'script.json'\n";

pub(crate) const NINE: &str =
    "approval_policy = 'never'\nsandbox_mode = 'danger-full-access'\nfeatures.subagent_tools = true\n";

/// A client whose model answers by content.
pub(crate) async fn client(release: ProtocolRelease, config: &str, script: &Value) -> AppClient {
    let client = AppClient::start_as(release, &format!("{config}{PLAYS}")).await;
    std::fs::write(client.home("script.json"), script.to_string()).expect("a script can be written");
    client
}

pub(crate) fn call(id: &str, tool: &str, args: Value) -> Value {
    json!({"call": tool, "id": id, "args": args})
}

/// The root starts an agent, waits for it and says so. The entry of the child is the third.
pub(crate) fn spawn_and_await(child: Value) -> Value {
    json!([
        {"when": "id-await", "items": [{"text": "All done."}]},
        {"when": "id-spawn", "items": [call("id-await", "subagent_await", json!({}))]},
        {"when": "Look at the tests", "items": child},
        {"items": [call("id-spawn", "subagent_spawn", json!({"prompt": "Look at the tests", "label": "tester"}))]},
    ])
}

pub(crate) async fn say(client: &mut AppClient, thread: &str, text: &str) {
    let input = json!([{"type": "text", "text": text}]);
    client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
}

/// All messages up to the end of a turn of that thread.
pub(crate) async fn until_end(client: &mut AppClient, thread: &str) -> Vec<Value> {
    let mut messages = Vec::new();
    loop {
        let message = client.next().await;
        let is_end = message["method"] == "turn/completed" && message["params"]["threadId"] == thread;
        messages.push(message);
        if is_end {
            return messages;
        }
    }
}

/// All messages up to the end of that many turns of any thread.
pub(crate) async fn until_ends(client: &mut AppClient, turns: usize) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    while messages.iter().filter(|message| message["method"] == "turn/completed").count() < turns {
        messages.push(client.next().await);
    }
    messages
}

pub(crate) fn items<'a>(messages: &'a [Value], method: &str, kind: &str) -> Vec<&'a Value> {
    let is_wanted = |message: &&Value| message["method"] == method && message["params"]["item"]["type"] == kind;
    messages.iter().filter(is_wanted).map(|message| &message["params"]).collect()
}

#[tokio::test]
async fn a_child_works_and_its_result_comes_back() {
    let script = spawn_and_await(json!([{"text": "Two tests fail."}]));
    let mut client = client(ProtocolRelease::V0166, NINE, &script).await;
    let root = start(&mut client).await;
    say(&mut client, &root, "Have somebody look.").await;
    let messages = until_ends(&mut client, 2).await;
    let calls = items(&messages, "item/completed", "collabAgentToolCall");
    let tools: Vec<_> = calls.iter().map(|call| call["item"]["tool"].as_str().unwrap_or_default()).collect();
    assert_eq!(tools, ["spawnAgent", "wait"]);
    let child = calls[0]["item"]["receiverThreadIds"][0].as_str().expect("it is named").to_owned();
    assert_eq!(calls[1]["item"]["agentsStates"][&child]["message"], "Two tests fail.");
    let said = items(&messages, "item/completed", "agentMessage");
    let text_of = |thread: &str| said.iter().find(|said| said["threadId"] == thread).map(|said| &said["item"]["text"]);
    assert_eq!(text_of(&child), Some(&json!("Two tests fail.")), "{said:#?}");
    assert_eq!(text_of(&root), Some(&json!("All done.")));
    let listed = client.ok("thread/list", json!({"sourceKinds": ["subAgentThreadSpawn"]})).await;
    let thread = &listed["data"][0];
    assert_eq!(thread["id"], json!(child));
    assert_eq!((&thread["parentThreadId"], &thread["agentNickname"]), (&json!(root), &json!("tester")));
    assert_eq!(thread["source"]["subAgent"]["thread_spawn"]["depth"], 1);
    client.end_unread().await;
}

#[tokio::test]
async fn clients_of_the_event_queue_are_told_of_children() {
    let script = spawn_and_await(json!([{"text": "Two tests fail."}]));
    let mut client = client(ProtocolRelease::V077, NINE, &script).await;
    let begun = client.ok("newConversation", json!({})).await;
    let id = begun["conversationId"].as_str().expect("an id").to_owned();
    client.ok("addConversationListener", json!({"conversationId": id})).await;
    let items = json!([{"type": "text", "data": {"text": "Have somebody look."}}]);
    client.ok("sendUserMessage", json!({"conversationId": id, "items": items})).await;
    let mut told = Vec::new();
    while told.iter().filter(|word| *word == "idle").count() == 0 {
        let message = client.next().await;
        let event = &message["params"]["msg"];
        match message["method"].as_str() {
            Some("codex/event/subagent_lifecycle") => {
                let word = event["status"].as_str().or(event["event"].as_str()).unwrap_or_default();
                told.push(word.to_owned());
            }
            Some("codex/event/agent_inbox") => told.push("inbox".to_owned()),
            _ => {}
        }
    }
    assert_eq!(told, ["created", "inbox", "running", "inbox", "idle"]);
    client.end_unread().await;
}

#[tokio::test]
async fn a_question_of_a_child_reaches_the_client_of_the_root() {
    let config = "approval_policy = 'untrusted'\nsandbox_mode = 'danger-full-access'\nfeatures.subagent_tools = true\n";
    let mut script =
        spawn_and_await(json!([{"call": "shell", "id": "id-touch", "args": {"command": ["touch", "made"]}}]));
    script.as_array_mut().expect("a list").insert(2, json!({"when": "id-touch", "items": [{"text": "Made it."}]}));
    let mut client = client(ProtocolRelease::V0166, config, &script).await;
    let root = start(&mut client).await;
    say(&mut client, &root, "Have somebody look.").await;
    let (id, asked) = client.next_request("item/commandExecution/requestApproval").await;
    assert_ne!(asked["threadId"], json!(root), "the child asks");
    client.respond(id, json!({"result": {"decision": "accept"}})).await;
    let messages = until_end(&mut client, &root).await;
    assert!(!items(&messages, "item/completed", "commandExecution").is_empty());
    assert!(client.work("made").exists());
    client.end_unread().await;
}

#[tokio::test]
async fn a_mode_wider_than_the_parents_is_refused() {
    let config = "approval_policy = 'never'\nsandbox_mode = 'read-only'\nfeatures.subagent_tools = true\n";
    let args = json!({"prompt": "p", "sandbox_mode": "danger-full-access"});
    let script = json!([
        {"when": "never gets more access", "items": [{"text": "Refused."}]},
        {"items": [call("id-spawn", "subagent_spawn", args)]},
    ]);
    let mut client = client(ProtocolRelease::V0166, config, &script).await;
    let root = start(&mut client).await;
    say(&mut client, &root, "Break out.").await;
    let messages = until_end(&mut client, &root).await;
    let said = items(&messages, "item/completed", "agentMessage");
    assert_eq!(said[0]["item"]["text"], "Refused.");
    client.end_unread().await;
}

#[tokio::test]
async fn a_resumed_root_knows_its_children_and_a_message_starts_one_again() {
    let mut script = spawn_and_await(json!([{"text": "Two tests fail."}]));
    let entries = script.as_array_mut().expect("a list");
    let send = call("id-send", "subagent_send_message", json!({"agent_id": 1, "prompt": "Try once more"}));
    let more = [
        json!({"when": ["Ask again", "id-await"], "items": [send]}),
        json!({"when": "id-await-2", "items": [{"text": "Thanks."}]}),
        json!({"when": "id-send", "items": [call("id-await-2", "subagent_await", json!({}))]}),
        json!({"when": "Try once more", "items": [{"text": "They pass now."}]}),
    ];
    entries.splice(0..0, more);
    let mut first = client(ProtocolRelease::V0166, NINE, &script).await;
    let root = start(&mut first).await;
    say(&mut first, &root, "Have somebody look.").await;
    until_end(&mut first, &root).await;
    let mut client = first.start_again().await;
    client.ok("thread/resume", json!({"threadId": root})).await;
    say(&mut client, &root, "Ask again").await;
    let messages = until_end(&mut client, &root).await;
    let calls = items(&messages, "item/completed", "collabAgentToolCall");
    let states = calls.iter().filter(|call| call["item"]["tool"] == "wait").map(|call| &call["item"]["agentsStates"]);
    let states: Vec<_> = states.collect();
    assert!(states.iter().any(|states| states.to_string().contains("They pass now.")), "{calls:#?}");
    client.end_unread().await;
}

#[tokio::test]
async fn the_agents_below_a_thread_are_listed() {
    let script = spawn_and_await(json!([{"text": "Two tests fail."}]));
    let mut client = client(ProtocolRelease::V0166, NINE, &script).await;
    let root = start(&mut client).await;
    let none = client.ok("thread/agents/read", json!({"threadId": root})).await;
    assert_eq!(none, json!({"data": [], "inbox": []}));
    say(&mut client, &root, "Have somebody look.").await;
    until_ends(&mut client, 2).await;
    let listed = client.ok("thread/agents/read", json!({"threadId": root})).await;
    let agent = &listed["data"][0];
    assert_eq!(
        (&agent["label"], &agent["status"], &agent["depth"], &agent["parentThreadId"], &agent["inbox"]),
        (&json!("tester"), &json!("idle"), &json!(1), &json!(root), &json!([])),
        "{listed}"
    );
    client.end_unread().await;
}

fn spawn(id: &str, prompt: &str) -> Value {
    call(id, "subagent_spawn", json!({"prompt": prompt, "label": prompt}))
}

/// A command that waits until the test has made a file.
fn shell_after(id: &str, file: &str, script: &str) -> Value {
    let script = format!("while ! test -e {file}; do sleep 0.01; done; {script}");
    call(id, "shell", json!({"command": ["sh", "-c", script]}))
}

/// The first command of the child runs with the policies of the call, and the second with those that the root has got in the
/// meantime.
#[tokio::test]
async fn a_root_that_is_tightened_reaches_the_running_turn_of_a_child() {
    let mut script = spawn_and_await(json!([shell_after("id-first", "go", "touch one")]));
    let entries = script.as_array_mut().expect("a list");
    let second = call("id-second", "shell", json!({"command": ["touch", "two"]}));
    entries.splice(
        2..2,
        [json!({"when": "id-second", "items": [{"text": "Done."}]}), json!({"when": "id-first", "items": [second]})],
    );
    let mut client = client(ProtocolRelease::V0166, NINE, &script).await;
    let root = start(&mut client).await;
    say(&mut client, &root, "Have somebody look.").await;
    loop {
        let message = client.next().await;
        if message["method"] == "item/started" && message["params"]["item"]["id"] == "id-first" {
            break;
        }
    }
    let policy = json!({"type": "readOnly"});
    client.ok("thread/settings/update", json!({"threadId": root, "sandboxPolicy": policy})).await;
    std::fs::write(client.work("go"), "").expect("a file");
    let messages = until_end(&mut client, &root).await;
    assert!(client.work("one").exists(), "it ran already");
    assert!(!client.work("two").exists(), "{messages:#?}");
    client.end_unread().await;
}

/// Starts a turn in which a child runs a command that waits for a file, and the root waits for the child.
async fn busy_child(client: &mut AppClient) -> (String, String) {
    let root = start(client).await;
    say(client, &root, "Have somebody look.").await;
    loop {
        let message = client.next().await;
        if message["method"] == "item/started" && message["params"]["item"]["id"] == "id-first" {
            let child = message["params"]["threadId"].as_str().expect("a child has a thread");
            return (root, child.to_owned());
        }
    }
}

/// A child used to go on, and to spend, after its root was stopped.
#[tokio::test]
async fn an_interrupt_of_a_root_stops_its_agents() {
    let script = spawn_and_await(json!([shell_after("id-first", "go", "touch one")]));
    let mut client = client(ProtocolRelease::V0166, NINE, &script).await;
    let (root, child) = busy_child(&mut client).await;
    client.ok("turn/interrupt", json!({"threadId": root})).await;
    let messages = until_end(&mut client, &child).await;
    let end = messages.last().expect("there is an end");
    assert_eq!(end["params"]["turn"]["status"], "interrupted", "{end}");
    client.end_unread().await;
}

#[tokio::test]
async fn an_interrupt_may_spare_the_agents() {
    let script = spawn_and_await(json!([shell_after("id-first", "go", "touch one")]));
    let mut entries = script.as_array().expect("a list").clone();
    entries.insert(2, json!({"when": "id-first", "items": [{"text": "Done."}]}));
    let mut client = client(ProtocolRelease::V0166, NINE, &json!(entries)).await;
    let (root, child) = busy_child(&mut client).await;
    client.ok("turn/interrupt", json!({"threadId": root, "keepAgents": true})).await;
    std::fs::write(client.work("go"), "").expect("a file");
    let messages = until_end(&mut client, &child).await;
    let end = messages.last().expect("there is an end");
    assert_eq!(end["params"]["turn"]["status"], "completed", "{end}");
    assert!(client.work("one").exists());
    client.end_unread().await;
}

/// An agent that works while its root has nothing to do is stopped with it, too.
#[tokio::test]
async fn an_interrupt_of_an_idle_root_stops_its_agents() {
    let script = spawn_and_await(json!([shell_after("id-first", "go", "touch one")]));
    let mut client = client(ProtocolRelease::V0166, NINE, &script).await;
    let (root, child) = busy_child(&mut client).await;
    client.ok("turn/interrupt", json!({"threadId": root, "keepAgents": true})).await;
    client.ok("turn/interrupt", json!({"threadId": root})).await;
    let messages = until_end(&mut client, &child).await;
    assert_eq!(messages.last().expect("there is an end")["params"]["turn"]["status"], "interrupted");
    client.end_unread().await;
}

/// Two children write one file at the same time, with a command and a patch.
#[tokio::test]
async fn agents_that_write_one_file_are_named_in_a_warning() {
    let patch = "*** Begin Patch\n*** Add File: shared.txt\n+x\n*** End Patch\n";
    let mut script = json!([
        {"when": "id-await", "items": [{"text": "All done."}]},
        {"when": "id-spawn-2", "items": [call("id-await", "subagent_await", json!({"agent_ids": [2]}))]},
        {"when": "id-spawn", "items": [spawn("id-spawn-2", "Beta task")]},
        {"when": "id-patch", "items": [{"text": "Patched."}]},
        {"when": "Beta task", "items": [call("id-patch", "apply_patch", json!({"input": patch}))]},
        {"when": "id-hold", "items": [{"text": "Written."}]},
        {"when": "id-write", "items": [shell_after("id-hold", "never", "")]},
        {"when": "Alpha task", "items": [call("id-write", "shell", json!({"command": ["sh", "-c", "echo x > shared.txt"]}))]},
        {"items": [spawn("id-spawn", "Alpha task")]},
    ]);
    // The second child begins when the first one has written.
    let wait = shell_after("id-wait", "shared.txt", "true");
    let entries = script.as_array_mut().expect("a list");
    entries[4] = json!({"when": "id-wait", "items": entries[4]["items"].clone()});
    entries.insert(5, json!({"when": "Beta task", "items": [wait]}));
    let mut client = client(ProtocolRelease::V0166, NINE, &script).await;
    let root = start(&mut client).await;
    say(&mut client, &root, "Have it written.").await;
    let messages = until_end(&mut client, &root).await;
    let warnings: Vec<_> = messages.iter().filter(|message| message["method"] == "warning").collect();
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    let (params, file) = (&warnings[0]["params"], client.work("shared.txt").canonicalize().expect("it is there"));
    let begin = format!("agent 2 (Beta task) and agent 1 (Alpha task) both write {}; ", file.display());
    assert_eq!(params["threadId"], json!(root));
    assert!(params["message"].as_str().is_some_and(|text| text.starts_with(&begin)), "{params}");
    client.end_unread().await;
}

/// Each answer counts 110 tokens. The root alone would stay within its budget.
#[tokio::test]
async fn the_tokens_of_a_child_count_against_the_goal_of_its_root() {
    let step = |id: &str| call(id, "shell", json!({"command": ["true"]}));
    let script = json!([
        {"when": "id-await", "items": [{"text": "Out of tokens."}]},
        {"when": "id-spawn", "items": [call("id-await", "subagent_await", json!({}))]},
        {"when": "id-4", "items": [{"text": "Never said."}]},
        {"when": "id-3", "items": [step("id-4")]},
        {"when": "id-2", "items": [step("id-3")]},
        {"when": "id-1", "items": [step("id-2")]},
        {"when": "Look at it", "items": [step("id-1")]},
        {"items": [call("id-spawn", "subagent_spawn", json!({"prompt": "Look at it"}))]},
    ]);
    let mut client = client(ProtocolRelease::V0166, NINE, &script).await;
    let root = start(&mut client).await;
    client.ok("thread/goal/set", json!({"threadId": root, "objective": "Reach it", "tokenBudget": 450})).await;
    let messages = until_end(&mut client, &root).await;
    let goals = messages.iter().filter(|message| message["method"] == "thread/goal/updated");
    let limited = goals.map(|message| &message["params"]["goal"]).find(|goal| goal["status"] == "budgetLimited");
    let used = limited.and_then(|goal| goal["tokensUsed"].as_i64());
    assert_eq!(used, Some(550), "two answers of the root and three of the child: {messages:#?}");
    let calls = items(&messages, "item/completed", "collabAgentToolCall");
    let wait = calls.iter().find(|call| call["item"]["tool"] == "wait").expect("a wait");
    assert!(wait["item"]["agentsStates"].to_string().contains("interrupted"), "{wait}");
    client.end_unread().await;
}

/// Each answer counts 110 tokens. The root alone would stay within its budget.
#[tokio::test]
async fn what_a_child_uses_counts_against_the_budget_of_its_root() {
    let step = |id: &str| call(id, "shell", json!({"command": ["true"]}));
    let script = json!([
        {"when": "id-await", "items": [{"text": "Never said."}]},
        {"when": "id-spawn", "items": [call("id-await", "subagent_await", json!({}))]},
        {"when": "id-1", "items": [step("id-1")], "repeat": true},
        {"when": "Look at it", "items": [step("id-1")]},
        {"items": [call("id-spawn", "subagent_spawn", json!({"prompt": "Look at it"}))]},
    ]);
    for (limit, begin) in [
        ("max_tokens = 450", "budget of 450 tokens exhausted: "),
        ("max_commands = 2", "budget of 2 commands exhausted: "),
        ("max_requests = 4", "budget of 4 requests exhausted: "),
    ] {
        let mut client = client(ProtocolRelease::V0166, &format!("budget.{limit}\n{NINE}"), &script).await;
        let root = start(&mut client).await;
        say(&mut client, &root, "Look.").await;
        let messages = until_ends(&mut client, 2).await;
        let ends = messages.iter().filter(|message| message["method"] == "turn/completed");
        let (own, below): (Vec<_>, Vec<_>) =
            ends.map(|end| &end["params"]).partition(|params| params["threadId"] == json!(root));
        let error = &own[0]["turn"]["error"];
        assert_eq!(error["codexErrorInfo"], "sessionBudgetExceeded", "{limit}: {error}");
        assert!(error["message"].as_str().is_some_and(|text| text.starts_with(begin)), "{limit}: {error}");
        assert_eq!(below[0]["turn"]["status"], "interrupted", "{limit}");
        say(&mut client, &root, "Again.").await;
        let refused = until_end(&mut client, &root).await;
        let error = &refused.last().expect("an end")["params"]["turn"]["error"];
        assert!(error["message"].as_str().is_some_and(|text| text.starts_with(begin)), "{limit}: {error}");
        client.end_unread().await;
    }
}

#[tokio::test]
async fn agents_take_turns_with_one_request_at_a_time() {
    let step = |id: &str| call(id, "shell", json!({"command": ["true"]}));
    let script = json!([
        {"when": "id-await-2", "items": [{"text": "All done."}]},
        {"when": "id-await", "items": [call("id-await-2", "subagent_await", json!({"agent_ids": [2]}))]},
        {"when": "id-spawn-2", "items": [call("id-await", "subagent_await", json!({"agent_ids": [1]}))]},
        {"when": "id-spawn", "items": [call("id-spawn-2", "subagent_spawn", json!({"prompt": "Beta task"}))]},
        {"when": "id-beta", "items": [{"text": "Beta done."}]},
        {"when": "Beta task", "items": [step("id-beta")]},
        {"when": "id-alpha", "items": [{"text": "Alpha done."}]},
        {"when": "Alpha task", "items": [step("id-alpha")]},
        {"items": [call("id-spawn", "subagent_spawn", json!({"prompt": "Alpha task"}))]},
    ]);
    let config = format!("agents.concurrent_requests = 1\n{NINE}");
    let mut client = client(ProtocolRelease::V0166, &config, &script).await;
    let root = start(&mut client).await;
    say(&mut client, &root, "Have it done.").await;
    let messages = until_end(&mut client, &root).await;
    let said = items(&messages, "item/completed", "agentMessage");
    for text in ["Alpha done.", "Beta done.", "All done."] {
        assert!(said.iter().any(|item| item["item"]["text"] == text), "{text}");
    }
    client.end_unread().await;
}
