//! A client of the MCP server over HTTP, without sockets.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use codex_pipe::mcp::{Body, HttpServer};
use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use serde_json::{Value, json};

use crate::mcp_client::Place;

/// The time to wait for an event before the test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server and the headers of a client.
pub(crate) struct HttpClient {
    pub(crate) place: Place,
    pub(crate) server: HttpServer,
    pub(crate) headers: Vec<(String, String)>,
}

impl HttpClient {
    /// A client that has sent nothing.
    pub(crate) fn connect(config: &str, script: &Value) -> Self {
        let place = Place::new(config, script);
        let server = HttpServer::new(place.server());
        Self { place, server, headers: Vec::new() }
    }

    /// A client with a session that can be asked.
    pub(crate) async fn start(config: &str, script: &Value) -> Self {
        let mut client = Self::connect(config, script);
        client.initialize().await;
        client
    }

    /// Opens a session, which later requests name.
    pub(crate) async fn initialize(&mut self) {
        let id = self.open_session().await.expect("there is room");
        self.headers =
            vec![("mcp-session-id".to_owned(), id), ("mcp-protocol-version".to_owned(), "2025-11-25".to_owned())];
        let told = self.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        assert_eq!(told.status(), StatusCode::ACCEPTED);
    }

    /// Opens a session and returns its id.
    pub(crate) async fn open_session(&self) -> Result<String, StatusCode> {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let opened = self.request(Method::POST, &[], &request(0, "initialize", &params).to_string()).await;
        match opened.headers().get("mcp-session-id") {
            Some(id) => Ok(id.to_str().expect("it is text").to_owned()),
            None => Err(opened.status()),
        }
    }

    /// Sends a request with these headers in addition to the usual ones, which they replace.
    pub(crate) async fn request(&self, method: Method, headers: &[(&str, &str)], body: &str) -> Response<Body> {
        let mut request = Request::new(Bytes::copy_from_slice(body.as_bytes()));
        *request.method_mut() = method;
        *request.uri_mut() = "http://127.0.0.1/mcp".parse().expect("it is an address");
        let usual = [("accept", "application/json, text/event-stream"), ("content-type", "application/json")];
        let own = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in usual.into_iter().chain(own).chain(headers.iter().copied()) {
            let name: http::HeaderName = name.parse().expect("it is a name");
            request.headers_mut().insert(name, value.parse().expect("it is a value"));
        }
        self.server.answer(request).await
    }

    pub(crate) async fn post(&self, message: &Value) -> Response<Body> {
        self.request(Method::POST, &[], &message.to_string()).await
    }

    /// Sends a request and returns the status and the message of the answer.
    pub(crate) async fn ask(&self, method: &str, params: &Value) -> (u16, Value) {
        let answer = self.post(&request(1, method, params)).await;
        (answer.status().as_u16(), message(answer).await)
    }

    /// Calls a tool, and returns the events.
    pub(crate) async fn call(&self, id: i64, tool: &str, arguments: &Value) -> Events {
        let params = json!({"name": tool, "arguments": arguments});
        Events::of(self.post(&request(id, "tools/call", &params)).await)
    }

    /// Ends the server.
    pub(crate) async fn end(self) -> Place {
        self.server.close().await;
        assert!(self.place.threads.loaded().is_empty(), "threads are still loaded");
        self.place
    }
}

pub(crate) fn request(id: i64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

async fn frame(body: &mut Body) -> Option<Bytes> {
    let next = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
    let frame = tokio::time::timeout(PATIENCE, next).await.expect("something comes in time")?;
    Some(frame.expect("a body does not fail").into_data().expect("it is data"))
}

/// The message of an answer that is no stream.
pub(crate) async fn message(answer: Response<Body>) -> Value {
    assert_eq!(answer.headers()["content-type"], "application/json");
    let mut body = answer.into_body();
    let whole = frame(&mut body).await.expect("there is a message");
    assert!(frame(&mut body).await.is_none(), "there is one message");
    serde_json::from_slice(&whole).expect("it is JSON")
}

/// A stream of events.
pub(crate) struct Events {
    body: Body,
    /// The id of the latest event.
    pub(crate) last_id: String,
}

impl Events {
    pub(crate) fn of(answer: Response<Body>) -> Self {
        assert_eq!(
            (answer.status(), &answer.headers()["content-type"]),
            (StatusCode::OK, &http::HeaderValue::from_static("text/event-stream"))
        );
        Self { body: answer.into_body(), last_id: String::new() }
    }

    /// The text of the next frame.
    pub(crate) async fn text(&mut self) -> Option<String> {
        let frame = frame(&mut self.body).await?;
        Some(String::from_utf8(frame.to_vec()).expect("it is text"))
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let text = self.text().await?;
            let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            if let Some(id) = field("id:") {
                id.clone_into(&mut self.last_id);
            }
            if let Some(data) = field("data:").filter(|data| !data.is_empty()) {
                return Some(serde_json::from_str(data).expect("an event has a message"));
            }
        }
    }

    /// Waits for a message.
    pub(crate) async fn wait(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().await.expect("the stream has more");
            if is_wanted(&message) {
                return message;
            }
        }
    }

    /// Waits for an event of a kind.
    pub(crate) async fn event(&mut self, kind: &str) -> Value {
        self.wait(|message| message["params"]["msg"]["type"] == kind).await
    }

    /// The answer, after which the stream ends.
    pub(crate) async fn answer(&mut self) -> Value {
        let answer = self.wait(|message| message.get("method").is_none()).await;
        assert!(self.next().await.is_none(), "nothing follows the answer");
        answer
    }
}
