//! An MCP server for tests, on standard streams. It behaves as its mode says, well or badly.
//!
//! A test program plays it itself: it starts its own executable again with the name of the one test that calls
//! [`play`]. The lines that a test harness prints before are noise that a client has to ignore.

mod http;

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

pub use self::http::{HttpServer, serve_http};

/// The variable that names the mode.
pub const MODE: &str = "MCP_TEST_MODE";

/// The name of the test that plays the server.
pub const TEST: &str = "plays_an_mcp_server";

/// A table of `config.toml` for a server with this name that the running test program plays, with further lines for it.
#[must_use]
pub fn config(name: &str, mode: &str, further: &str) -> String {
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.display();
    format!(
        "[mcp_servers.{name}]\ncommand = '{program}'\nargs = ['--exact', '{TEST}', '--nocapture']\n\
         env = {{ {MODE} = '{mode}' }}\nstartup_timeout_sec = 20\n{further}\n"
    )
}

/// Plays the server and ends the process, if this process was started to do so.
pub fn play() {
    let Ok(mode) = std::env::var(MODE) else { return };
    match mode.as_str() {
        "crash" => {
            drop(writeln!(std::io::stderr(), "first line\nMCP-STDERR-TEXT"));
            std::process::exit(3);
        }
        "garbage" => {
            for _ in 0..50 {
                drop(std::io::stdout().write_all(b"\0\xff not json at all }{\n"));
            }
        }
        _ => {}
    }
    let mut server = Server::new(mode);
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if let Ok(message) = serde_json::from_str(&line) {
            server.receive(&message);
            server.out.drain(..).for_each(|message| print(&message));
        }
    }
    std::process::exit(0);
}

/// The server itself, without a way to it.
#[derive(Debug, Default)]
pub(crate) struct Server {
    mode: String,
    /// The first request.
    first: Option<String>,
    /// Whether the tool `extra` is there.
    extra: bool,
    /// The number of cancelled requests.
    cancelled: u64,
    /// The call that waits for the answer to a question.
    asked: Option<Value>,
    /// The request of a client that wants to be told of changes.
    listening: Option<Value>,
    /// Messages for the client.
    out: Vec<Value>,
}

fn print(message: &Value) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{message}").and_then(|()| out.flush()).unwrap_or_else(|_| std::process::exit(0));
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

impl Server {
    fn new(mode: String) -> Self {
        Self { mode, first: None, extra: false, cancelled: 0, asked: None, listening: None, out: Vec::new() }
    }

    /// The messages that a message is answered with.
    pub(crate) fn answers(&mut self, message: &Value) -> Vec<Value> {
        self.receive(message);
        std::mem::take(&mut self.out)
    }

    fn receive(&mut self, message: &Value) {
        let (id, method) = (&message["id"], message["method"].as_str());
        match method {
            Some("notifications/cancelled") => self.cancelled += 1,
            Some(method) if !id.is_null() && self.mode != "silent" && self.mode != "garbage" => {
                self.requested(id, method, &message["params"]);
            }
            None => {
                // The answer to the question of a tool.
                if let Some(call) = self.asked.take() {
                    let answer = message.get("result").or_else(|| message.get("error"));
                    let result = text(&answer.map(ToString::to_string).unwrap_or_default());
                    self.out.push(json!({"jsonrpc": "2.0", "id": call, "result": result}));
                }
            }
            Some(_) => {}
        }
    }

