//! JSON-RPC with one server over two halves of a stream.
//!
//! Invariant: there is no client before the handshake is complete, so no call can come too early. Each call has a
//! deadline; dropping its future cancels it. Each question of the server is answered exactly once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use codex_protocol::methods::Method;
use codex_protocol::rpc::{ErrorObject, OVERLOADED};
use codex_wire::ids::RequestId;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout_at};

use crate::approvals::{Approvals, Ask};
use crate::error::{CallError, ConnectError};
use crate::event::Event;
use crate::feed::{Events, Feed};
use crate::numbers::Numbers;
use crate::router;
use crate::transcript::{MAX_LINE_BYTES, Message, Transcript};

/// The most lines that wait to be written.
const WAITING_LINES: usize = 256;
/// The most bytes of noise before the connection is given up: whatever is at the other end is no server.
const NOISE_BYTES: usize = 64 * 1024;
/// The most questions that are open at once; further ones are denied.
const MOST_QUESTIONS: usize = 256;
const READ_BYTES: usize = 64 * 1024;
/// The time limit for a server to end after its input has ended.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// The deadline of a call without one, as far as the clock can count.
const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// The waits before a call is tried again that an overloaded server has refused.
const RETRIES: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];

/// The name of a program for its server, and its patience.
#[derive(Debug, Clone)]
pub struct Options {
    /// The name of the program.
    pub name: String,
    pub version: String,
    /// Whether the server may use parts of the protocol that may still change.
    pub experimental: bool,
    /// The time limit of a call.
    pub deadline: Duration,
    /// The notifications that the server need not send; a name may end with `*`.
    pub unwanted: Vec<String>,
    /// The longest line that is read; a longer one costs a note.
    pub line_bytes: usize,
    /// The numbers of events that were seen: those of a registry that is to recover from breaks.
    pub numbers: Numbers,
}

impl Options {
    /// The usual options for a program.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let deadline = Duration::from_secs(60);
        let (unwanted, line_bytes, numbers) = (Vec::new(), MAX_LINE_BYTES, Numbers::default());
        let (name, version) = (name.into(), version.into());
        Self { name, version, experimental: true, deadline, unwanted, line_bytes, numbers }
    }
}

type Answer = Result<Value, ErrorObject>;

#[derive(Debug)]
struct Shared {
    next_id: AtomicI64,
    /// The calls that wait; `None` once the connection is closed.
    pending: Mutex<Option<HashMap<i64, oneshot::Sender<Answer>>>>,
    lines: mpsc::Sender<Vec<u8>>,
    feed: Feed,
    approvals: Approvals,
    /// The questions that have no answer yet.
    questions: Mutex<Vec<RequestId>>,
    deadline: Duration,
    server: OnceLock<Value>,
    closing: watch::Sender<bool>,
    closed: watch::Sender<bool>,
    numbers: Numbers,
}

/// A connection after its handshake. Clones share it; its input ends when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Client(Arc<Shared>);

/// Speaks with a server over two halves of a stream: shakes hands, then hands out the client and its events.
///
/// # Errors
/// If the server does not complete the handshake within the deadline.
pub async fn connect<R, W>(
    input: R,
    output: W,
    options: Options,
    approvals: Approvals,
) -> Result<(Client, Events), ConnectError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (lines, waiting) = mpsc::channel(WAITING_LINES);
    let (closing, close) = watch::channel(false);
    let client = Client(Arc::new(Shared {
        next_id: AtomicI64::new(1),
        pending: Mutex::new(Some(HashMap::new())),
        lines,
        feed: Feed::default(),
        approvals,
        questions: Mutex::default(),
        deadline: options.deadline,
        server: OnceLock::new(),
        closing,
        closed: watch::Sender::new(false),
        numbers: options.numbers,
    }));
    let events = client.0.feed.events();
    tokio::spawn(write(output, waiting, close.clone()));
    let transcript = Transcript::with_limit(options.line_bytes);
    tokio::spawn(read(input, (transcript, client.0.feed.clone()), Arc::downgrade(&client.0), close));
    let info = json!({"name": options.name, "title": options.name, "version": options.version});
    let capabilities = json!({"experimentalApi": options.experimental, "optOutNotificationMethods": options.unwanted});
    let server = client.raw("initialize", json!({"clientInfo": info, "capabilities": capabilities})).await?;
    let _: Result<(), Value> = client.0.server.set(server);
    client.0.send(&json!({"method": "initialized"}), "initialized").await?;
    Ok((client, events))
}

