//! Processes without an address, `codex mcp-server` and the chat, and threads that another server has open.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::mcp::{ask, hello, post, until};
use crate::program::{Place, Running};
use crate::pty::Pty;
use crate::servers::{Shared, TALK};
use crate::sockets;

/// A command that needs an approval, and then a text.
const ASKS: &str = r#"[
    {"items": [{"call": "shell", "args": {"command": ["touch", "made"]}}]},
    {"items": [{"text": "Done."}], "repeat": true}
]"#;

/// A text, then a command that does not end by itself, and then texts.
const RUNS: &str = r#"[
    {"items": [{"text": "Begun."}]},
    {"items": [{"call": "shell", "args": {"command": ["sh", "-c", "while ! test -e go; do sleep 0.05; done"], "timeout_ms": 600000}}]},
    {"items": [{"text": "Done."}], "repeat": true}
]"#;

/// A client of `codex mcp-server`. The model of that process has nothing to say, unless a script is given.
struct McpClient {
    codex: Running,
    _place: Place,
}

impl McpClient {
    fn start(shared: &Shared, name: &str, script: &str) -> Self {
        let place = shared.place(script);
        let (schema, name) = (format!("store.schema={}", shared.schema), format!("store.server_name={name}"));
        let folder = shared.workspace.path("project").display().to_string();
        let mut codex = place.start(&["mcp-server", "-C", &folder, "-c", &schema, "-c", &name]);
        ask(&mut codex, 1, "initialize", &hello());
        Self { codex, _place: place }
    }

    fn send(&mut self, message: &Value) {
        self.codex.send(&format!("{message}\n"));
    }

    /// Sends another prompt to a thread.
    fn reply(&mut self, id: i64, thread: &str, prompt: &str) {
        let params = json!({"name": "codex-reply", "arguments": {"threadId": thread, "prompt": prompt}});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    /// Waits until the turn of a call runs a command.
    fn until_command(&mut self) {
        until(&mut self.codex, |message| message["params"]["msg"]["type"] == "exec_command_begin");
    }

    fn next(&mut self, method: &str) -> Value {
        until(&mut self.codex, |message| message["method"] == method)
    }

    /// The kinds of the events up to the result of a call, and the result.
    fn rest_of_call(&mut self, id: i64) -> (Vec<String>, Value) {
        let mut kinds = Vec::new();
        loop {
            let message = self.codex.message();
            if message["id"] == id && message.get("method").is_none() {
                return (kinds, message["result"].clone());
            }
            if message["method"] == "codex/event" {
                kinds.push(message["params"]["msg"]["type"].as_str().unwrap_or_default().to_owned());
            }
        }
    }

    fn result(&mut self, id: i64) -> Value {
        self.rest_of_call(id).1
    }
}

#[test]
fn a_reply_runs_where_the_thread_is_open() {
    let Some(shared) = Shared::new() else { return };
    let a = shared.server("a", TALK, &[]);
    let mut at_a = a.client();
    let thread = at_a.begin_thread();
    let mut mcp = McpClient::start(&shared, "m", "[]");
    mcp.reply(2, &thread, "second");
    let (kinds, result) = mcp.rest_of_call(2);
    assert_eq!(result["structuredContent"]["content"], "One two three.", "{result}");
    assert_eq!(result["structuredContent"]["threadId"], thread);
    assert_eq!(at_a.rest_of_turn(), ("One two three.".to_owned(), json!("completed")), "it ran there");
    for kind in ["task_started", "user_message", "agent_message_delta", "agent_message", "task_complete"] {
        assert!(kinds.iter().any(|it| it == kind), "{kind} in {kinds:?}");
    }
    assert_eq!(kinds.iter().filter(|it| *it == "agent_message_delta").count(), 3, "{kinds:?}");
    // The next one as well, and the thread has stayed where it was.
    mcp.reply(3, &thread, "third");
    assert_eq!(mcp.result(3)["structuredContent"]["content"], "One two three.");
    assert_eq!(shared.sql("SELECT epoch FROM @.threads"), "1", "nobody took the thread over");
    assert_eq!(mcp.codex.finish().code, Some(0));
    assert_eq!(shared.sql("SELECT name FROM @.servers"), "a", "a process that ends leaves the list");
}

#[test]
fn an_approval_of_a_relayed_turn_is_an_elicitation_that_one_client_answers() {
    let Some(shared) = Shared::new() else { return };
    let settings = ["approval_policy=untrusted"];
    let (b, c) = (shared.server("b", ASKS, &settings), shared.server("c", ASKS, &settings));
    let mut mcp = McpClient::start(&shared, "m", "[]");
    // This client answers.
    let mut at_b = b.client();
    let thread = at_b.start_thread();
    at_b.start_turn(&thread, "first");
    let first = at_b.next("item/commandExecution/requestApproval");
    // A question that is open already is asked too; the prompt joins the turn.
    mcp.reply(2, &thread, "second");
    let asked = mcp.next("elicitation/create");
    let params = &asked["params"];
    assert_eq!(params["codex_elicitation"], "exec-approval", "{asked}");
    assert_eq!(params["codex_command"], json!(["touch", "made"]));
    assert_eq!(params["_meta"]["threadId"], thread);
    assert!(params["codex_event_id"].as_str().is_some_and(|turn| !turn.is_empty()), "{asked}");
    mcp.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {}}}));
    assert_eq!(at_b.next("serverRequest/resolved")["params"]["requestId"], first["id"]);
    assert_eq!(mcp.result(2)["structuredContent"]["content"], "Done.");
    std::fs::remove_file(shared.workspace.path("project/made")).expect("it was made");

    // Somebody else answers.
    let mut at_c = c.client();
    let thread = at_c.start_thread();
    at_c.start_turn(&thread, "first");
    let there = at_c.next("item/commandExecution/requestApproval");
    mcp.reply(3, &thread, "second");
    let asked = mcp.next("elicitation/create");
    at_c.send(&json!({"id": there["id"], "result": {"decision": "accept"}}));
    let withdrawn = mcp.next("notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    assert_eq!(mcp.result(3)["structuredContent"]["content"], "Done.");
    assert!(shared.workspace.path("project/made").exists());
}

