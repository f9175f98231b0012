//! A client of `codex mcp-server`, in process.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codex_config::{ConfigSource, Env, Home, Overrides};
use codex_engine::{CredentialsSource, HostOptions, LocalHost};
use codex_pipe::mcp::{Server, serve};
use codex_store::FileStore;
use codex_thread::ThreadHost;
use codex_wire::rollout::SessionSource;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, duplex};
use tokio::task::JoinHandle;

/// The number of bytes that a pipe holds.
const PIPE_BYTES: usize = 64 * 1024;
/// The time to wait for a message before the test fails.
const PATIENCE: Duration = Duration::from_secs(30);
/// A provider that plays a script.
const PROVIDER: &str = "model_provider = 'mine'\n[model_providers.mine]\nname = 'Mine'\nwire_api = 'scripted'\n\
                        script = 'script.json'\n";

/// A policy under which every command needs an approval.
pub(crate) const ASKS: &str = "approval_policy = 'untrusted'\nsandbox_mode = 'danger-full-access'";

/// An answer of the model that runs a command.
pub(crate) fn command(line: &str) -> Value {
    json!({"items": [{"call": "shell", "args": {"command": ["sh", "-c", line]}}]})
}

/// An answer of the model with a message.
pub(crate) fn text(text: &str) -> Value {
    json!({"items": [{"text": text}]})
}

/// A server in its own folders.
pub(crate) struct Place {
    folder: TempDir,
    pub(crate) threads: Arc<dyn ThreadHost>,
}

impl Place {
    pub(crate) fn new(config: &str, script: &Value) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        for name in ["home", "work"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder can be made");
        }
        let write = |name: &str, text: String| {
            std::fs::write(folder.path().join("home").join(name), text).expect("a file can be written");
        };
        write("config.toml", format!("{config}\n{PROVIDER}"));
        write("script.json", script.to_string());
        let threads = threads(&folder);
        Self { folder, threads }
    }

    /// The same folders after the server was restarted.
    pub(crate) fn again(self) -> Self {
        let threads = threads(&self.folder);
        Self { threads, ..self }
    }

    pub(crate) fn server(&self) -> Server {
        Server { threads: Arc::clone(&self.threads), others: None, user_agent: "agent/1".to_owned() }
    }

    /// A path in the working directory of threads.
    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("it exists").join("work").join(name)
    }
}

fn threads(folder: &TempDir) -> Arc<dyn ThreadHost> {
    let root = folder.path().canonicalize().expect("it exists");
    let home = Home::at(root.join("home"));
    let store = Arc::new(FileStore::of(home.path()));
    let config = Arc::new(ConfigSource::new(home, Env::from_iter([("TERM", "dumb")]), Overrides::default()));
    Arc::new(LocalHost::new(HostOptions {
        agents: None,
        servers: None,
        config,
        store,
        cwd: root.join("work"),
        programs: None,
        credentials: CredentialsSource::none(),
        originator: "tests".to_owned(),
        source: SessionSource::Mcp,
        recent_bytes: 0,
    }))
}

/// A connection. A test ends it with [`McpClient::end`], which fails if a message other than an event was not read.
pub(crate) struct McpClient {
    pub(crate) place: Place,
    input: Option<DuplexStream>,
    output: Lines<BufReader<DuplexStream>>,
    served: JoinHandle<std::io::Result<()>>,
    next_id: i64,
    /// Messages that arrived while the test waited for another one.
    waiting: VecDeque<Value>,
}

impl McpClient {
    /// A client that can be asked, and a scripted model.
    pub(crate) async fn start(config: &str, script: &Value) -> Self {
        let mut client = Self::connect(Place::new(config, script));
        client.initialize(json!({"elicitation": {}})).await;
        client
    }

    /// A client that has not sent anything.
    pub(crate) fn connect(place: Place) -> Self {
        let (input, server_input) = duplex(PIPE_BYTES);
        let (server_output, output) = duplex(PIPE_BYTES);
        let served = tokio::spawn(serve(place.server(), None, server_input, server_output));
        let output = BufReader::new(output).lines();
        Self { place, input: Some(input), output, served, next_id: 0, waiting: VecDeque::new() }
    }

    pub(crate) async fn initialize(&mut self, capabilities: Value) {
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": info});
        let answer = self.ask("initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(answer["result"]["serverInfo"]["user_agent"], "agent/1 (test; 1)");
        self.notify("notifications/initialized", json!({})).await;
    }

    pub(crate) async fn send(&mut self, line: &str) {
        let input = self.input.as_mut().expect("the connection is open");
        input.write_all(format!("{line}\n").as_bytes()).await.expect("the server reads");
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()).await;
    }

    /// Sends a request, and returns its id.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        self.send(&message.to_string()).await;
        self.next_id
    }

    /// Calls a tool, and returns the id of the request.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> i64 {
        self.request("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Sends a request and waits for the answer.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.answer(id).await
    }

    /// Calls a tool and waits for its result.
    pub(crate) async fn result(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.call(tool, arguments).await;
        self.answer(id).await["result"].clone()
    }

    /// Waits for the answer to a request.
    pub(crate) async fn answer(&mut self, id: i64) -> Value {
        self.wait(|message| message["id"] == json!(id) && message.get("method").is_none()).await
    }

    /// Waits for a request or a notification with this method.
    pub(crate) async fn next(&mut self, method: &str) -> Value {
        self.wait(|message| message["method"] == method).await
    }

    /// Waits for an event of a kind.
    pub(crate) async fn event(&mut self, kind: &str) -> Value {
        self.wait(|message| message["params"]["msg"]["type"] == kind).await["params"].clone()
    }

    /// Answers a request of the server.
    pub(crate) async fn respond(&mut self, request: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string()).await;
    }

    async fn wait(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.waiting.iter().position(&is_wanted) {
            return self.waiting.remove(at).expect("it is there");
        }
        loop {
            let message = self.read().await.expect("the server says something more");
            if is_wanted(&message) {
                return message;
            }
            self.waiting.push_back(message);
        }
    }

    async fn read(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await.expect("a message comes in time");
        let message: Value = serde_json::from_str(&line.expect("lines can be read")?).expect("every line is JSON");
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        if message["method"] == "codex/event" {
            crate::shapes::check_event(&message["params"]);
        }
        Some(message)
    }

    /// Waits for the answer to an invalid line.
    pub(crate) async fn null_answer(&mut self) -> Value {
        self.wait(|message| message.get("error").is_some() && message["id"].is_null()).await
    }

    /// Closes this side of the connection.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// The events that arrived and were not waited for.
    pub(crate) fn events(&self) -> Vec<&Value> {
        self.waiting.iter().filter(|message| message["method"] == "codex/event").map(|it| &it["params"]).collect()
    }

    /// Ends the connection and returns its folders. Every message except events must have been read.
    pub(crate) async fn end(mut self) -> Place {
        drop(self.input.take());
        while let Some(message) = self.read().await {
            self.waiting.push_back(message);
        }
        self.served.await.expect("the server does not panic").expect("the connection ends well");
        let rest: Vec<&Value> = self.waiting.iter().filter(|message| message["method"] != "codex/event").collect();
        assert!(rest.is_empty(), "messages were left unread: {rest:#?}");
        assert!(self.place.threads.loaded().is_empty(), "threads are still loaded");
        self.place
    }
}