impl Client {
    /// The server's answer to `initialize`.
    #[must_use]
    pub fn server(&self) -> &Value {
        self.0.server.get().unwrap_or(&Value::Null)
    }

    /// Whether the connection is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.lock().is_none()
    }

    /// Waits until the connection is closed, by either side.
    pub async fn closed(&self) {
        // It lives as long as this client.
        let _: bool = self.0.closed.subscribe().wait_for(|is_closed| *is_closed).await.is_ok();
    }

    /// Ends the input of the server, which then ends the connection. A server that does not is left after 5 seconds.
    pub fn close(&self) {
        self.0.closing.send_replace(true);
    }

    /// Calls a method of the table.
    ///
    /// # Errors
    /// If the server refuses, does not answer in time, or answers with something else.
    pub async fn call<M: Method>(&self, params: &M::Params) -> Result<M::Response, CallError> {
        let method = M::NAME.to_owned();
        let params = serde_json::to_value(params)
            .map_err(|error| CallError::Unwritable { method: method.clone(), why: error.to_string() })?;
        let result = self.raw(M::NAME, params).await?;
        serde_json::from_value(result).map_err(|error| CallError::Unreadable { method, why: error.to_string() })
    }

    /// Calls any method. A server that is overloaded is asked again, within the deadline.
    ///
    /// # Errors
    /// If the server refuses, or does not answer in time.
    pub async fn raw(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let now = Instant::now();
        let deadline = now.checked_add(self.0.deadline).unwrap_or(now + NEVER);
        let mut retries = RETRIES.into_iter();
        loop {
            match self.0.once(method, &params, deadline).await? {
                Ok(result) => return Ok(result),
                Err(error) => {
                    let wait = (error.code == OVERLOADED).then(|| retries.next()).flatten();
                    let Some(wait) = wait.filter(|wait| Instant::now() + *wait < deadline) else {
                        let (code, message) = (error.code, error.message);
                        return Err(CallError::Refused { method: method.to_owned(), code, message });
                    };
                    sleep(wait.mul_f64(0.75 + fastrand::f64() / 4.0)).await;
                }
            }
        }
    }
}

