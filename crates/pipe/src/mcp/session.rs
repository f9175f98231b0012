//! One client: its requests, its running calls, and its answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use codex_lines::{Line, LineReader, MAX_LINE_BYTES, Outbox};
use codex_log::{Answer, QuestionId};
use codex_wire::ids::RequestId;
use serde_json::{Map, Value, json};
use tokio::io::AsyncRead;
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::asker::Asker;
use super::elicitation::{self, Elicits};
use super::exchange::{Era, Exchange};
use super::forwarding::Forwarding;
use super::message::{self, INVALID_PARAMS, INVALID_REQUEST, Incoming, Malformed, RpcError};
use super::parked::{ParkedCalls, Retry};
use super::sealed::{StateError, digest_of};
use super::stateless::{self, Envelope};
use super::tool::{self, ToolCall, ToolResult};
use super::{Server, call};

/// The versions of the protocol with a handshake, latest last.
pub(super) const VERSIONS: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The maximum number of calls that run at once.
const MOST_CALLS: usize = 64;

/// The parts that all clients of a process share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) server: Server,
    /// The calls that wait for an answer.
    pub(super) parked: ParkedCalls,
    /// Room for calls that run.
    running: Arc<Semaphore>,
}

impl Shared {
    pub(super) fn new(server: Server) -> Arc<Self> {
        Arc::new(Self { server, parked: ParkedCalls::default(), running: Arc::new(Semaphore::new(MOST_CALLS)) })
    }
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) shared: Arc<Shared>,
    /// Set by `initialize`.
    client: OnceLock<Client>,
    /// The running calls, each with its cancellation.
    calls: Mutex<HashMap<RequestId, oneshot::Sender<()>>>,
    /// The questions that the client has not answered, by the id of the request.
    asked: Mutex<HashMap<i64, Asked>>,
    next_request: AtomicI64,
    /// The connection to an app-server, if there is one.
    pub(super) forwarding: OnceLock<Forwarding>,
    /// Whether the client has closed its side, and can no longer answer.
    has_left: AtomicBool,
    /// Closes when the session and all its calls have ended.
    _alive: mpsc::Sender<()>,
}

/// The client, as described by `initialize`.
#[derive(Debug)]
struct Client {
    elicits: Elicits,
    /// The version that was agreed on.
    version: &'static str,
}

/// An answer that does not wait for a call.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) line: Vec<u8>,
    /// The code of the error that it is.
    pub(super) code: Option<i64>,
}

impl Reply {
    pub(super) fn refusal(id: Option<&RequestId>, error: RpcError) -> Self {
        Self { code: Some(error.code), line: message::refusal(id, error) }
    }
}

/// A question to the client.
#[derive(Debug)]
struct Asked {
    asker: Asker,
    question: QuestionId,
}

impl Session {
    /// A session, and a channel that closes when it and all its calls have ended.
    pub(super) fn new(shared: Arc<Shared>) -> (Arc<Self>, mpsc::Receiver<()>) {
        let (alive, all_ended) = mpsc::channel(1);
        let session = Self {
            shared,
            client: OnceLock::new(),
            calls: Mutex::default(),
            asked: Mutex::default(),
            next_request: AtomicI64::new(0),
            forwarding: OnceLock::new(),
            has_left: AtomicBool::new(false),
            _alive: alive,
        };
        (Arc::new(session), all_ended)
    }

    /// Serves the lines of an input until it ends.
    pub(super) async fn read<R: AsyncRead + Unpin>(
        self: &Arc<Self>,
        mut lines: LineReader<R>,
        outbox: &Arc<Outbox>,
    ) -> std::io::Result<()> {
        while let Some(line) = lines.next().await? {
            match line {
                Line::Whole(line) if line.trim_ascii().is_empty() => {}
                Line::Whole(line) => {
                    for message in message::read(&line) {
                        if let Some(reply) = self.take(message, outbox).await {
                            outbox.send_answer(reply.line).await;
                        }
                    }
                }
                Line::TooLong { bytes, .. } => {
                    let why = format!("a line of {bytes} bytes; {MAX_LINE_BYTES} are allowed");
                    outbox.send_answer(message::refusal(None, RpcError::new(INVALID_REQUEST, why))).await;
                }
            }
        }
        Ok(())
    }

