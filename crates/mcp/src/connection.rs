//! A connection to a server: requests and their answers, and the requests and notifications of the server.
//!
//! Invariants: an answer reaches the request that it names and no other; whatever the server sends, only a few messages
//! are kept for each open request.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use codex_wire::ids::RequestId;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::in_flight::InFlight;
use crate::rpc::{self, INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, REJECTED, RpcError};

/// The maximum number of messages about one request that wait for its reader.
const TOLD: usize = 16;
/// The maximum length of the text of one progress message.
const MOST_PROGRESS: usize = 4096;
/// The maximum number of notices that wait for the task of the server.
const NOTICES: usize = 4;

/// The reason why a request has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("the server has ended{0}")]
    Ended(String),
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    #[error("the answer has {bytes} bytes, {limit} are allowed")]
    TooLong { bytes: u64, limit: usize },
    #[error("the answer would take more than {limit} bytes of memory")]
    TooLarge { limit: usize },
    #[error("the server does not read its input")]
    NotReading,
    #[error("{0}")]
    Transport(String),
    #[error(transparent)]
    Refused(#[from] RpcError),
}

/// A message of the server about an open request.
#[derive(Debug)]
pub(crate) enum Told {
    /// Progress.
    Progress(String),
    /// A question to the user or to the model.
    Asked(ServerQuestion),
}

/// The receiver of a question of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    User,
    Model,
}

/// A question of the server.
#[derive(Debug)]
pub(crate) struct ServerQuestion {
    pub(crate) id: Value,
    pub(crate) asks: Asks,
    pub(crate) params: Value,
}

impl ServerQuestion {
    /// The server's id of it, as clients see it.
    pub(crate) fn request_id(&self) -> RequestId {
        match &self.id {
            Value::Number(number) if number.as_i64().is_some() => RequestId::Integer(number.as_i64().unwrap_or(0)),
            Value::String(text) => RequestId::String(text.clone()),
            other => RequestId::String(other.to_string()),
        }
    }
}

/// A change that the server reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    ToolsChanged,
}

/// The transport to the server.
pub(crate) trait Outgoing: Send + Sync {
    /// Sends a message; false if there is no room now.
    fn send(&self, message: Value) -> bool;
}

struct Open {
    answer: oneshot::Sender<Result<Value, RequestError>>,
    told: mpsc::Sender<Told>,
}

pub(crate) struct Shared {
    outgoing: Box<dyn Outgoing>,
    open: Mutex<BTreeMap<u64, Open>>,
    next_id: AtomicU64,
    notices: mpsc::Sender<Notice>,
    /// The reason why the connection has ended.
    end: watch::Sender<Option<String>>,
    /// Added to the parameters of every request: the `_meta` of servers without a handshake.
    meta: Mutex<Option<Value>>,
    /// The folder that a server is told of when it asks; none for one that runs elsewhere.
    root: Option<Value>,
    /// Whether the server may ask the model.
    samples: AtomicBool,
}

/// A connection to a server.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Shared>);

impl Connection {
    /// A connection, and the changes that the server tells of.
    pub(crate) fn new(outgoing: Box<dyn Outgoing>, root: Option<Value>) -> (Self, mpsc::Receiver<Notice>) {
        let (notices, changes) = mpsc::channel(NOTICES);
        let shared = Shared {
            outgoing,
            open: Mutex::default(),
            next_id: AtomicU64::new(1),
            notices,
            end: watch::Sender::new(None),
            meta: Mutex::default(),
            root,
            samples: AtomicBool::new(false),
        };
        (Self(Arc::new(shared)), changes)
    }

    /// A reference that does not keep the connection open.
    pub(crate) fn downgrade(&self) -> Weak<Shared> {
        Arc::downgrade(&self.0)
    }

    pub(crate) fn upgrade(shared: &Weak<Shared>) -> Option<Self> {
        shared.upgrade().map(Self)
    }

    /// Adds this to the `_meta` of every request from here on.
    pub(crate) fn set_meta(&self, meta: Option<Value>) {
        *lock(&self.0.meta) = meta;
    }

