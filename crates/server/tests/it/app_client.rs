//! A client of the app-server: requests and notifications over in-memory pipes.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use codex_agents::LocalTrees;
use codex_config::{ConfigSource, Env, Home, Overrides};
use codex_dialects::ProtocolRelease;
use codex_engine::{CredentialsSource, HostOptions, LocalHost};
use codex_login::Accounts;
use codex_mcp::McpServers;
use codex_server::app::{AppServer, Dialect, Start};
use codex_store::FileStore;
use codex_tools::servers::ToolServers;
use codex_wire::rollout::SessionSource;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, duplex};
use tokio::task::JoinHandle;

use crate::shapes;

/// The number of bytes that a pipe holds.
const PIPE_BYTES: usize = 64 * 1024;
/// The time to wait for a message before the test fails.
const PATIENCE: Duration = Duration::from_secs(30);
/// A provider that needs no network.
const PROVIDER: &str = "model_provider = 'mine'\n[model_providers.mine]\nname = 'Mine'\nwire_api = 'scripted'\n";

/// The options of a server, and the capabilities of its client.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hello {
    /// The release that the server emulates.
    pub(crate) release: Option<ProtocolRelease>,
    /// The dialect that the server speaks.
    pub(crate) dialect: Option<Dialect>,
    pub(crate) capabilities: Option<Value>,
    /// The name of the client.
    pub(crate) name: Option<&'static str>,
    /// Whether its messages have a form of their own, which no schema describes.
    pub(crate) has_own_form: bool,
}

/// A connection. A test ends it with [`AppClient::end`], which fails if a message was not read.
pub(crate) struct AppClient {
    folder: Arc<TempDir>,
    hello: Hello,
    server: AppServer,
    input: Option<DuplexStream>,
    output: Lines<BufReader<DuplexStream>>,
    serving: Option<JoinHandle<std::io::Result<()>>>,
    next_id: i64,
    /// The requests by id, so that responses can be checked.
    asked: HashMap<i64, String>,
    /// Messages that arrived while the test waited for another one.
    waiting: VecDeque<Value>,
    is_over: bool,
    /// Whether the test reads the message, told for every thread, that there are no MCP servers to wait for.
    pub(crate) reads_startup: bool,
}

fn says_that_no_server_starts(message: &Value) -> bool {
    let msg = &message["params"]["msg"];
    let is_empty = |name: &str| msg[name].as_array().is_some_and(Vec::is_empty);
    message["method"] == "codex/event/mcp_startup_complete" && is_empty("ready") && is_empty("failed")
}

impl AppClient {
    /// A client of 0.77 with a home that has this `config.toml`.
    pub(crate) async fn start(config: &str) -> Self {
        Self::start_as(ProtocolRelease::V077, config).await
    }

    /// A client of 0.166.
    pub(crate) async fn start_new(config: &str) -> Self {
        Self::start_as(ProtocolRelease::V0166, config).await
    }

    /// A client of a release, with a provider that needs no network unless the configuration names one.
    pub(crate) async fn start_as(release: ProtocolRelease, config: &str) -> Self {
        Self::start_with(Hello { release: Some(release), ..Hello::default() }, config).await
    }

    /// A client with this `clientInfo` and these capabilities.
    pub(crate) async fn start_with(hello: Hello, config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let root = folder.path().canonicalize().expect("it exists");
        for name in ["home", "work"] {
            std::fs::create_dir(root.join(name)).expect("a folder can be made");
        }
        let config =
            if config.contains("model_provider") { config.to_owned() } else { format!("{config}\n{PROVIDER}") };
        std::fs::write(root.join("home/config.toml"), config).expect("a file can be written");
        Self::connect(Arc::new(folder), hello).await
    }

    /// Ends the server, discards unread messages, and starts another server in the same folders.
    pub(crate) async fn start_again(self) -> Self {
        self.start_again_after(|| ()).await
    }

    /// The same, with work that is done while no server runs.
    pub(crate) async fn start_again_after(mut self, between: impl FnOnce()) -> Self {
        self.close().await;
        between();
        Self::connect(Arc::clone(&self.folder), self.hello.clone()).await
    }

    /// A client of another server in the same folders.
    pub(crate) async fn beside(&self) -> Self {
        Self::connect(Arc::clone(&self.folder), self.hello.clone()).await
    }