    fn requested(&mut self, id: &Value, method: &str, params: &Value) {
        let is_stateless = self.mode == "stateless";
        self.first.get_or_insert_with(|| method.to_owned());
        let result = match method {
            "initialize" if is_stateless => {
                return self.out.push(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}));
            }
            "server/discover" if is_stateless => json!({
                "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "new"}
            }),
            "initialize" => json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": true}, "resources": {}, "prompts": {}},
                "serverInfo": {"name": "test", "version": "1"},
            }),
            "subscriptions/listen" if is_stateless => {
                self.listening = Some(id.clone());
                return;
            }
            "tools/list" => json!({"tools": self.tools()}),
            "tools/call" => match self.call(id, params) {
                Some(result) => result,
                None => return,
            },
            "prompts/list" => json!({"prompts": [
                {"name": "weather", "description": "Asks.", "arguments": [{"name": "city", "required": true}]},
                {"name": 7},
            ]}),
            "prompts/get" => json!({"messages": [{"role": "user", "content": {
                "type": "text", "text": format!("The weather in {}?", params["arguments"]["city"].as_str().unwrap_or_default()),
            }}]}),
            "resources/list" => json!({"resources": [{"uri": "memo://note", "name": "note"}]}),
            "resources/templates/list" => json!({"resourceTemplates": []}),
            "resources/read" => json!({"contents": [{"uri": params["uri"], "text": "a note"}]}),
            _ => {
                return self
                    .out
                    .push(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}}));
            }
        };
        self.out.push(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn tools(&self) -> Vec<Value> {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let tool = |name: &str, annotations: Value| json!({"name": name, "description": name, "inputSchema": schema, "annotations": annotations});
        let reads = if self.mode == "claimless" { Value::Null } else { json!({"readOnlyHint": true}) };
        let names = [
            "echo",
            "count",
            "fail",
            "hang",
            "crash",
            "big",
            "ask",
            "pid",
            "cancelled",
            "grow",
            "wrong-id",
            "first",
            "cut",
            "flood",
            "long",
            "roots",
            "sample",
        ];
        let mut tools: Vec<Value> = names.map(|name| tool(name, reads.clone())).to_vec();
        let described = if self.extra { "writes more" } else { "writes" };
        tools.push(json!({"name": "write", "description": described, "inputSchema": schema}));
        if self.extra {
            tools.push(tool("extra", reads));
        }
        if self.mode == "odd" {
            tools.push(json!({"name": "no schema"}));
            tools.push(json!({"name": "text", "inputSchema": "x"}));
            tools.push(json!(7));
            let members: serde_json::Map<String, Value> =
                (0..10_000).map(|number| (format!("member{number}"), json!({"type": "string"}))).collect();
            tools.push(json!({"name": "huge", "inputSchema": {"type": "object", "properties": members}}));
            tools.push(json!({"name": "round", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#"}}}}));
        }
        tools
    }

    /// Asks the model of the client, and answers with its answer.
    fn sample(&mut self, id: &Value, params: &Value, text_for_model: &str) -> Option<Value> {
        let request = request_to_model(text_for_model);
        match params.get("inputResponses") {
            Some(given) => Some(text(&given.to_string())),
            None if self.mode == "stateless" => Some(json!({
                "resultType": "input_required", "requestState": "sealed",
                "inputRequests": {"said": {"method": "sampling/createMessage", "params": request}},
            })),
            None => {
                self.asked = Some(id.clone());
                self.out
                    .push(json!({"jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage", "params": request}));
                None
            }
        }
    }

    fn call(&mut self, id: &Value, params: &Value) -> Option<Value> {
        let argument = params["arguments"]["text"].as_str().unwrap_or_default();
        match params["name"].as_str().unwrap_or_default() {
            "echo" => {
                let mut result = text(&format!("echo: {argument}"));
                result["structuredContent"] = json!({"text": argument});
                Some(result)
            }
            "count" => {
                for number in 1..=3 {
                    let token = &params["_meta"]["progressToken"];
                    let told =
                        json!({"progressToken": token, "progress": number, "message": format!("counted {number}")});
                    self.out.push(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": told}));
                }
                Some(text("1 2 3"))
            }
            "fail" => Some(json!({"content": [{"type": "text", "text": "it failed"}], "isError": true})),
            "hang" => None,
            "crash" => {
                drop(writeln!(std::io::stderr(), "MCP-LAST-WORDS"));
                std::process::exit(4);
            }
            "big" => Some(text(&"Q".repeat(20 << 20))),
            "ask" if self.mode == "stateless" => Some(match params.get("inputResponses") {
                Some(given) => text(&format!("{given} {}", params["requestState"])),
                None => json!({
                    "resultType": "input_required", "requestState": "sealed",
                    "inputRequests": {"who": {"method": "elicitation/create", "params": question()}},
                }),
            }),
            "ask" => {
                self.asked = Some(id.clone());
                self.out
                    .push(json!({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": question()}));
                None
            }
            "pid" => Some(text(&std::process::id().to_string())),
            "first" => Some(text(self.first.as_deref().unwrap_or_default())),
            "cancelled" => Some(text(&self.cancelled.to_string())),
            "grow" if self.mode == "stateless" && self.listening.is_none() => Some(text("nobody listens")),
            "grow" => {
                self.extra = true;
                self.out.push(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                Some(text("grown"))
            }
            "wrong-id" => {
                self.out.push(json!({"jsonrpc": "2.0", "id": 12_345, "result": text("not yours")}));
                Some(text("yours"))
            }
            "cut" => Some(text("the rest")),
            "flood" => {
                drop(std::io::stderr().write_all("stderr ".repeat(500_000).as_bytes()));
                for method in ["notifications/progress", "notifications/message", "notifications/tools/list_changed"] {
                    let notification = json!({"jsonrpc": "2.0", "method": method, "params": {"progressToken": 99}});
                    self.out.extend(std::iter::repeat_n(notification, 5_000));
                }
                Some(text("after the flood"))
            }
            "long" => Some(text(&"line\n".repeat(10_000))),
            "roots" => {
                self.asked = Some(id.clone());
                self.out.push(json!({"jsonrpc": "2.0", "id": "r1", "method": "roots/list"}));
                None
            }
            "sample" => self.sample(id, params, argument),
            "write" => Some(text("written")),
            "extra" => Some(text("extra")),
            other => {
                Some(json!({"content": [{"type": "text", "text": format!("unknown tool {other}")}], "isError": true}))
            }
        }
    }
}

fn request_to_model(text: &str) -> Value {
    json!({"systemPrompt": "Be short.", "maxTokens": 50,
           "messages": [{"role": "user", "content": {"type": "text", "text": text}}]})
}

fn question() -> Value {
    json!({"message": "Who are you?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}})
}