    /// From here on the server may ask the model, and is told so.
    pub(crate) fn allow_sampling(&self) {
        self.0.samples.store(true, Ordering::Relaxed);
    }

    pub(crate) fn allows_sampling(&self) -> bool {
        self.0.samples.load(Ordering::Relaxed)
    }

    /// Sends a request and waits for its result.
    pub(crate) async fn request(&self, method: &str, params: Value, within: Duration) -> Result<Value, RequestError> {
        let mut in_flight = self.begin(method, params)?;
        timeout(within, in_flight.answer()).await.unwrap_or(Err(RequestError::Timeout(within)))
    }

    /// Sends a request. Its result and the messages about it are read from the returned handle; dropping that before
    /// the result cancels the request.
    pub(crate) fn begin(&self, method: &str, params: Value) -> Result<InFlight, RequestError> {
        if let Some(why) = self.0.end.borrow().clone() {
            return Err(RequestError::Ended(why));
        }
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let (told, messages) = mpsc::channel(TOLD);
        lock(&self.0.open).insert(id, Open { answer, told });
        let in_flight = InFlight::new(self.clone(), id, answered, messages);
        if !self.0.outgoing.send(rpc::request(id, method, &self.with_meta(params, id))) {
            return Err(RequestError::NotReading);
        }
        Ok(in_flight)
    }

    pub(crate) fn notify(&self, method: &str, params: &Value) {
        // A server that does not read notifications will not answer requests either.
        let _: bool = self.0.outgoing.send(rpc::notification(method, params));
    }

    /// Answers a question of the server.
    pub(crate) fn answer(&self, question: &ServerQuestion, result: Value) {
        let _: bool = self.0.outgoing.send(rpc::answer(&question.id, result));
    }

    /// Declines a question of the server.
    pub(crate) fn decline(&self, question: &ServerQuestion) {
        let reply = match question.asks {
            Asks::User => rpc::answer(&question.id, json!({"action": "decline"})),
            Asks::Model => rpc::refusal(&question.id, REJECTED, "the user rejected the request to the model"),
        };
        let _: bool = self.0.outgoing.send(reply);
    }

    /// Waits for the end of the connection.
    pub(crate) async fn ended(&self) -> String {
        let mut end = self.0.end.subscribe();
        let ended = end.wait_for(Option::is_some).await;
        ended.ok().and_then(|why| why.clone()).unwrap_or_default()
    }

    /// Ends the connection: all open requests fail.
    pub(crate) fn end(&self, why: &str) {
        self.0.end.send_if_modified(|end| end.is_none().then(|| *end = Some(why.to_owned())).is_some());
        for open in std::mem::take(&mut *lock(&self.0.open)).into_values() {
            let _: Result<(), _> = open.answer.send(Err(RequestError::Ended(why.to_owned())));
        }
    }

    /// Removes a request whose reader is gone, and notifies the server.
    pub(crate) fn cancel(&self, id: u64) {
        if lock(&self.0.open).remove(&id).is_some() {
            self.notify("notifications/cancelled", &json!({"requestId": id, "reason": "it is not needed any more"}));
        }
    }

    /// Handles a message of the server.
    pub(crate) fn receive(&self, message: Incoming) {
        match message {
            Incoming::Answer { id, result } => self.settle(id, result),
            Incoming::Notification { method, params } => self.notified(&method, &params),
            Incoming::Request { id, method, params } => self.requested(id, &method, params),
            Incoming::TooLarge { id } => {
                let why = "the parameters take too much memory";
                let _: bool = self.0.outgoing.send(rpc::refusal(&id, INVALID_REQUEST, why));
            }
        }
    }

    /// Whether a request has no answer yet.
    pub(crate) fn is_open(&self, id: u64) -> bool {
        lock(&self.0.open).contains_key(&id)
    }

    /// Ends a request. An answer to a request that is not open, or not ours, changes nothing.
    pub(crate) fn settle(&self, id: u64, result: Result<Value, RequestError>) {
        let open = lock(&self.0.open).remove(&id);
        if let Some(open) = open {
            let _: Result<(), _> = open.answer.send(result);
        }
    }

