//! The same server at an address.
//!
//! `/` takes messages, and its stream of own messages breaks off after the first event. `/sse` is the transport of
//! 2024-11-05, `/stranger` tells an address of another origin there, and `/moved` redirects to another origin, which must
//! never be asked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

use super::Server;
use crate::http::{RawRequest, Wire};

/// The state that all connections share.
struct Shared {
    server: Mutex<Server>,
    /// Messages for streams, in order.
    pushed: watch::Sender<Vec<Value>>,
    /// The rest of an answer that broke off, for those who ask for it.
    rest: Mutex<Vec<Value>>,
    /// The ids of events after which clients have asked for more.
    resumed: Mutex<Vec<String>>,
}

/// A server at an address, which ends when this is dropped.
pub struct HttpServer {
    /// The address without a path.
    pub url: String,
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

impl HttpServer {
    /// The ids of events after which clients have asked for more.
    #[must_use]
    pub fn resumed(&self) -> Vec<String> {
        lock(&self.shared.resumed).clone()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves to clients with the token `secret`, as the mode says.
///
/// # Panics
/// When the machine has no loopback interface.
pub async fn serve_http(mode: &str) -> HttpServer {
    let listening = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listening.unwrap_or_else(|error| panic!("no server: {error}"));
    let address = listener.local_addr().unwrap_or_else(|error| panic!("no server: {error}"));
    let shared = Arc::new(Shared {
        server: Mutex::new(Server::new(mode.to_owned())),
        pushed: watch::Sender::default(),
        rest: Mutex::default(),
        resumed: Mutex::default(),
    });
    let serving = Arc::clone(&shared);
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let shared = Arc::clone(&serving);
            tokio::spawn(async move { while_connected(&shared, Wire::new(stream)).await });
        }
    });
    HttpServer { url: format!("http://{address}"), shared, task }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn while_connected(shared: &Shared, mut wire: Wire) -> std::io::Result<()> {
    loop {
        let request = wire.read_request().await?;
        let target = request.target.clone();
        let (status, kind, body) = match (request.method.as_str(), target.as_str()) {
            (_, "/moved") => (307, "text/plain", String::new()),
            _ if header(&request, "authorization") != Some("Bearer secret") => {
                (401, "text/plain", "who are you?".to_owned())
            }
            ("GET", _) => return stream(shared, wire, &request).await,
            ("POST", "/sse" | "/stranger") => (405, "text/plain", "use GET".to_owned()),
            ("POST", "/messages") => {
                let answers = answers(shared, &request.body);
                shared.pushed.send_modify(|pushed| pushed.extend(answers));
                (202, "text/plain", String::new())
            }
            _ => posted(shared, &request),
        };
        let pairs = [
            ("content-type", kind),
            ("content-length", &body.len().to_string()),
            ("mcp-session-id", "session-1"),
            ("location", "http://127.0.0.1:1/elsewhere"),
        ];
        wire.write_head(status, &pairs.map(|(name, value)| (name.to_owned(), value.to_owned()))).await?;
        wire.write(body.as_bytes()).await?;
    }
}

fn header<'a>(request: &'a RawRequest, name: &str) -> Option<&'a str> {
    request.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn answers(shared: &Shared, body: &[u8]) -> Vec<Value> {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let mut server = lock(&shared.server);
    server.receive(&message);
    std::mem::take(&mut server.out)
}

/// The answer to a message of streamable HTTP.
fn posted(shared: &Shared, request: &RawRequest) -> (u16, &'static str, String) {
    let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let is_stateless = lock(&shared.server).mode == "stateless";
    let is_greeting = message["method"] == "initialize" || is_stateless;
    if !is_greeting && header(request, "mcp-session-id") != Some("session-1") {
        return (404, "text/plain", "no session".to_owned());
    }
    if !is_greeting && header(request, "mcp-protocol-version") != Some("2025-11-25") {
        return (400, "text/plain", "no version".to_owned());
    }
    let mut answers = answers(shared, &request.body);
    let is_called = |tool: &str| message["method"] == "tools/call" && message["params"]["name"] == tool;
    if is_called("grow") && !is_stateless {
        // The change is told on the other stream.
        shared.pushed.send_modify(|pushed| pushed.push(answers.remove(0)));
    }
    if is_called("cut") {
        // The answer comes to those who ask for what follows the first event.
        lock(&shared.rest).append(&mut answers);
        return (200, "text/event-stream", "id: cut-1\nretry: 100\ndata:\n\n".to_owned());
    }
    match &answers[..] {
        [] => (202, "text/plain", String::new()),
        [answer] => (200, "application/json", answer.to_string()),
        many => (200, "text/event-stream", many.iter().map(event).collect()),
    }
}

fn event(message: &Value) -> String {
    format!("data: {message}\n\n")
}

/// Streams all messages that are pushed. The first stream of streamable HTTP ends after an event without a message.
async fn stream(shared: &Shared, mut wire: Wire, request: &RawRequest) -> std::io::Result<()> {
    let kind =
        [("content-type".to_owned(), "text/event-stream".to_owned()), ("connection".to_owned(), "close".to_owned())];
    wire.write_head(200, &kind).await?;
    match (request.target.as_str(), header(request, "last-event-id")) {
        ("/sse", _) => wire.write(b"event: endpoint\ndata: /messages\n\n").await?,
        ("/stranger", _) => wire.write(b"event: endpoint\ndata: http://127.0.0.1:1/messages\n\n").await?,
        (_, None) => return wire.write(b"id: own-1\nretry: 100\ndata:\n\n").await,
        (_, Some(id)) => lock(&shared.resumed).push(id.to_owned()),
    }
    if header(request, "last-event-id") == Some("cut-1") {
        let rest: String = lock(&shared.rest).drain(..).map(|message| event(&message)).collect();
        return wire.write(rest.as_bytes()).await;
    }
    let mut pushed = shared.pushed.subscribe();
    let mut sent = 0;
    loop {
        let new: String = pushed.borrow_and_update()[sent..].iter().map(event).collect();
        sent = pushed.borrow().len();
        wire.write(new.as_bytes()).await?;
        tokio::select! {
            gone = wire.keep_silent(None) => return gone,
            changed = pushed.changed() => if changed.is_err() { return Ok(()) },
        }
    }
}
