//! One tree of agents, played to the client of each protocol, and what each of them is told about it.
//!
//! The root starts an agent that asks about a command, one that asks about a patch, sends a message and is interrupted, one whose
//! request fails, and one that is canceled. The model answers by content, so the same happens everywhere.

use std::collections::BTreeMap;

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::program::{Place, Running, say};

const CONFIG: &str = "model_provider = 'scripted'\napproval_policy = 'untrusted'\n\
                      sandbox_mode = 'danger-full-access'\nfeatures.subagent_tools = true\n\
                      subagent_root_inbox_autosubmit = false\n\
                      [model_providers.scripted]\nscript = 'answers.json'\n";

/// The agents in the order of their start.
const LABELS: [&str; 4] = ["asker", "worker", "broken", "late"];

const PATCH: &str = "*** Begin Patch\n*** Add File: ready\n+yes\n*** End Patch\n";

fn place() -> Place {
    let call = |id: &str, tool: &str, args: Value| json!([{"call": tool, "id": id, "args": args}]);
    let spawn =
        |id: &str, prompt: &str, label: &str| call(id, "subagent_spawn", json!({"prompt": prompt, "label": label}));
    let wait = |id: &str, agent: u64| call(id, "subagent_await", json!({"agent_ids": [agent]}));
    let hang = json!([{"text": "On", "done": false}, {"hang": true}]);
    let hello = call("child-hello", "subagent_send_message", json!({"agent_id": 0, "prompt": "I have begun"}));
    let stop = json!({"agent_id": 2, "prompt": "Stop that", "interrupt": true});
    // A request of the root has everything that was said before, so its last call comes first, and its children last.
    let script = json!([
        {"when": "root-list", "items": [{"text": "All done."}]},
        {"when": "root-cancel", "items": call("root-list", "subagent_list", json!({}))},
        {"when": "root-late", "items": call("root-cancel", "subagent_cancel", json!({"agent_id": 4, "reason": "too late"}))},
        {"when": "root-wait-broken", "items": spawn("root-late", "Come late", "late")},
        {"when": "root-broken", "items": wait("root-wait-broken", 3)},
        {"when": "root-wait-worker", "items": spawn("root-broken", "Break down", "broken")},
        {"when": "root-interrupt", "items": wait("root-wait-worker", 2)},
        {"when": "root-hear", "items": call("root-interrupt", "subagent_send_message", stop)},
        {"when": "root-worker", "items": wait("root-hear", 2)},
        {"when": "root-wait-asker", "items": spawn("root-worker", "Work on", "worker")},
        {"when": "root-asker", "items": wait("root-wait-asker", 1)},
        {"when": "child-touch", "items": [{"text": "Made it."}]},
        {"when": "Make a file", "items": call("child-touch", "shell", json!({"command": ["touch", "made"]}))},
        {"when": "Stop that", "items": [{"text": "Stopped."}]},
        {"when": "child-hello", "items": hang},
        {"when": "child-ready", "items": hello},
        {"when": "Work on", "items": [{"custom": "apply_patch", "id": "child-ready", "input": PATCH}]},
        {"when": "Break down", "status": 400, "body": {"error": {"message": "no such model"}}},
        {"when": "Come late", "items": hang},
        {"when": "Play the tree", "items": spawn("root-asker", "Make a file", "asker")},
    ]);
    Place::new().file("home/answers.json", &script.to_string()).file("home/config.toml", CONFIG)
}