#[test]
fn a_cancelled_call_interrupts_the_turn_at_its_owner() {
    let Some(shared) = Shared::new() else { return };
    let a = shared.server("a", RUNS, &[]);
    let mut at_a = a.client();
    let thread = at_a.begin_thread();
    let mut mcp = McpClient::start(&shared, "m", "[]");
    mcp.reply(2, &thread, "second");
    mcp.until_command();
    mcp.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}));
    assert_eq!(at_a.rest_of_turn().1, "interrupted");
}

#[test]
fn the_server_that_has_a_thread_is_named_when_it_cannot_be_asked() {
    let Some(shared) = Shared::new() else { return };
    // A process without an address.
    let mut other = McpClient::start(&shared, "other", TALK);
    let arguments = json!({"name": "codex", "arguments": {"prompt": "first"}});
    other.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": arguments}));
    let first = other.result(2);
    let thread = first["structuredContent"]["threadId"].as_str().expect("it has an id").to_owned();
    let mut mcp = McpClient::start(&shared, "m", TALK);
    mcp.reply(2, &thread, "second");
    let refused = mcp.result(2);
    let text = refused["content"][0]["text"].as_str().expect("a text");
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(text.contains("server other"), "{text}");
    // It gives the thread back when it ends, and the thread is continued here.
    assert_eq!(other.codex.finish().code, Some(0));
    mcp.reply(3, &thread, "third");
    assert_eq!(mcp.result(3)["structuredContent"]["content"], "One two three.");
}