    async fn connect(folder: Arc<TempDir>, hello: Hello) -> Self {
        let root = folder.path().canonicalize().expect("it exists");
        let env = Env::from_iter([("TERM", "dumb")]);
        let home = Home::at(root.join("home"));
        let store = Arc::new(FileStore::of(home.path()));
        let config = Arc::new(ConfigSource::new(home, env, Overrides::default()));
        let (cwd, originator) = (root.join("work"), "codex_cli_rs".to_owned());
        let accounts = Accounts::new(config.home(), config.env());
        let logins = Arc::new(accounts.clone());
        let servers: Arc<dyn ToolServers> = Arc::new(McpServers::new(Env::process()));
        let threads = LocalHost::new(HostOptions {
            agents: Some(Arc::new(LocalTrees)),
            servers: Some(Arc::clone(&servers)),
            config: Arc::clone(&config),
            store: store.clone(),
            cwd: cwd.clone(),
            programs: None,
            credentials: CredentialsSource::new(move |config, provider| accounts.credentials(config.login(), provider)),
            originator: originator.clone(),
            source: SessionSource::VsCode,
            recent_bytes: 64 * 1024,
        });
        let server = AppServer::new(Start {
            servers: Some(servers),
            threads: Arc::new(threads),
            accounts: logins,
            store,
            config,
            cwd,
            programs: None,
            originator,
            release: hello.release,
            dialect: hello.dialect,
            delta_interval: None,
        });
        let alone = server.clone();
        Self::greet(folder, hello, server, |read, write| {
            tokio::spawn(async move { alone.serve_alone(read, write).await })
        })
        .await
    }

    /// Another client of the same server.
    pub(crate) async fn another(&self) -> Self {
        let shared = self.server.clone();
        Self::greet(Arc::clone(&self.folder), self.hello.clone(), self.server.clone(), |read, write| {
            tokio::spawn(async move { shared.serve(read, write).await })
        })
        .await
    }

    async fn greet(
        folder: Arc<TempDir>,
        hello: Hello,
        server: AppServer,
        serve: impl FnOnce(DuplexStream, DuplexStream) -> JoinHandle<std::io::Result<()>>,
    ) -> Self {
        let (input, read) = duplex(PIPE_BYTES);
        let (write, output) = duplex(PIPE_BYTES);
        let serving = serve(read, write);
        let mut client = Self {
            folder,
            hello,
            server,
            input: Some(input),
            output: BufReader::new(output).lines(),
            serving: Some(serving),
            next_id: 0,
            asked: HashMap::new(),
            waiting: VecDeque::new(),
            is_over: false,
            reads_startup: false,
        };
        let capabilities = client.hello.capabilities.clone();
        let client_info = json!({"name": client.hello.name.unwrap_or("test"), "version": "1"});
        client.ok("initialize", json!({"clientInfo": client_info, "capabilities": capabilities})).await;
        client.notify("initialized").await;
        client
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("it exists")
    }

    /// A path in the home folder.
    pub(crate) fn home(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root().join("home").join(path)
    }

    /// A path in the working directory of the server.
    pub(crate) fn work(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root().join("work").join(path)
    }

