//! Child agents of `exec`, `proto` and the MCP server: their questions, and what they use.

use serde_json::{Value, json};

use crate::program::{Place, say};

const CONFIG: &str = "model_provider = 'scripted'\napproval_policy = 'untrusted'\n\
                      sandbox_mode = 'danger-full-access'\nfeatures.subagent_tools = true\n\
                      [model_providers.scripted]\nscript = 'answers.json'\n";

/// A place whose root starts an agent and waits for it. The agent runs a command that needs an approval.
fn place() -> Place {
    let script = json!([
        {"when": "id-await", "items": [{"text": "All done."}]},
        {"when": "id-spawn", "items": [{"call": "subagent_await", "id": "id-await", "args": {}}]},
        {"when": "id-touch", "items": [{"text": "Made it."}]},
        {"when": "Make a file", "items": [{"call": "shell", "id": "id-touch", "args": {"command": ["touch", "made"]}}]},
        {"items": [{"call": "subagent_spawn", "id": "id-spawn", "args": {"prompt": "Make a file"}}]},
    ]);
    Place::new().file("home/answers.json", &script.to_string()).file("home/config.toml", CONFIG)
}

const EXEC: [&str; 3] = ["exec", "--json", "--skip-git-repo-check"];

#[test]
fn exec_asks_the_questions_of_a_child() {
    let place = place();
    let mut codex = place.start(&[&EXEC[..], &["--approvals", "stdio", "Have a file made."]].concat());
    let asked: Value = serde_json::from_str(&codex.line_with("approval.requested")).expect("it is JSON");
    assert_eq!(asked["id"], "id-touch");
    let child = asked["thread_id"].as_str().expect("the child is named").to_owned();
    codex.send(&format!("{}\n", json!({"id": "id-touch", "thread_id": child, "decision": "approved"})));
    let run = codex.wait();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("All done.") && place.path("project/made").exists(), "{}", run.stdout);
}

