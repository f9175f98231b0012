//! A client of the app-server: requests and notifications over pipes in memory.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use codex_config::{Env, Home, Overrides};
use codex_server::app::{AppServer, Start, Vintage};
use codex_wire::rollout::SessionSource;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, duplex};
use tokio::task::JoinHandle;

/// How many bytes a pipe holds.
const PIPE_BYTES: usize = 64 * 1024;
/// How long a message is waited for before the test fails.
const PATIENCE: Duration = Duration::from_secs(30);
/// A provider that asks nobody.
const PROVIDER: &str = "model_provider = 'mine'\n[model_providers.mine]\nname = 'Mine'\nwire_api = 'scripted'\n";

/// A connection. A test ends it with [`AppClient::end`], which fails if a message was not read.
pub(crate) struct AppClient {
    folder: TempDir,
    input: Option<DuplexStream>,
    output: Lines<BufReader<DuplexStream>>,
    serving: Option<JoinHandle<std::io::Result<()>>>,
    next_id: i64,
    /// Messages that came while something else was waited for.
    waiting: VecDeque<Value>,
    is_over: bool,
}

impl AppClient {
    /// A client of 0.77 with a home whose `config.toml` says this.
    pub(crate) async fn start(config: &str) -> Self {
        Self::start_as(Vintage::V077, config).await
    }

    /// A client of 0.166.
    pub(crate) async fn start_new(config: &str) -> Self {
        Self::start_as(Vintage::V0166, config).await
    }

    /// A client of a release, with a provider that asks nobody unless the configuration names one.
    pub(crate) async fn start_as(vintage: Vintage, config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let root = folder.path().canonicalize().expect("it exists");
        for name in ["home", "work"] {
            std::fs::create_dir(root.join(name)).expect("a folder can be made");
        }
        let config =
            if config.contains("model_provider") { config.to_owned() } else { format!("{config}\n{PROVIDER}") };
        std::fs::write(root.join("home/config.toml"), config).expect("a file can be written");
        let server = AppServer::new(Start {
            home: Home::at(root.join("home")),
            env: Env::from_iter([("TERM", "dumb")]),
            overrides: Overrides::default(),
            cwd: root.join("work"),
            programs: None,
            originator: "codex_cli_rs".to_owned(),
            source: SessionSource::VsCode,
            vintage: Some(vintage),
        });
        let (input, read) = duplex(PIPE_BYTES);
        let (write, output) = duplex(PIPE_BYTES);
        let serving = tokio::spawn(async move { server.serve_alone(read, write).await });
        let mut client = Self {
            folder,
            input: Some(input),
            output: BufReader::new(output).lines(),
            serving: Some(serving),
            next_id: 0,
            waiting: VecDeque::new(),
            is_over: false,
        };
        client.ok("initialize", json!({"clientInfo": {"name": "test", "version": "1"}})).await;
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

    /// A path in the folder that the server works in.
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
        self.send(&json!({"id": id, "method": method, "params": params})).await;
        id
    }

    /// The next message; none when the server has said everything.
    async fn read(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await.expect("a message comes in time");
        line.expect("the server writes text").map(|line| serde_json::from_str(&line).expect("every line is JSON"))
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

    /// The answer to a request that was sent before.
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

    /// Sends a request that must work.
    pub(crate) async fn ok(&mut self, method: &str, params: Value) -> Value {
        self.call(method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Sends a request that must fail, and returns its code and its message.
    pub(crate) async fn refused(&mut self, method: &str, params: Value) -> (i64, String) {
        let error = self.call(method, params).await.expect_err("it is refused");
        (error["code"].as_i64().expect("a code"), error["message"].as_str().expect("a message").to_owned())
    }

    /// The next notification of that name.
    pub(crate) async fn next_notification(&mut self, method: &str) -> Value {
        self.next_of(|message| message["method"] == method && message.get("id").is_none()).await["params"].take()
    }

    /// The next request of the server of that name: its id and its parameters.
    pub(crate) async fn next_request(&mut self, method: &str) -> (i64, Value) {
        let mut request = self.next_of(|message| message["method"] == method && message.get("id").is_some()).await;
        (request["id"].as_i64().expect("a number"), request["params"].take())
    }

    /// Answers a request of the server, with a `result` or an `error`.
    pub(crate) async fn respond(&mut self, id: i64, answer: Value) {
        let mut message = json!({"id": id});
        message.as_object_mut().expect("an object").extend(answer.as_object().expect("an object").clone());
        self.send(&message).await;
    }

    /// The names of all notifications up to the first one of that name, those of the event queue left out.
    pub(crate) async fn names_until(&mut self, method: &str) -> Vec<String> {
        let mut names = Vec::new();
        loop {
            let message = match self.waiting.pop_front() {
                Some(message) => message,
                None => self.read().await.expect("the server is there"),
            };
            let name = message["method"].as_str().unwrap_or("answer").to_owned();
            if !name.starts_with("codex/event/") {
                names.push(name.clone());
            }
            if name == method {
                return names;
            }
        }
    }

    /// Says that the client has said everything.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Reads nothing any more, as a client whose output is closed.
    pub(crate) fn stop_reading(&mut self) {
        self.output = BufReader::new(duplex(1).0).lines();
    }

    /// Ends the connection, and fails if anything was not read.
    pub(crate) async fn end(mut self) {
        let left = self.close().await;
        assert!(left.is_empty(), "messages were left unread: {left:#?}");
    }

    /// Ends the connection, whatever was not read.
    pub(crate) async fn end_unread(mut self) {
        self.close().await;
    }

    /// Ends the connection, and returns what was not read.
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