/// Everything that one client was told.
#[derive(Default)]
struct Told {
    /// The calls of the root, in order: the tool and how it ended.
    calls: Vec<String>,
    /// The number of calls of the root that have begun.
    begun: usize,
    /// The questions, and the threads that ask.
    questions: Vec<(String, Value)>,
    /// The answers that are not sent yet.
    held: Vec<Value>,
    /// The last status of each agent.
    ends: BTreeMap<String, String>,
    /// The labels of agents, by thread or number.
    names: BTreeMap<String, String>,
    /// The end of the root's turn.
    end: String,
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Told {
    fn name(&self, id: &Value) -> String {
        self.names.get(&text(id)).cloned().unwrap_or_else(|| "another thread".to_owned())
    }

    fn asked(&mut self, how: &str, thread: &Value, answer: Value) {
        self.questions.push((how.to_owned(), thread.clone()));
        self.held.push(answer);
    }

    /// A question with the name of the one who asks. It may come before the name.
    fn question(&self, number: usize) -> Option<String> {
        let (how, thread) = self.questions.get(number)?;
        Some(format!("{how} of {}", self.name(thread)))
    }

    /// Sends the answers. The second one waits until the root listens to the agent, which then sends its message.
    fn answer(&mut self, codex: &mut Running) {
        if self.questions.len() < 2 || self.begun >= 4 {
            self.held.drain(..).for_each(|answer| send(codex, &answer));
        }
    }

    /// A call as an item: in the app-server and in `exec`, with the words of each.
    fn called(&mut self, tool: &Value, status: &Value, receivers: &Value, agents: &Value) {
        let spawned = ["spawnAgent", "spawn_agent"].map(Value::from).contains(tool);
        for receiver in receivers.as_array().into_iter().flatten().filter(|_| spawned) {
            let known = self.names.len();
            self.names.insert(text(receiver), LABELS[known].to_owned());
        }
        self.calls.push(format!("{} {}", text(tool), text(status)));
        for (thread, state) in agents.as_object().into_iter().flatten() {
            let name = self.name(&json!(thread));
            self.ends.insert(name, text(&state["status"]));
        }
    }

    /// An event of the queue, in any of the protocols that carry it.
    fn event(&mut self, event: &Value) {
        match event["type"].as_str().unwrap_or_default() {
            "subagent_lifecycle" => {
                let agent = event.get("subagent").unwrap_or(event);
                if let Some(label) = agent["label"].as_str() {
                    self.names.insert(text(&agent["agent_id"]), label.to_owned());
                    self.names.insert(text(&agent["session_id"]), label.to_owned());
                }
                if let Some(status) = event["status"].as_str() {
                    self.ends.insert(self.name(&event["agent_id"]), status.to_owned());
                }
            }
            "exec_command_begin" if event["call_id"].as_str().is_some_and(|id| id.starts_with("root-")) => {
                self.begun += 1;
            }
            "exec_command_end" if event["call_id"].as_str().is_some_and(|id| id.starts_with("root-")) => {
                self.calls.push(format!("{} (exit {})", text(&event["command"][0]), event["exit_code"]));
            }
            "task_complete" => self.end = format!("task_complete {}", event["last_agent_message"]),
            _ => {}
        }
    }
}

fn send(codex: &mut Running, message: &Value) {
    codex.send(&format!("{message}\n"));
}

/// Sends a request to a server and returns its result.
fn call(codex: &mut Running, id: u64, method: &str, params: &Value) -> Value {
    send(codex, &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    loop {
        let message = codex.message();
        if message["id"] == id {
            return message["result"].clone();
        }
    }
}

fn app_server(place: &Place, release: &str) -> Running {
    let mut codex = place.start(&["app-server", "--emulate", release]);
    call(&mut codex, 1, "initialize", &json!({"clientInfo": {"name": "tests", "version": "1"}}));
    send(&mut codex, &json!({"method": "initialized"}));
    codex
}

fn in_threads(place: &Place) -> Told {
    let (mut codex, mut told) = (app_server(place, "0.166"), Told::default());
    let root = call(&mut codex, 2, "thread/start", &json!({}))["thread"]["id"].clone();
    let input = json!([{"type": "text", "text": "Play the tree"}]);
    send(&mut codex, &json!({"id": 3, "method": "turn/start", "params": {"threadId": root, "input": input}}));
    while told.end.is_empty() {
        told.answer(&mut codex);
        let message = codex.message();
        let (params, item) = (&message["params"], &message["params"]["item"]);
        match message["method"].as_str().unwrap_or_default() {
            "item/started" if item["type"] == "collabAgentToolCall" && params["threadId"] == root => told.begun += 1,
            "item/completed" if item["type"] == "collabAgentToolCall" && params["threadId"] == root => {
                told.called(&item["tool"], &item["status"], &item["receiverThreadIds"], &item["agentsStates"]);
            }
            "item/completed" if item["type"] == "agentMessage" && params["threadId"] == root => {
                assert_eq!(item["text"], "All done.");
            }
            method @ ("item/commandExecution/requestApproval" | "item/fileChange/requestApproval") => {
                let answer = json!({"id": message["id"], "result": {"decision": "accept"}});
                told.asked(method, &params["threadId"], answer);
            }
            "turn/completed" if params["threadId"] == root => {
                told.end = format!("turn/completed {}", params["turn"]["status"]);
            }
            _ => {}
        }
    }
    told
}

fn in_conversations(place: &Place) -> Told {
    let (mut codex, mut told) = (app_server(place, "0.77"), Told::default());
    let root = call(&mut codex, 2, "newConversation", &json!({}))["conversationId"].clone();
    call(&mut codex, 3, "addConversationListener", &json!({"conversationId": root}));
    let items = json!([{"type": "text", "data": {"text": "Play the tree"}}]);
    let say = json!({"conversationId": root, "items": items});
    send(&mut codex, &json!({"id": 4, "method": "sendUserMessage", "params": say}));
    while told.end.is_empty() {
        told.answer(&mut codex);
        let message = codex.message();
        let params = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            method @ ("execCommandApproval" | "applyPatchApproval") => {
                let answer = json!({"id": message["id"], "result": {"decision": "approved"}});
                told.asked(method, &params["conversationId"], answer);
            }
            method if method.starts_with("codex/event/") && params["conversationId"] == root => {
                told.event(&params["msg"]);
            }
            _ => {}
        }
    }
    told
}

fn in_proto(place: &Place) -> Told {
    let (mut codex, mut told) = (place.start(&["proto"]), Told::default());
    codex.send(&say("1", "Play the tree"));
    while told.end.is_empty() {
        told.answer(&mut codex);
        let message = codex.message();
        let question = message["msg"]["type"].as_str().unwrap_or_default();
        let answer = match question {
            "exec_approval_request" => Some("exec_approval"),
            "apply_patch_approval_request" => Some("patch_approval"),
            _ => None,
        };
        if let Some(op) = answer {
            let id = &message["msg"]["call_id"];
            let answer = json!({"id": "2", "op": {"type": op, "id": id, "decision": "approved"}});
            told.asked(question, &message["session_id"], answer);
        }
        told.event(&message["msg"]);
    }
    told
}

fn in_exec(place: &Place) -> Told {
    let args = ["exec", "--json", "--skip-git-repo-check", "--approvals", "stdio", "Play the tree"];
    let (mut codex, mut told) = (place.start(&args), Told::default());
    while told.end.is_empty() {
        told.answer(&mut codex);
        let message = codex.message();
        let item = &message["item"];
        match message["type"].as_str().unwrap_or_default() {
            "item.started" if item["type"] == "collab_tool_call" => told.begun += 1,
            "item.completed" if item["type"] == "collab_tool_call" => {
                told.called(&item["tool"], &item["status"], &item["receiver_thread_ids"], &item["agents_states"]);
            }
            "item.completed" if item["type"] == "agent_message" => assert_eq!(item["text"], "All done."),
            kind @ "approval.requested" => {
                let (id, thread) = (&message["id"], &message["thread_id"]);
                told.asked(kind, thread, json!({"id": id, "thread_id": thread, "decision": "approved"}));
            }
            end @ ("turn.completed" | "turn.failed") => told.end.push_str(end),
            _ => {}
        }
    }
    assert_eq!(codex.wait().code, Some(0));
    told
}

fn in_mcp(place: &Place) -> Told {
    let (mut codex, mut told) = (place.start(&["mcp-server"]), Told::default());
    let client = json!({"name": "tests", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": client});
    call(&mut codex, 1, "initialize", &hello);
    send(&mut codex, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let arguments = json!({"prompt": "Play the tree", "approval-policy": "untrusted"});
    let params = json!({"name": "codex", "arguments": arguments});
    send(&mut codex, &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}));
    let mut result = None;
    while result.is_none() {
        told.answer(&mut codex);
        let message = codex.message();
        match message["method"].as_str() {
            Some(method @ "elicitation/create") => {
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"decision": "approved"}});
                told.asked(method, &message["params"]["_meta"]["threadId"], answer);
            }
            Some("codex/event") => told.event(&message["params"]["msg"]),
            _ if message["id"] == 2 => result = Some(message["result"]["content"][0]["text"].clone()),
            _ => {}
        }
    }
    told.end = format!("result {}", result.unwrap_or_default());
    told
}