#[test]
fn a_child_that_nobody_can_answer_is_denied() {
    let place = place();
    let asks = ["-c", "approval_policy=untrusted", "--approvals", "deny"];
    let run = place.run(&[&EXEC[..], &asks, &["Have a file made."]].concat(), "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("All done.") && !place.path("project/made").exists(), "{}", run.stdout);
}

#[test]
fn the_requests_of_a_child_count_against_the_limits() {
    let place = place();
    // The root needs three, and the child two.
    let limited = |most| place.run(&[&EXEC[..], &["--max-requests", most, "Have a file made."]].concat(), "").code;
    assert_eq!((limited("5"), limited("4")), (Some(0), Some(4)));
}

/// The root needs three requests and no command, and the child two requests and one command, at 110 tokens each.
#[test]
fn everything_that_a_child_uses_counts_against_the_limits() {
    let prices = "[prices.m]\ninput = 1000000\noutput = 1000000\n";
    let place = place();
    let config = std::fs::read_to_string(place.path("home/config.toml")).expect("it is there");
    let place = place.file("home/config.toml", &format!("model = 'm'\n{config}{prices}"));
    let limited = |option, most| place.run(&[&EXEC[..], &[option, most, "Have a file made."]].concat(), "").code;
    for (option, enough, too_little) in
        [("--max-tokens", "550", "540"), ("--max-cost", "550", "540"), ("--max-commands", "1", "0")]
    {
        assert_eq!((limited(option, enough), limited(option, too_little)), (Some(0), Some(4)), "{option}");
    }
}

#[test]
fn the_time_limit_ends_a_child_and_its_command() {
    let place = place();
    let script = std::fs::read_to_string(place.path("home/answers.json")).expect("it is there");
    let script = script.replace("[\"touch\",\"made\"]", "[\"sh\",\"-c\",\"touch made; sleep 600; touch late\"]");
    let place = place.file("home/answers.json", &script);
    let begun = std::time::Instant::now();
    let run = place.run(&[&EXEC[..], &["--timeout", "3", "Have a file made."]].concat(), "");
    assert_eq!(run.code, Some(124), "{}", run.stderr);
    assert!(place.path("project/made").exists() && begun.elapsed().as_secs() < 60);
}

/// The process belongs to an agent of the agent that is canceled. The root goes on only when the process is gone.
#[test]
fn a_cancellation_ends_the_processes_of_everything_below() {
    let call = |id: &str, tool: &str, args: Value| json!({"call": tool, "id": id, "args": args});
    let shell = |id: &str, line: &str| call(id, "shell", json!({"command": ["sh", "-c", line]}));
    let spawn = |id: &str, prompt: &str| call(id, "subagent_spawn", json!({"prompt": prompt}));
    let script = json!([
        {"when": "id-list", "items": [{"text": "All done."}]},
        {"when": "id-gone", "items": [call("id-list", "subagent_list", json!({"all": true}))]},
        {"when": "id-cancel", "items": [shell("id-gone", "while kill -0 $(cat pid); do sleep 0.01; done; touch gone")]},
        {"when": "id-begun", "items": [call("id-cancel", "subagent_cancel", json!({"agent_id": 1, "reason": "too slow"}))]},
        {"when": "id-spawn", "items": [shell("id-begun", "while ! test -s pid; do sleep 0.01; done")]},
        {"when": "id-below", "items": [call("id-await", "subagent_await", json!({}))]},
        {"when": "Run it", "items": [shell("id-run", "echo $$ > pid; sleep 600; touch late")]},
        {"when": "Have it run", "items": [spawn("id-below", "Run it")]},
        {"items": [spawn("id-spawn", "Have it run")]},
    ]);
    let place = unasked().file("home/answers.json", &script.to_string());
    let run = place.run(&[&EXEC[..], &["Begin, and stop it."]].concat(), "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("All done.") && place.path("project/gone").exists(), "{}", run.stdout);
    let root = run.lines()[0]["thread_id"].as_str().expect("the thread is named").to_owned();
    let tree = place.run(&["threads", "show", "--tree", &root], "").stdout;
    let canceled = tree.lines().skip(1).filter(|line| line.contains("canceled")).count();
    assert_eq!((tree.lines().count(), canceled), (3, 2), "{tree}");
}

#[test]
fn exec_warns_of_agents_that_write_one_file() {
    let write = |id: &str| json!({"call": "shell", "id": id, "args": {"command": ["sh", "-c", "echo x > shared.txt"]}});
    let hold = "while ! test -e done; do sleep 0.01; done";
    let script = json!([
        {"when": "id-end", "items": [{"text": "All done."}]},
        {"when": "id-write", "items": [{"call": "shell", "id": "id-end", "args": {"command": ["touch", "done"]}}]},
        {"when": "id-wait", "items": [write("id-write")]},
        {"when": "id-spawn", "items": [{"call": "shell", "id": "id-wait", "args": {"command":
            ["sh", "-c", "while ! test -e ready; do sleep 0.01; done"]}}]},
        {"when": "id-hold", "items": [{"text": "Made it."}]},
        {"when": "id-child", "items": [{"call": "shell", "id": "id-hold", "args": {"command":
            ["sh", "-c", format!("touch ready; {hold}")]}}]},
        {"when": "Make a file", "items": [write("id-child")]},
        {"items": [{"call": "subagent_spawn", "id": "id-spawn", "args": {"prompt": "Make a file"}}]},
    ]);
    let place = place().file("home/answers.json", &script.to_string());
    let run = place.run(&[&EXEC[..], &["Have a file made."]].concat(), "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let told = run.stdout.matches("the root agent and agent 1 both write").count();
    assert_eq!(told, 1, "{}{}", run.stdout, run.stderr);
}

#[test]
fn proto_asks_the_questions_of_a_child() {
    let place = place();
    let mut codex = place.start(&["proto"]);
    codex.send(&say("1", "Have a file made."));
    let asked = codex.until("exec_approval_request");
    assert_eq!(asked["msg"]["call_id"], "id-touch");
    assert!(asked["session_id"].is_string(), "{asked}");
    codex.send("{\"id\":\"2\",\"op\":{\"type\":\"exec_approval\",\"id\":\"id-touch\",\"decision\":\"approved\"}}\n");
    codex.until("task_complete");
    assert!(place.path("project/made").exists());
    codex.send("{\"id\":\"3\",\"op\":{\"type\":\"shutdown\"}}\n");
    assert_eq!(codex.wait().code, Some(0));
}

#[test]
fn at_the_end_of_the_input_a_child_is_denied() {
    let place = place();
    let run = place.run(&["proto"], &say("1", "Have a file made."));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("All done.") && !place.path("project/made").exists(), "{}", run.stdout);
}

#[test]
fn the_mcp_server_asks_the_questions_of_a_child() {
    let place = place();
    let mut codex = place.start(&["mcp-server"]);
    let client = json!({"name": "tests", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": client});
    codex.send(&format!("{}\n", json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})));
    codex.line_with("serverInfo");
    codex.send(&format!("{}\n", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})));
    let arguments = json!({"prompt": "Have a file made.", "approval-policy": "untrusted"});
    let call = json!({"name": "codex", "arguments": arguments});
    codex.send(&format!("{}\n", json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})));
    let asked: Value = serde_json::from_str(&codex.line_with("elicitation/create")).expect("it is JSON");
    assert_eq!(asked["params"]["codex_call_id"], "id-touch");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"decision": "approved"}});
    codex.send(&format!("{answer}\n"));
    let result: Value = serde_json::from_str(&codex.line_with("\"id\":2")).expect("it is JSON");
    assert!(result.to_string().contains("All done."), "{result}");
    assert!(place.path("project/made").exists());
    codex.finish();
}