    /// Takes one message, and returns the answer to it. The messages of a call, and later its answer, go to this outbox.
    pub(super) async fn take(
        self: &Arc<Self>,
        message: Result<Incoming, Malformed>,
        outbox: &Arc<Outbox>,
    ) -> Option<Reply> {
        let forwarding = self.forwarding.get();
        match message {
            Ok(Incoming::Request { id, method, params }) if forwarding.is_some() && Forwarding::takes(&method) => {
                if let Some(forwarding) = forwarding {
                    forwarding.request(&id, &method, params).await;
                }
                None
            }
            Ok(Incoming::Request { id, method, params }) => {
                self.introduce(&method, &params).await;
                match self.serve(&id, &method, params, outbox)? {
                    Ok(result) => Some(Reply { line: message::answer(&id, result), code: None }),
                    Err(error) => Some(Reply::refusal(Some(&id), error)),
                }
            }
            Ok(Incoming::Notification { method, params }) => {
                self.notice(&method, &params);
                None
            }
            Ok(Incoming::Response { id, result }) => {
                self.answered(&id, result.as_ref()).await;
                None
            }
            Err(Malformed { id, error }) => Some(Reply::refusal(id.as_ref(), error)),
        }
    }

    /// Also initializes the app-server for a new client.
    async fn introduce(&self, method: &str, params: &Map<String, Value>) {
        if method == "initialize"
            && self.client.get().is_none()
            && let Some(forwarding) = self.forwarding.get()
        {
            forwarding.initialize(params.get("clientInfo").cloned().unwrap_or_default()).await;
        }
    }

    /// Serves a request; `None` if its answer is sent later.
    fn serve(
        self: &Arc<Self>,
        id: &RequestId,
        method: &str,
        params: Map<String, Value>,
        outbox: &Arc<Outbox>,
    ) -> Option<Result<Value, RpcError>> {
        let Some(envelope) = Envelope::read(method, &params) else {
            return Some(match method {
                "initialize" => self.initialize(&params),
                "ping" => Ok(json!({})),
                "tools/list" => Ok(tool::list()),
                "tools/call" => return self.call(id, params, None, outbox).err().map(Err),
                other => Err(RpcError::method_not_found(other)),
            });
        };
        let envelope = match envelope {
            Ok(envelope) => envelope,
            Err(error) => return Some(Err(error)),
        };
        Some(match method {
            "server/discover" => Ok(stateless::discovery()),
            "tools/list" => Ok(stateless::tools()),
            "tools/call" => return self.call(id, params, Some(envelope), outbox).err().map(Err),
            other => Err(RpcError::method_not_found(other)),
        })
    }

    fn initialize(&self, params: &Map<String, Value>) -> Result<Value, RpcError> {
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let asked = params.get("protocolVersion").and_then(Value::as_str);
        let asked = asked.ok_or_else(|| RpcError::new(INVALID_PARAMS, "missing field `protocolVersion`"))?;
        let info = params.get("clientInfo").cloned().unwrap_or_default();
        let elicits = params.get("capabilities").map(Elicits::of).unwrap_or_default();
        let spoken = VERSIONS.iter().rev().find(|version| **version == asked).or(VERSIONS.last());
        let version = spoken.copied().unwrap_or_default();
        let again = |_| RpcError::new(INVALID_REQUEST, "initialize called more than once");
        self.client.set(Client { elicits, version }).map_err(again)?;
        let user_agent =
            format!("{} ({}; {})", self.shared.server.user_agent, text(&info, "name"), text(&info, "version"));
        let mut server_info = server_info();
        server_info["user_agent"] = user_agent.into();
        Ok(json!({
            "protocolVersion": version,
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": server_info,
        }))
    }

    /// Starts a call, or continues one that has asked for something. Its result, even that of a wrong call, is for the
    /// model, so the answer is an error only if the request itself is wrong.
    fn call(
        self: &Arc<Self>,
        id: &RequestId,
        mut params: Map<String, Value>,
        envelope: Option<Envelope>,
        outbox: &Arc<Outbox>,
    ) -> Result<(), RpcError> {
        let Some(Value::String(name)) = params.remove("name") else {
            return Err(RpcError::new(INVALID_PARAMS, "missing field `name`"));
        };
        let progress = params.get("_meta").and_then(|meta| meta.get("progressToken")).cloned();
        let arguments = params.remove("arguments").filter(|arguments| !arguments.is_null());
        let digest = digest_of(&name, arguments.as_ref());
        let era = match envelope {
            Some(envelope) => Era::Stateless { envelope, call: digest.clone() },
            None => Era::Handshake,
        };
        let running = Arc::clone(&self.shared.running).try_acquire_owned().ok();
        let has_room = running.is_some();
        let cancelled = self.begin_call(id)?;
        let exchange = Exchange::new(Arc::clone(self), Arc::clone(outbox), (id.clone(), progress), era, running);
        if envelope.is_some()
            && let Some(state) = params.get("requestState").filter(|state| !state.is_null())
        {
            let responses = params.get("inputResponses").and_then(Value::as_object).cloned().unwrap_or_default();
            let retry = Retry { exchange, cancelled, responses };
            return self.retry(state, &digest, retry).map_err(|why| RpcError::new(INVALID_PARAMS, why.to_string()));
        }
        let call = match ToolCall::read(&name, arguments) {
            Ok(_) if !has_room => Err(format!("{MOST_CALLS} calls are running; wait for one to end")),
            other => other,
        };
        drop(tokio::spawn(async move {
            match call {
                Ok(call) => call::run(call, exchange, cancelled).await,
                Err(why) => exchange.finish(&ToolResult::error(None, why)).await,
            }
        }));
        Ok(())
    }