/// Takes a call out of the list when its future is dropped, so that a late answer is one to nobody.
struct Waiting<'a> {
    shared: &'a Shared,
    id: i64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(pending) = self.shared.lock().as_mut() {
            pending.remove(&self.id);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<HashMap<i64, oneshot::Sender<Answer>>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn once(&self, method: &str, params: &Value, deadline: Instant) -> Result<Answer, CallError> {
        let closed = || CallError::Closed { method: method.to_owned() };
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.lock().as_mut().ok_or_else(closed)?.insert(id, sender);
        let _waiting = Waiting { shared: self, id };
        let calling = async {
            self.send(&json!({"id": id, "method": method, "params": params}), method).await?;
            answer.await.map_err(|_| closed())
        };
        let late = |_| CallError::Late { method: method.to_owned(), deadline: self.deadline };
        timeout_at(deadline, calling).await.map_err(late)?
    }

    async fn send(&self, message: &Value, method: &str) -> Result<(), CallError> {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.lines.send(line).await.map_err(|_| CallError::Closed { method: method.to_owned() })
    }

    /// Takes a message; `false` if the connection is to be given up.
    fn take(self: &Arc<Self>, message: Message, noise: &mut usize) -> bool {
        match message {
            Message::Response { id, result } => {
                if let Ok(result) = &result
                    && let Some(event) = router::response(result)
                {
                    // Numbered events may follow before the caller has its answer.
                    self.numbers.subscribed(event.thread().unwrap_or_default(), result);
                    self.feed.push(event);
                }
                let waiting = match &id {
                    RequestId::Integer(id) => self.lock().as_mut().and_then(|pending| pending.remove(id)),
                    RequestId::String(_) => None,
                };
                // The caller may have stopped waiting at this moment.
                let is_taken = waiting.is_some_and(|waiting| waiting.send(result).is_ok());
                if !is_taken {
                    self.feed.push(Event::Note { text: format!("an answer to nobody: {}", json!(id)) });
                }
            }
            Message::Question { id, method, params } => self.ask(Ask { id, method, params }),
            Message::Noise { bytes, .. } => {
                // A line that is too long is one note; many lines that are no messages come from no server.
                if bytes <= NOISE_BYTES {
                    *noise += bytes;
                }
                self.feed.push_message(message);
                return *noise <= NOISE_BYTES;
            }
            Message::Event { event, seq } => {
                if let Event::Resolved { id, .. } = &event {
                    // Somebody else has answered it.
                    self.close_question(id);
                }
                let event = self.unless_repeated(event, seq);
                let end = self.numbers.note(&event, seq);
                self.feed.push(event);
                if let Some(end) = end {
                    self.feed.push(end);
                }
            }
        }
        true
    }

    /// An event, or a note if its number was reported already.
    fn unless_repeated(&self, event: Event, seq: Option<u64>) -> Event {
        match (event.thread(), seq) {
            (Some(thread), Some(seq)) if !self.numbers.saw(thread, seq) => {
                Event::Note { text: format!("event {seq} of thread {thread} was reported already") }
            }
            _ => event,
        }
    }

    fn questions(&self) -> MutexGuard<'_, Vec<RequestId>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a question out of the open ones; `false` if it was not among them.
    fn close_question(&self, id: &RequestId) -> bool {
        let mut questions = self.questions();
        let place = questions.iter().position(|open| open == id);
        place.map(|place| questions.swap_remove(place)).is_some()
    }

    /// Has a question answered, beside everything else. One that is open already and asked again has one answer.
    fn ask(self: &Arc<Self>, ask: Ask) {
        let is_too_much = {
            let mut questions = self.questions();
            if questions.contains(&ask.id) {
                return;
            }
            questions.push(ask.id.clone());
            questions.len() > MOST_QUESTIONS
        };
        let shared = Arc::clone(self);
        self.feed.push(router::request(ask.id.clone(), &ask.method, ask.params.clone()));
        tokio::spawn(async move {
            let (id, method) = (ask.id.clone(), ask.method.clone());
            let thread = match router::request(ask.id.clone(), &method, ask.params.clone()) {
                Event::Asked { thread, .. } => thread,
                _ => String::new(),
            };
            let (answer, note) = if is_too_much {
                (crate::approvals::encode(&method, crate::approvals::Decision::deny("too many questions")), None)
            } else {
                shared.approvals.answer(ask).await
            };
            if let Some(text) = note {
                shared.feed.push(Event::Note { text });
            }
            if !shared.close_question(&id) {
                return;
            }
            let response = match answer {
                Ok(result) => json!({"id": id, "result": result}),
                Err(error) => json!({"id": id, "error": error}),
            };
            if shared.send(&response, &method).await.is_ok() {
                shared.feed.push(Event::Resolved { thread, id });
            }
        });
    }
}

async fn write<W: AsyncWrite + Unpin>(
    mut output: W,
    mut waiting: mpsc::Receiver<Vec<u8>>,
    close: watch::Receiver<bool>,
) {
    let all_lines = async {
        while let Some(line) = waiting.recv().await {
            if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
                return;
            }
        }
    };
    // Lines that wait go first, so that answers are not lost at the end.
    tokio::select! {
        biased;
        () = all_lines => {}
        () = wanted(close) => {}
    }
    let _: std::io::Result<()> = output.shutdown().await;
}

/// Waits until the connection is to be closed, or nobody has it any more.
async fn wanted(mut close: watch::Receiver<bool>) {
    let _: bool = close.wait_for(|is_closing| *is_closing).await.is_ok();
}

/// Reads until the input ends, or for a little while after the connection was to be closed; then all calls that wait
/// fail.
async fn read<R: AsyncRead + Unpin>(
    mut input: R,
    (mut transcript, feed): (Transcript, Feed),
    shared: Weak<Shared>,
    close: watch::Receiver<bool>,
) {
    let (mut bytes, mut noise) = (Vec::with_capacity(READ_BYTES), 0);
    let mut is_open = true;
    let mut left = std::pin::pin!(async {
        wanted(close).await;
        sleep(GRACE).await;
    });
    while is_open {
        let count = tokio::select! {
            read = input.read_buf(&mut bytes) => read.unwrap_or_default(),
            () = &mut left => 0,
        };
        if count == 0 {
            break;
        }
        let Some(shared) = shared.upgrade() else { break };
        transcript.push(&bytes, |message| is_open = is_open && shared.take(message, &mut noise));
        bytes.clear();
    }
    if let Some(shared) = shared.upgrade() {
        transcript.finish(|message| {
            shared.take(message, &mut noise);
        });
        // Their senders are dropped, so their calls end.
        *shared.lock() = None;
        shared.closed.send_replace(true);
    }
    feed.close();
}
