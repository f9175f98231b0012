//! Requests that are not part of MCP. 0.42 served the methods of the app-server on the same stream, so they are passed
//! to one.
//!
//! Both sides number their own requests from 0, so those of the app-server get ids of this session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use codex_lines::{Line, LineReader, Outbox, encoded};
use codex_wire::ids::RequestId;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

use super::session::{Session, lock};

/// The number of messages that may wait for the app-server.
const WAITING_MESSAGES: usize = 64;
/// The id of our `initialize`, whose answer the client does not see.
const INITIALIZE: &str = "codex-mcp-initialize";

/// The connection to the app-server.
#[derive(Debug)]
pub(super) struct Forwarding {
    /// `None` when the client has disconnected.
    messages: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
    /// The app-server's ids of its requests, by ours.
    asked: Mutex<HashMap<i64, Value>>,
}

impl Forwarding {
    /// Connects a session, whose messages go to this outbox, with the stream of an app-server.
    pub(super) fn connect(session: &Arc<Session>, outbox: &Arc<Outbox>, stream: DuplexStream) {
        let (input, output) = tokio::io::split(stream);
        let (messages, waiting) = mpsc::channel(WAITING_MESSAGES);
        let forwarding = Self { messages: Mutex::new(Some(messages)), asked: Mutex::default() };
        if session.forwarding.set(forwarding).is_ok() {
            drop(tokio::spawn(write(waiting, output)));
            drop(tokio::spawn(read(Arc::clone(session), Arc::clone(outbox), input)));
        }
    }

    /// Whether a method is one of the app-server of 2025: names of MCP methods have several parts.
    pub(super) fn takes(method: &str) -> bool {
        !method.contains('/') && !matches!(method, "initialize" | "ping")
    }

    /// Passes on a request of the client.
    pub(super) async fn request(&self, id: &RequestId, method: &str, params: Map<String, Value>) {
        self.send(&json!({"id": id, "method": method, "params": params})).await;
    }

    /// Initializes the app-server with the client's `initialize` of MCP.
    pub(super) async fn initialize(&self, client_info: Value) {
        let params = json!({"clientInfo": client_info, "capabilities": {"dialect": "v1"}});
        self.send(&json!({"id": INITIALIZE, "method": "initialize", "params": params})).await;
        self.send(&json!({"method": "initialized"})).await;
    }

    /// Passes on an answer of the client; false if it answers none of the app-server's requests.
    pub(super) async fn answered(&self, id: &RequestId, result: Option<&Value>) -> bool {
        let Some(number) = id.number() else { return false };
        let Some(asked) = lock(&self.asked).remove(&number) else { return false };
        let message = match result {
            Some(result) => json!({"id": asked, "result": result}),
            None => json!({"id": asked, "error": {"code": -32603, "message": "the client answered with an error"}}),
        };
        self.send(&message).await;
        true
    }

    /// Records that the client has disconnected.
    pub(super) fn close(&self) {
        lock(&self.messages).take();
    }

    async fn send(&self, message: &Value) {
        let messages = lock(&self.messages).clone();
        if let Some(messages) = messages {
            // An app-server that is gone answers nothing.
            let _: Result<(), _> = messages.send(encoded(message)).await;
        }
    }
}

async fn write(mut waiting: mpsc::Receiver<Vec<u8>>, mut output: WriteHalf<DuplexStream>) {
    while let Some(line) = waiting.recv().await {
        if output.write_all(&line).await.is_err() {
            return;
        }
    }
    // An in-memory stream fails only when the other side is gone.
    let _: std::io::Result<()> = output.shutdown().await;
}

async fn read(session: Arc<Session>, outbox: Arc<Outbox>, input: ReadHalf<DuplexStream>) {
    let mut lines = LineReader::new(input);
    while let Ok(Some(line)) = lines.next().await {
        let Line::Whole(line) = line else { continue };
        let Ok(Value::Object(mut message)) = serde_json::from_slice(&line) else { continue };
        if message.get("id").is_some_and(|id| id == INITIALIZE) {
            continue;
        }
        message.insert("jsonrpc".to_owned(), "2.0".into());
        if !message.contains_key("method") {
            outbox.send_answer(encoded(&message)).await;
            continue;
        }
        if let Some(id) = message.get_mut("id")
            && let Some(forwarding) = session.forwarding.get()
        {
            let number = session.next_request_id();
            let asked = std::mem::replace(id, number.into());
            lock(&forwarding.asked).insert(number, asked);
        }
        let line = encoded(&message);
        let room = outbox.room(line.len()).await;
        outbox.send_notification(line, room);
    }
}