    /// Continues the call that a state is for.
    fn retry(&self, state: &Value, digest: &str, retry: Retry) -> Result<(), StateError> {
        let state = state.as_str().ok_or(StateError::Foreign)?;
        let waiting = self.shared.parked.take(state, digest)?;
        waiting.send(retry).map_err(|_| StateError::Expired)
    }

    fn begin_call(&self, id: &RequestId) -> Result<oneshot::Receiver<()>, RpcError> {
        let (cancel, cancelled) = oneshot::channel();
        let mut calls = lock(&self.calls);
        if calls.contains_key(id) {
            return Err(RpcError::new(INVALID_REQUEST, format!("a call with the id {id} is running")));
        }
        calls.insert(id.clone(), cancel);
        Ok(cancelled)
    }

    /// Records that a call has ended.
    pub(super) fn end_call(&self, id: &RequestId) {
        lock(&self.calls).remove(id);
    }

    fn notice(&self, method: &str, params: &Map<String, Value>) {
        if method == "notifications/cancelled"
            && let Some(id) = params.get("requestId")
            && let Ok(id) = serde_json::from_value::<RequestId>(id.clone())
            && let Some(cancel) = lock(&self.calls).remove(&id)
        {
            // The call may have ended at the same moment.
            let _: Result<(), ()> = cancel.send(());
        }
    }

    /// The kinds of questions that the client can be asked now.
    pub(super) fn elicits(&self) -> Elicits {
        match self.client.get() {
            Some(client) if !self.has_left.load(Ordering::Acquire) => client.elicits,
            _ => Elicits::default(),
        }
    }

    /// The id of the next request to the client.
    pub(super) fn next_request_id(&self) -> i64 {
        self.next_request.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers a question to the client, and returns the id of its request; `None` if another call of the same thread
    /// has asked it.
    pub(super) fn ask(&self, origin: &Asker, question: &QuestionId) -> Option<i64> {
        let mut asked = lock(&self.asked);
        if asked.values().any(|asked| asked.asker.thread() == origin.thread() && asked.question == *question) {
            return None;
        }
        let id = self.next_request_id();
        asked.insert(id, Asked { asker: origin.clone(), question: question.clone() });
        Some(id)
    }

    /// Removes a question, and returns whether the client has not answered it.
    pub(super) fn withdraw(&self, id: i64) -> bool {
        lock(&self.asked).remove(&id).is_some()
    }

    /// Passes on an answer of the client.
    async fn answered(&self, id: &RequestId, result: Option<&Value>) {
        if let Some(forwarding) = self.forwarding.get()
            && forwarding.answered(id, result).await
        {
            return;
        }
        let RequestId::Integer(id) = id else { return };
        let Some(asked) = lock(&self.asked).remove(id) else { return };
        reply(asked, elicitation::read_answer(result));
    }

    /// The version that was agreed on; `None` before the handshake.
    pub(super) fn version(&self) -> Option<&'static str> {
        self.client.get().map(|client| client.version)
    }

    /// Whether no call is running.
    pub(super) fn is_idle(&self) -> bool {
        lock(&self.calls).is_empty()
    }

    /// Cancels all calls, because the client is no longer there to read their answers.
    pub(super) fn cancel_all(&self) {
        for (_, cancel) in lock(&self.calls).drain() {
            // The call may have ended in the same moment.
            let _: Result<(), ()> = cancel.send(());
        }
    }

    /// Records that the client has closed its side: all its questions are answered with a no.
    pub(super) fn leave(&self) {
        self.has_left.store(true, Ordering::Release);
        if let Some(forwarding) = self.forwarding.get() {
            forwarding.close();
        }
        for (_, asked) in lock(&self.asked).drain() {
            reply(asked, Answer::Declined);
        }
    }
}

/// The name and version of this server.
pub(super) fn server_info() -> Value {
    json!({"name": "codex-mcp-server", "title": "Codex", "version": env!("CARGO_PKG_VERSION")})
}

/// Answers a question in the background, so that a busy thread delays no other message.
fn reply(asked: Asked, answer: Answer) {
    drop(tokio::spawn(async move { asked.asker.answer(asked.question, answer).await }));
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one insertion or removal, so a panic elsewhere cannot have left a partial one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