/// A place like the other, where nobody is asked.
fn unasked() -> Place {
    place().file("home/config.toml", &CONFIG.replace("untrusted", "never"))
}

#[test]
fn exec_tells_of_children_and_their_tree_can_be_shown() {
    let place = unasked();
    let run = place.run(&[&EXEC[..], &["Have a file made."]].concat(), "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let lines = run.lines();
    let is_call = |line: &&Value| line["type"] == "item.completed" && line["item"]["type"] == "collab_tool_call";
    let calls: Vec<&Value> = lines.iter().filter(is_call).map(|line| &line["item"]).collect();
    let tools: Vec<_> = calls.iter().map(|call| call["tool"].as_str().unwrap_or_default()).collect();
    assert_eq!(tools, ["spawn_agent", "wait"], "{}", run.stdout);
    let child = calls[0]["receiver_thread_ids"][0].as_str().expect("the child is named");
    assert_eq!(calls[1]["agents_states"][child]["message"], "Made it.");
    let root = lines[0]["thread_id"].as_str().expect("the thread is named");
    let tree = place.run(&["threads", "show", "--tree", root], "");
    let shown: Vec<&str> = tree.stdout.lines().collect();
    assert_eq!(shown.len(), 2, "{} {}", tree.stdout, tree.stderr);
    assert!(shown[0].starts_with(&format!("0 {root}")), "{}", tree.stdout);
    assert!(shown[1].starts_with(&format!("  1 {child} Make a file · idle")), "{}", tree.stdout);
}

#[test]
fn proto_tells_of_children() {
    let run = unasked().run(&["proto"], &say("1", "Have a file made."));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let told: Vec<Value> = run.events();
    let messages: Vec<&Value> = told.iter().map(|event| &event["msg"]).collect();
    let lifecycle: Vec<_> = messages.iter().filter(|msg| msg["type"] == "subagent_lifecycle").collect();
    let created = &lifecycle[0]["subagent"];
    assert_eq!((&created["agent_id"], &created["parent_agent_id"]), (&json!(1), &json!(0)), "{created}");
    assert_eq!((&created["origin"], &created["summary"]), (&json!("spawn"), &json!("Make a file")));
    let status: Vec<_> = lifecycle.iter().filter_map(|msg| msg["status"].as_str()).collect();
    assert_eq!(status, ["running", "idle"]);
    let inbox = messages.iter().filter(|msg| msg["type"] == "agent_inbox" && msg["agent_id"] == 1).count();
    assert!(inbox >= 2, "{}", run.stdout);
    let shown = messages.iter().filter(|msg| msg["type"] == "exec_command_begin");
    let shown: Vec<_> = shown.filter_map(|msg| msg["command"][0].as_str()).collect();
    assert!(shown.contains(&"Started agent") && shown.contains(&"Waited for agents"), "{shown:?}");
}
