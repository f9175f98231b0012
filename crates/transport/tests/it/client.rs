//! A client of the app-server over any transport.
//!
//! It is for one connection; a test that makes one vanish drops it and creates another.

use std::collections::VecDeque;
use std::time::Duration;

use codex_transport::{Address, DialError, Reader, Token, Writer, dial};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};

use crate::world::World;

/// The time to wait for a message before the test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// The time limit for finding a free place. Holding a place for longer is a bug.
const SOON: Duration = Duration::from_secs(10);

pub(crate) struct Client {
    input: Lines<BufReader<Reader>>,
    output: Writer,
    next_id: i64,
    /// Messages that arrived while waiting for something else.
    waiting: VecDeque<Value>,
}

impl Client {
    /// Connects and initializes.
    pub(crate) async fn connect(address: &Address, token: &Token) -> Self {
        let (input, output) = dial(address, Some(token)).await.expect("the server is there");
        Self::over(input, output).await
    }

    /// Connects as soon as there is room. A disconnected client frees its room soon, and unauthenticated ones take none
    /// at all.
    pub(crate) async fn come_in(address: &Address) -> Self {
        let trying = async {
            loop {
                if let Some(client) = Self::try_to_come_in(address).await {
                    return client;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, trying).await.expect("there is room soon")
    }

    /// `None` if there is no room. Over a Unix socket that is reported in place of the first response.
    async fn try_to_come_in(address: &Address) -> Option<Self> {
        let (input, output) = match dial(address, Some(&World::token())).await {
            Ok(connection) => connection,
            Err(DialError::Refused { .. }) => return None,
            Err(error) => panic!("{error:?}"),
        };
        let mut client = Self { input: BufReader::new(input).lines(), output, next_id: 1, waiting: VecDeque::new() };
        let params = json!({"clientInfo": {"name": "test", "version": "1"}});
        let hello = format!("{}\n", json!({"id": 1, "method": "initialize", "params": params}));
        // It may have been refused already.
        let _: std::io::Result<()> = client.output.write_all(hello.as_bytes()).await;
        let _: std::io::Result<()> = client.output.flush().await;
        client.read().await.filter(|answer| answer["id"] == 1).map(|_| client)
    }

    /// A client within the same program.
    pub(crate) async fn within(stream: DuplexStream) -> Self {
        let (input, output) = tokio::io::split(stream);
        Self::over(Box::new(input), Box::new(output)).await
    }

    /// A client over a stream of lines.
    pub(crate) async fn over(input: Reader, output: Writer) -> Self {
        let mut client = Self { input: BufReader::new(input).lines(), output, next_id: 0, waiting: VecDeque::new() };
        client.ok("initialize", json!({"clientInfo": {"name": "test", "version": "1"}})).await;
        client.send(&json!({"method": "initialized"})).await;
        client
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.expect("the server reads");
        self.output.flush().await.expect("the server reads");
    }

    /// The next message; `None` when the server has disconnected.
    pub(crate) async fn read(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(PATIENCE, self.input.next_line()).await.expect("a message comes in time");
        line.ok().flatten().map(|line| serde_json::from_str(&line).expect("every line is JSON"))
    }

    /// The next message of any kind.
    pub(crate) async fn next(&mut self) -> Value {
        self.next_of(|_| true).await
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

    /// Sends a request without waiting for its response.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"id": id, "method": method, "params": params})).await;
        id
    }

    /// Sends a request and waits for its response.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.ask(method, params).await;
        let mut answer = self.next_of(|message| message["id"] == id && message.get("method").is_none()).await;
        match answer.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(answer["result"].take()),
        }
    }

    /// Sends a request that must succeed.
    pub(crate) async fn ok(&mut self, method: &str, params: Value) -> Value {
        self.call(method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The next notification with this name.
    pub(crate) async fn notification(&mut self, method: &str) -> Value {
        self.next_of(|message| message["method"] == method && message.get("id").is_none()).await["params"].take()
    }

    /// The next notification with this name about a thread.
    pub(crate) async fn notification_of(&mut self, thread: &str, method: &str) -> Value {
        let is_wanted = |message: &Value| message["method"] == method && message["params"]["threadId"] == thread;
        self.next_of(is_wanted).await["params"].take()
    }

    /// The next server request with this name: its id and its parameters.
    pub(crate) async fn request(&mut self, method: &str) -> (i64, Value) {
        let mut request = self.next_of(|message| message["method"] == method && message.get("id").is_some()).await;
        (request["id"].as_i64().expect("a number"), request["params"].take())
    }

    /// Starts a thread and returns its id.
    pub(crate) async fn thread(&mut self) -> String {
        let started = self.ok("thread/start", json!({})).await;
        started["thread"]["id"].as_str().expect("a name").to_owned()
    }

    /// Sends input, and returns the id of the new turn.
    pub(crate) async fn say(&mut self, thread: &str, text: &str) -> String {
        let input = json!([{"type": "text", "text": text}]);
        let answer = self.ok("turn/start", json!({"threadId": thread, "input": input})).await;
        answer["turn"]["id"].as_str().expect("a name").to_owned()
    }

    /// Resumes a thread and returns the response.
    pub(crate) async fn resume(&mut self, thread: &str) -> Value {
        self.ok("thread/resume", json!({"threadId": thread})).await["thread"].take()
    }

    /// Everything up to the end of the connection.
    pub(crate) async fn rest(mut self) -> Vec<Value> {
        let mut rest: Vec<Value> = self.waiting.drain(..).collect();
        while let Some(message) = self.read().await {
            rest.push(message);
        }
        rest
    }
}