/// A table: what there is to tell, and the words of each protocol for it.
fn table(told: &[(&str, Told)]) -> String {
    let of_each = |cell: &dyn Fn(&Told) -> Option<String>| -> Vec<String> {
        told.iter().map(|(_, told)| cell(told).unwrap_or_else(|| "-".to_owned())).collect()
    };
    let mut rows = vec![(String::new(), told.iter().map(|(protocol, _)| (*protocol).to_owned()).collect())];
    let calls = told.iter().map(|(_, told)| told.calls.len()).max().unwrap_or_default();
    rows.extend((0..calls).map(|call| (format!("call {}", call + 1), of_each(&|told| told.calls.get(call).cloned()))));
    let questions = told.iter().map(|(_, told)| told.questions.len()).max().unwrap_or_default();
    rows.extend((0..questions).map(|asked| (format!("question {}", asked + 1), of_each(&|told| told.question(asked)))));
    rows.extend(LABELS.map(|label| (label.to_owned(), of_each(&|told| told.ends.get(label).cloned()))));
    rows.push(("the root".to_owned(), of_each(&|told| Some(told.end.clone()))));
    let widths: Vec<usize> = (0..told.len())
        .map(|column| rows.iter().map(|(_, cells)| cells[column].len()).max().unwrap_or_default())
        .collect();
    let mut text = String::new();
    for (name, cells) in &rows {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let line = format!("{name:<11} | {}", padded.collect::<Vec<_>>().join(" | "));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

type Play = fn(&Place) -> Told;

#[test]
fn the_same_tree_is_told_in_every_protocol() {
    let protocols: [(&str, Play); 5] =
        [("v2", in_threads), ("v1", in_conversations), ("proto", in_proto), ("exec", in_exec), ("mcp", in_mcp)];
    let told = protocols.map(|(protocol, play)| {
        let place = place();
        let told = play(&place);
        assert!(place.path("project/made").exists(), "{protocol}: the command of the asker has run");
        assert!(place.path("project/ready").exists(), "{protocol}: the patch of the worker was applied");
        (protocol, told)
    });
    expect_file!["agent_dialects.txt"].assert_eq(&table(&told));
}