    fn notified(&self, method: &str, params: &Value) {
        match method {
            "notifications/progress" => {
                let token = params.get("progressToken").and_then(Value::as_u64);
                let open = lock(&self.0.open);
                if let Some(open) = token.and_then(|token| open.get(&token)) {
                    // Unread progress is as good as this one.
                    let _: Result<(), _> = open.told.try_send(Told::Progress(progress_text(params)));
                }
            }
            "notifications/tools/list_changed" => self.tools_changed(),
            _ => {}
        }
    }

    /// Has the list of tools asked for again.
    pub(crate) fn tools_changed(&self) {
        // If there is no room, the list will be asked for anyway.
        let _: Result<(), _> = self.0.notices.try_send(Notice::ToolsChanged);
    }

    fn requested(&self, id: Value, method: &str, params: Value) {
        let reply = match method {
            "ping" => rpc::answer(&id, json!({})),
            "roots/list" => rpc::answer(&id, json!({"roots": self.0.root.as_slice()})),
            "elicitation/create" => return self.ask(ServerQuestion { id, asks: Asks::User, params }),
            "sampling/createMessage" if self.allows_sampling() => {
                return self.ask(ServerQuestion { id, asks: Asks::Model, params });
            }
            "sampling/createMessage" => rpc::refusal(&id, METHOD_NOT_FOUND, "sampling is not supported"),
            _ => rpc::refusal(&id, METHOD_NOT_FOUND, "method not found"),
        };
        let _: bool = self.0.outgoing.send(reply);
    }

    /// Passes a question to the newest call. The protocol does not say which call it belongs to.
    fn ask(&self, question: ServerQuestion) {
        let newest = lock(&self.0.open).last_key_value().map(|(_, open)| open.told.clone());
        let declined = match newest {
            Some(told) => match told.try_send(Told::Asked(question)) {
                Ok(()) => return,
                Err(mpsc::error::TrySendError::Full(Told::Asked(question))) => question,
                Err(mpsc::error::TrySendError::Closed(Told::Asked(question))) => question,
                Err(_) => return,
            },
            None => question,
        };
        self.decline(&declined);
    }

    fn with_meta(&self, mut params: Value, id: u64) -> Value {
        if !params.is_object() {
            params = json!({});
        }
        let mut meta = lock(&self.0.meta).clone().unwrap_or_else(|| json!({}));
        meta["progressToken"] = id.into();
        params["_meta"] = meta;
        params
    }
}