#[test]
fn a_call_ends_with_its_owner_and_the_next_one_takes_over() {
    let Some(shared) = Shared::new() else { return };
    let a = shared.server("a", RUNS, &[]);
    let mut at_a = a.client();
    let thread = at_a.start_thread();
    let mut mcp = McpClient::start(&shared, "m", TALK);
    at_a.start_turn(&thread, "first");
    at_a.rest_of_turn();
    mcp.reply(2, &thread, "second");
    mcp.until_command();
    a.signal(Signal::KILL);
    let lost = mcp.result(2);
    let text = lost["content"][0]["text"].as_str().expect("a text").to_owned();
    assert!(text.contains("was open on server a, which has ended or cannot be reached; call again"), "{text}");
    // Its lease still runs.
    mcp.reply(3, &thread, "third");
    let refused = mcp.result(3);
    let text = refused["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("is open on server a, which cannot be reached: "), "{text}");
    shared.sql("UPDATE @.servers SET expires = now() WHERE name = 'a'");
    mcp.reply(4, &thread, "fourth");
    assert_eq!(mcp.result(4)["structuredContent"]["content"], "One two three.");
    assert_eq!(shared.sql("SELECT epoch FROM @.threads"), "2");
}

#[test]
fn a_reply_over_http_runs_where_the_thread_is_open() {
    let Some(shared) = Shared::new() else { return };
    let a = shared.server("a", ASKS, &["approval_policy=untrusted"]);
    let mut at_a = a.client();
    let thread = at_a.start_thread();
    at_a.start_turn(&thread, "first");
    at_a.next("item/commandExecution/requestApproval");
    let token = "a-token-for-tests-0123456789";
    let place = shared.place("[]").variable("CODEX_APP_SERVER_TOKEN", token);
    let schema = format!("store.schema={}", shared.schema);
    let folder = shared.workspace.path("project").display().to_string();
    let server = sockets::Server::start_as("mcp-server", &place, &["127.0.0.1:0"], &["-C", &folder, "-c", &schema]);
    let url = server.urls[0].clone();
    // The version without sessions: a question is a result, and its answer comes with the next request.
    let version = "2026-07-28";
    let headers = format!(
        "Authorization: Bearer {token}\r\nMCP-Protocol-Version: {version}\r\nMcp-Method: tools/call\r\nMcp-Name: codex-reply\r\n"
    );
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let arguments = json!({"threadId": thread, "prompt": "second"});
    let call = json!({"name": "codex-reply", "arguments": arguments, "_meta": meta});
    let asked = last_message(&post(
        &url,
        &headers,
        &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}),
    ));
    let requests = asked["result"]["inputRequests"].as_object().expect("it asks").clone();
    let (key, request) = requests.iter().next().expect("a question");
    assert_eq!(request["params"]["codex_command"], json!(["touch", "made"]), "{request}");
    let mut again = call.clone();
    again["requestState"] = asked["result"]["requestState"].clone();
    again["inputResponses"] = json!({key: {"action": "accept", "content": {}}});
    let done = last_message(&post(
        &url,
        &headers,
        &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": again}),
    ));
    assert_eq!(done["result"]["structuredContent"]["content"], "Done.", "{done}");
    assert_eq!(at_a.rest_of_turn().1, "completed");
    assert!(shared.workspace.path("project/made").exists());
    assert_eq!(server.terminate().0, Some(0));
}

#[test]
fn the_chat_uses_a_thread_that_a_server_has_open() {
    let Some(shared) = Shared::new() else { return };
    let a = shared.server("a", TALK, &[]);
    let mut at_a = a.client();
    let thread = at_a.begin_thread();
    // The model of the chat has nothing to say, so the answer is that of the server.
    let place = crate::chat::place("", &json!([])).variable("CODEX_STORE_URL", &shared.database.url());
    let schema = format!("store.schema={}", shared.schema);
    let mut chat = Pty::start(&place, &["resume", &thread, "-c", &schema]);
    chat.until("> ");
    chat.send("second\r");
    assert_eq!(at_a.rest_of_turn(), ("One two three.".to_owned(), json!("completed")));
    chat.until("> second");
    chat.until("One two three.");
    chat.send("/quit\r");
    assert_eq!(chat.wait().code, Some(0));
    assert_eq!(shared.sql("SELECT epoch FROM @.threads"), "1", "nobody took the thread over");
}

/// The last message of a stream of events.
fn last_message(response: &str) -> Value {
    let data = response.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
    serde_json::from_str(data.unwrap_or_else(|| panic!("no events: {response}"))).expect("it is JSON")
}