    async fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("the connection is open");
        input.write_all(format!("{message}\n").as_bytes()).await.expect("the server reads");
    }

    /// Sends a notification.
    pub(crate) async fn notify(&mut self, method: &str) {
        self.send(&json!({"method": method})).await;
    }

    /// Sends a request without waiting for its answer.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.asked.insert(id, method.to_owned());
        self.send(&json!({"id": id, "method": method, "params": params})).await;
        id
    }

    /// The next message, which must match the schemas; `None` at the end of the output.
    async fn read(&mut self) -> Option<Value> {
        loop {
            let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await.expect("a message comes in time");
            let line = line.expect("the server writes text")?;
            let message: Value = serde_json::from_str(&line).expect("every line is JSON");
            let asked = message["id"].as_i64().and_then(|id| self.asked.get(&id));
            if !self.hello.has_own_form {
                let release = self.hello.release.unwrap_or(ProtocolRelease::V0166);
                shapes::check(&message, asked.map(String::as_str), release);
            }
            if self.reads_startup || !says_that_no_server_starts(&message) {
                return Some(message);
            }
        }
    }

    /// The next message of any kind.
    pub(crate) async fn next(&mut self) -> Value {
        match self.waiting.pop_front() {
            Some(message) => message,
            None => self.read().await.expect("the server is there"),
        }
    }

    async fn next_of(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.waiting.iter().position(&is_wanted) {
            return self.waiting.remove(place).expect("it was found");
        }
        loop {
            let message = self.read().await.expect("the server is there");
            if is_wanted(&message) {
                return message;
            }
            self.waiting.push_back(message);
        }
    }

    /// The answer to an earlier request.
    pub(crate) async fn answer(&mut self, id: i64) -> Result<Value, Value> {
        let mut answer = self.next_of(|message| message["id"] == id && message.get("method").is_none()).await;
        match answer.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(answer["result"].take()),
        }
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.ask(method, params).await;
        self.answer(id).await
    }

    /// Sends a request that must succeed.
    pub(crate) async fn ok(&mut self, method: &str, params: Value) -> Value {
        self.call(method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Sends a request that must fail, and returns the code and the message of its error.
    pub(crate) async fn refused(&mut self, method: &str, params: Value) -> (i64, String) {
        let error = self.call(method, params).await.expect_err("it is refused");
        (error["code"].as_i64().expect("a code"), error["message"].as_str().expect("a message").to_owned())
    }

    /// The next notification with this method.
    pub(crate) async fn next_notification(&mut self, method: &str) -> Value {
        self.next_of(|message| message["method"] == method && message.get("id").is_none()).await["params"].take()
    }

    /// The next server request with this method: its id and its parameters.
    pub(crate) async fn next_request(&mut self, method: &str) -> (i64, Value) {
        let mut request = self.next_of(|message| message["method"] == method && message.get("id").is_some()).await;
        (request["id"].as_i64().expect("a number"), request["params"].take())
    }

    /// Answers a server request, with a `result` or an `error`.
    pub(crate) async fn respond(&mut self, id: i64, answer: Value) {
        self.respond_as(json!(id), answer).await;
    }

    /// The same with an id of any form.
    pub(crate) async fn respond_as(&mut self, id: Value, answer: Value) {
        let mut message = json!({"id": id});
        message.as_object_mut().expect("an object").extend(answer.as_object().expect("an object").clone());
        self.send(&message).await;
    }

    /// All messages up to the first one with this method, in order.
    pub(crate) async fn messages_until(&mut self, method: &str) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            messages.push(self.next().await);
            if messages.last().is_some_and(|last| last["method"] == method) {
                return messages;
            }
        }
    }

    /// The methods of all messages up to the first notification with this method, without `codex/event/*`.
    pub(crate) async fn names_until(&mut self, method: &str) -> Vec<String> {
        let name = |message: &Value| message["method"].as_str().unwrap_or("answer").to_owned();
        let names = self.messages_until(method).await.iter().map(name).collect::<Vec<_>>();
        names.into_iter().filter(|name| !name.starts_with("codex/event/")).collect()
    }

    /// Closes the client's side of the connection.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Stops reading, like a client whose output is closed.
    pub(crate) fn stop_reading(&mut self) {
        self.output = BufReader::new(duplex(1).0).lines();
    }

    /// Ends the connection, and fails if a message was not read.
    pub(crate) async fn end(mut self) {
        let left = self.close().await;
        assert!(left.is_empty(), "messages were left unread: {left:#?}");
    }

    /// Ends the connection, and discards unread messages.
    pub(crate) async fn end_unread(mut self) {
        self.close().await;
    }

    /// Ends the connection, and returns the unread messages.
    pub(crate) async fn end_with_rest(mut self) -> Vec<Value> {
        self.close().await
    }

    async fn close(&mut self) -> Vec<Value> {
        self.is_over = true;
        self.input = None;
        let mut left: Vec<Value> = self.waiting.drain(..).collect();
        while let Some(message) = self.read().await {
            left.push(message);
        }
        let serving = self.serving.take().expect("it is ended once");
        serving.await.expect("the server does not panic").expect("the server ends well");
        left
    }
}

impl Drop for AppClient {
    fn drop(&mut self) {
        assert!(self.is_over || std::thread::panicking(), "a test must end its client");
    }
}