/// Progress as one line.
fn progress_text(params: &Value) -> String {
    let number = |key: &str| params.get(key).and_then(Value::as_f64);
    let message = params.get("message").and_then(Value::as_str);
    let message = message.map(|text| rpc::shortened(text, MOST_PROGRESS).to_owned());
    message.unwrap_or_else(|| match (number("progress"), number("total")) {
        (Some(progress), Some(total)) => format!("{progress} of {total}"),
        (Some(progress), None) => progress.to_string(),
        (None, _) => String::new(),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one insertion or removal, so a panic elsewhere cannot have left a partial one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_flight::Step;

    struct Sent(mpsc::UnboundedSender<Value>);

    impl Outgoing for Sent {
        fn send(&self, message: Value) -> bool {
            self.0.send(message).is_ok()
        }
    }

    fn connect() -> (Connection, mpsc::UnboundedReceiver<Value>, mpsc::Receiver<Notice>) {
        let (sender, sent) = mpsc::unbounded_channel();
        let (connection, notices) = Connection::new(Box::new(Sent(sender)), Some(json!({"uri": "file:///w"})));
        (connection, sent, notices)
    }

    fn receive(connection: &Connection, message: &Value) {
        connection.receive(rpc::read(message.to_string().as_bytes()).unwrap());
    }

    #[tokio::test]
    async fn an_answer_reaches_its_request_and_no_other() {
        let (connection, mut sent, _notices) = connect();
        let mut first = connection.begin("tools/call", json!({"name": "a"})).unwrap();
        let mut second = connection.begin("tools/call", json!({"name": "b"})).unwrap();
        assert_eq!(
            sent.recv().await.unwrap(),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                   "params": {"name": "a", "_meta": {"progressToken": 1}}})
        );
        receive(&connection, &json!({"id": 99, "result": {}}));
        receive(&connection, &json!({"id": 2, "result": "b"}));
        receive(&connection, &json!({"id": 2, "result": "again"}));
        receive(&connection, &json!({"id": 1, "error": {"code": -5, "message": "no"}}));
        assert_eq!(second.answer().await, Ok(json!("b")));
        let refused = RpcError { code: -5, message: "no".to_owned() };
        assert_eq!(first.answer().await, Err(RequestError::Refused(refused)));
    }

    #[tokio::test]
    async fn a_request_that_is_dropped_is_cancelled_once() {
        let (connection, mut sent, _notices) = connect();
        drop(connection.begin("tools/call", json!({})).unwrap());
        sent.recv().await.unwrap();
        let cancelled = sent.recv().await.unwrap();
        assert_eq!(
            (&cancelled["method"], &cancelled["params"]["requestId"]),
            (&json!("notifications/cancelled"), &json!(1))
        );
        let mut answered = connection.begin("tools/call", json!({})).unwrap();
        receive(&connection, &json!({"id": 2, "result": {}}));
        answered.answer().await.unwrap();
        drop(answered);
        sent.recv().await.unwrap();
        drop(connection);
        assert_eq!(sent.recv().await, None, "an answered request is not cancelled");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_has_a_deadline() {
        let (connection, ..) = connect();
        let within = Duration::from_secs(3);
        // The receiver is gone.
        let (sender, _sent) = mpsc::unbounded_channel();
        let (patient, _notices) = Connection::new(Box::new(Sent(sender)), None);
        assert_eq!(patient.request("x", json!({}), within).await, Err(RequestError::Timeout(within)));
        assert_eq!(connection.request("x", json!({}), within).await, Err(RequestError::NotReading));
    }

    #[tokio::test]
    async fn the_end_fails_open_and_later_requests() {
        let (connection, _sent, _notices) = connect();
        let mut open = connection.begin("x", json!({})).unwrap();
        connection.end(": it crashed");
        connection.end(": later");
        let ended = RequestError::Ended(": it crashed".to_owned());
        assert_eq!(open.answer().await, Err(ended.clone()));
        assert_eq!(connection.begin("x", json!({})).err(), Some(ended));
        assert_eq!(connection.ended().await, ": it crashed");
    }

    #[tokio::test]
    async fn requests_of_the_server_are_answered() {
        let (connection, mut sent, _notices) = connect();
        for (method, expected) in [
            ("ping", json!({"result": {}})),
            ("roots/list", json!({"result": {"roots": [{"uri": "file:///w"}]}})),
            ("sampling/createMessage", json!({"error": {"code": -32601, "message": "sampling is not supported"}})),
            ("elicitation/create", json!({"result": {"action": "decline"}})),
            ("tasks/list", json!({"error": {"code": -32601, "message": "method not found"}})),
        ] {
            receive(&connection, &json!({"id": "q", "method": method}));
            let reply = sent.recv().await.unwrap();
            for key in ["result", "error"] {
                assert_eq!(reply.get(key), expected.get(key), "{method}");
            }
        }
    }

    #[tokio::test]
    async fn a_flood_of_progress_is_not_kept() {
        let (connection, _sent, mut notices) = connect();
        let mut call = connection.begin("tools/call", json!({})).unwrap();
        for number in 0..10_000 {
            receive(
                &connection,
                &json!({"method": "notifications/progress",
                        "params": {"progressToken": 1, "progress": number, "total": 3}}),
            );
            receive(&connection, &json!({"method": "notifications/tools/list_changed"}));
        }
        receive(&connection, &json!({"id": 1, "result": {}}));
        let mut seen = 0;
        while let Step::Told(Told::Progress(text)) = call.next().await {
            assert_eq!(text, format!("{seen} of 3"));
            seen += 1;
        }
        assert_eq!(seen, TOLD);
        let mut changes = 0;
        while notices.try_recv().is_ok() {
            changes += 1;
        }
        assert_eq!(changes, NOTICES);
    }
}
