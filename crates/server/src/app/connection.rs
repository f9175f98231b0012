//! One client: reads its lines, one after the other.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use codex_log::QuestionId;
use codex_protocol::methods::{ClientRequest, Method, call};
use codex_protocol::rpc::{ErrorObject, Incoming, OVERLOADED, Response};
use codex_protocol::v2::request::ServerRequest;
use codex_protocol::v2::thread::UnsubscribeStatus;
use codex_wire::ids::{RequestId, ThreadId};
use serde_json::value::RawValue;
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, oneshot};

use super::client_kinds::PolicySpelling;
use super::encoded::EVENT_PREFIX;
use super::host::Host;
use super::lane::{Job, Lane, LaneRequest, QuestionAnswer, WAITING_REQUESTS};
use super::outbox::Outbox;
use super::outgoing::Outgoing;
use super::server_methods::ClientResources;
use codex_dialects::ProtocolRelease;
use codex_dialects::event_filter::ClientTraits;
use codex_dialects::json_form::JsonForm;
use codex_lines::{Line, LineReader, MAX_LINE_BYTES};

/// The maximum nesting depth of a message.
const MAX_DEPTH: usize = 100;

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) host: Arc<Host>,
    pub(crate) outbox: Outbox,
    /// Running work that is not about threads.
    pub(crate) resources: ClientResources,
    pub(super) client: OnceLock<Client>,
    /// The lanes that serve requests about each thread.
    lanes: Mutex<HashMap<ThreadId, mpsc::Sender<LaneRequest>>>,
    /// The listeners of the first version, and the thread that each listens to.
    listeners: Mutex<HashMap<String, ThreadId>>,
    /// Server requests that the client has not answered.
    asked: Mutex<HashMap<i64, Asked>>,
    /// Server requests that are not about a thread, with the tasks that wait for the answers.
    awaited: Mutex<HashMap<i64, oneshot::Sender<ClientAnswer>>>,
    /// The configuration warnings that it received.
    pub(crate) warned_of: Mutex<BTreeSet<String>>,
    /// Held by every request that is not answered yet.
    unanswered: Mutex<Option<mpsc::Sender<()>>>,
    /// Threads that the client has unsubscribed from.
    left: Mutex<HashSet<ThreadId>>,
    /// Whether the client left threads behind that continue without it.
    has_parted: AtomicBool,
    /// Whether the client is gone.
    has_left: AtomicBool,
}

/// The identity and capabilities of the client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) name: String,
    /// The name under which this program sends requests to providers for it.
    pub(crate) user_agent: String,
    /// Its traits as long as no policy of its requests is in camelCase, and from then on.
    pub(super) traits: [ClientTraits; 2],
    /// The spelling of its policies, once one is known.
    pub(super) spelling: OnceLock<PolicySpelling>,
    /// Whether another server passes on its requests. That server tells it what is not about one of its threads.
    pub(crate) is_relayed: bool,
    /// Notifications that it opted out of.
    pub(super) unwanted: HashSet<String>,
    /// Kinds of `codex/event/*` that it opted out of.
    pub(super) unwanted_events: HashSet<String>,
    /// Prefixes of the notifications that it opted out of.
    pub(super) unwanted_groups: Vec<String>,
}

impl Client {
    /// The traits that decide which events it receives.
    pub(crate) fn traits(&self) -> ClientTraits {
        let [before, after] = self.traits;
        if self.spelling.get() == Some(&PolicySpelling::CamelCase) { after } else { before }
    }

    /// Notes how a request spells its policies, if that can tell anything.
    fn note_spelling(&self, params: Option<&RawValue>) {
        if self.traits[0] != self.traits[1]
            && self.spelling.get().is_none()
            && let Some(spelling) = PolicySpelling::of(params)
        {
            // Only this task reads requests, so it is not set yet.
            let _: Result<(), _> = self.spelling.set(spelling);
        }
    }

    /// Whether the client opted out of a notification. A name that ends with a star stands for all names with that
    /// prefix.
    pub(crate) fn is_unwanted(&self, method: &str) -> bool {
        self.unwanted.contains(method)
            || self.unwanted_groups.iter().any(|beginning| method.starts_with(beginning.as_str()))
    }

    /// Whether the client opted out of a kind of `codex/event/*`. The name of the method is not built for this check.
    pub(crate) fn is_unwanted_event(&self, kind: &str) -> bool {
        let is_of_group = |group: &String| match group.strip_prefix(EVENT_PREFIX) {
            Some(beginning) => kind.starts_with(beginning),
            None => EVENT_PREFIX.starts_with(group.as_str()),
        };
        self.unwanted_events.contains(kind) || self.unwanted_groups.iter().any(is_of_group)
    }
}

/// The client's response to a server request: its result as JSON, or its error.
pub(crate) type ClientAnswer = Result<String, ErrorObject>;

/// A question that the client was asked, and the thread that asks it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) thread: ThreadId,
    pub(crate) question: QuestionId,
}

/// A request that must be answered. The connection stays open as long as one exists, and dropping one sends an error.
#[derive(Debug)]
pub(crate) struct Unanswered {
    /// The id that the response repeats.
    pub(crate) id: RequestId,
    /// The requester.
    pub(crate) connection: Arc<Connection>,
    is_answered: bool,
    _open: Option<mpsc::Sender<()>>,
}

impl Unanswered {
    pub(crate) fn new(connection: &Arc<Connection>, id: RequestId) -> Self {
        let open = lock(&connection.unanswered).clone();
        Self { id, connection: Arc::clone(connection), is_answered: false, _open: open }
    }

    /// Sends the result.
    pub(crate) async fn answer<M: Method>(mut self, result: Result<M::Response, ErrorObject>) {
        self.is_answered = true;
        let form = self.connection.json_form();
        match result {
            // This response has the members at which some clients stop if they are null.
            Ok(limits) if M::NAME == call::AccountRateLimitsRead::NAME && !form.is_plain() => {
                let limits = form.without_nulls(serde_json::to_value(limits).unwrap_or_default());
                self.connection.outbox.answer_value(&self.id, limits).await;
            }
            result => self.connection.outbox.answer::<M>(&self.id, result).await,
        }
    }

    /// Sends an error.
    pub(crate) async fn refuse(mut self, error: ErrorObject) {
        self.is_answered = true;
        self.connection.outbox.refuse(&self.id, error).await;
    }

    /// Adds the result to the messages that are about to be sent.
    pub(crate) fn answer_in<M: Method>(mut self, outgoing: &mut Outgoing, result: M::Response) {
        self.is_answered = true;
        outgoing.add(&Response::Result { id: &self.id, result });
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if !self.is_answered {
            self.connection
                .outbox
                .refuse_at_once(&self.id, ErrorObject::internal("the request failed within this program"));
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is one insertion or removal.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    pub(crate) fn new(host: Arc<Host>, outbox: Outbox) -> (Self, mpsc::Receiver<()>) {
        let (open, all_answered) = mpsc::channel(1);
        let connection = Self {
            host,
            outbox,
            resources: ClientResources::default(),
            client: OnceLock::new(),
            lanes: Mutex::default(),
            listeners: Mutex::default(),
            asked: Mutex::default(),
            awaited: Mutex::default(),
            left: Mutex::default(),
            warned_of: Mutex::default(),
            unanswered: Mutex::new(Some(open)),
            has_parted: AtomicBool::new(false),
            has_left: AtomicBool::new(false),
        };
        (connection, all_answered)
    }

    /// The client, once it is initialized.
    pub(crate) fn client(&self) -> Option<&Client> {
        self.client.get()
    }

    /// The release whose behaviour is followed.
    pub(crate) fn release(&self) -> ProtocolRelease {
        self.client().map(|client| client.traits().release).unwrap_or_default()
    }

    /// The form of the JSON that the client reads.
    pub(crate) fn json_form(&self) -> JsonForm {
        self.client().map(|client| JsonForm::of(client.traits())).unwrap_or_default()
    }

    /// Reads and serves requests until the input ends or the client is gone.
    pub(crate) async fn read<R: AsyncRead + Unpin>(self: &Arc<Self>, input: R) -> std::io::Result<()> {
        let read = self.read_lines(input).await;
        self.resources.hang_up();
        // From here on only requests that are being served keep the connection open.
        drop(lock(&self.unanswered).take());
        read
    }

    async fn read_lines<R: AsyncRead + Unpin>(self: &Arc<Self>, input: R) -> std::io::Result<()> {
        let mut lines = LineReader::new(input);
        loop {
            match lines.next().await? {
                Some(Line::Whole(line)) => self.take(&line).await,
                Some(Line::TooLong { bytes, head }) => {
                    let text = format!("a line of {bytes} bytes was skipped; at most {MAX_LINE_BYTES} are allowed");
                    let error = ErrorObject::invalid(text);
                    match leading_id(&head) {
                        Some(id) => self.outbox.refuse(&id, error).await,
                        None => self.complain(error).await,
                    }
                }
                None => return Ok(()),
            }
        }
    }

    /// Sends an error for a message without an id.
    async fn complain(&self, error: ErrorObject) {
        #[derive(serde::Serialize)]
        struct ErrorMessage {
            error: ErrorObject,
            id: Option<RequestId>,
        }
        let mut bytes = Vec::new();
        super::outbox::add_line(&mut bytes, &ErrorMessage { error, id: None });
        let room = self.outbox.room(bytes.len()).await;
        self.outbox.send_notification(bytes, room);
    }

    async fn take(self: &Arc<Self>, line: &[u8]) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        if is_too_deep(line) {
            return self.complain(ErrorObject::invalid(format!("a message may be nested {MAX_DEPTH} deep"))).await;
        }
        // Invalid UTF-8 is not JSON, but the rest of the message may still be readable.
        let repaired;
        let line = if std::str::from_utf8(line).is_ok() {
            line
        } else {
            repaired = String::from_utf8_lossy(line).into_owned();
            repaired.as_bytes()
        };
        match Incoming::read(line) {
            Ok(Incoming::Request { id, method, params }) => match ClientRequest::read(&method, params) {
                Ok(request) => {
                    if let Some(client) = self.client().filter(|_| names_policies(&request)) {
                        client.note_spelling(params);
                    }
                    self.obey(id, request).await;
                }
                Err(error) => {
                    let error = if self.client().is_some() { error } else { not_initialized() };
                    self.outbox.refuse(&id, error).await;
                }
            },
            Ok(Incoming::Response { id, result }) => self.answered(&id, result).await,
            // The only notification that clients send is `initialized`, which changes nothing.
            Ok(Incoming::Notification { .. }) => {}
            Err(error) => tracing_line(&error),
        }
    }

    async fn obey(self: &Arc<Self>, id: RequestId, request: ClientRequest) {
        if self.client().is_none() && !matches!(request, ClientRequest::Initialize(_)) {
            return self.outbox.refuse(&id, not_initialized()).await;
        }
        if let Some(work) = super::dispatch::dispatch(Unanswered::new(self, id), request) {
            work.await;
        }
    }

    /// Delivers a response of the client to the task that waits for it.
    async fn answered(&self, id: &RequestId, result: Result<Option<&RawValue>, ErrorObject>) {
        let Some(number) = id.number() else { return };
        if let Some(waiting) = lock(&self.awaited).remove(&number) {
            // That task may be gone.
            let _ = waiting.send(result.map(|answer| answer.map(|answer| answer.get().to_owned()).unwrap_or_default()));
            return;
        }
        let Some(asked) = lock(&self.asked).remove(&number) else { return };
        let Some(lane) = lock(&self.lanes).get(&asked.thread).cloned() else { return };
        let answer = result.ok().flatten().map(|answer| answer.get().to_owned());
        let answered = QuestionAnswer { number, question: asked.question, answer };
        let _: Result<(), _> = lane.send(LaneRequest::Answered(Box::new(answered))).await;
    }

    /// Sends the client a request that is not about a thread. `None` if the client is gone.
    pub(crate) async fn request(&self, request: &ServerRequest) -> Option<ClientAnswer> {
        let (number, line) = self.outbox.request(request.method(), request);
        let (waiting, answer) = oneshot::channel();
        self.expect_answer(number, waiting);
        let room = self.outbox.room(line.len()).await;
        self.outbox.send_notification(line, room);
        answer.await.ok()
    }

    /// Registers a task that waits for the answer to a request.
    pub(crate) fn expect_answer(&self, number: i64, waiting: oneshot::Sender<ClientAnswer>) {
        if !self.has_left() {
            lock(&self.awaited).insert(number, waiting);
        }
    }

    /// Notes that nobody waits for the answer to a request any more.
    pub(crate) fn expect_no_answer(&self, number: i64) {
        lock(&self.awaited).remove(&number);
    }

    /// The lane of a thread, if there is one.
    pub(crate) fn lane(&self, thread: ThreadId) -> Option<mpsc::Sender<LaneRequest>> {
        lock(&self.lanes).get(&thread).cloned()
    }

    /// Registers a question to the client.
    pub(crate) fn ask(&self, number: i64, asked: Asked) {
        lock(&self.asked).insert(number, asked);
    }

    /// Removes a question to the client.
    pub(crate) fn forget(&self, number: i64) {
        lock(&self.asked).remove(&number);
    }

    /// Queues a request behind the earlier ones about the same thread.
    pub(crate) fn enqueue(
        self: &Arc<Self>,
        thread: ThreadId,
        job: Box<dyn Job>,
    ) -> Result<(), (Box<dyn Job>, ErrorObject)> {
        let mut lanes = lock(&self.lanes);
        if lanes.get(&thread).is_none_or(mpsc::Sender::is_closed) && !self.has_parted() {
            let (sender, requests) = mpsc::channel(WAITING_REQUESTS);
            lanes.insert(thread, sender);
            drop(tokio::spawn(Lane::new(Arc::clone(self), thread, requests, None).run()));
        }
        // The lock is held so that the lane does not end in between.
        match lanes.get(&thread).map(mpsc::Sender::try_reserve) {
            Some(Ok(place)) => {
                place.send(LaneRequest::Serve(job));
                Ok(())
            }
            Some(Err(_)) | None => Err((job, overloaded())),
        }
    }

    /// Reserves the lane of a new thread: requests about it wait there from here on. `None` if it has one already, so
    /// that no message is sent twice.
    pub(crate) fn reserve_lane(&self, thread: ThreadId) -> Option<mpsc::Receiver<LaneRequest>> {
        let mut lanes = lock(&self.lanes);
        if lanes.get(&thread).is_some_and(|lane| !lane.is_closed()) {
            return None;
        }
        let (sender, requests) = mpsc::channel(WAITING_REQUESTS);
        // The lane of a client that has disconnected ends as soon as it begins.
        if !self.has_parted() {
            lanes.insert(thread, sender);
        }
        Some(requests)
    }

    /// Removes the lane of a thread if no request waits in it.
    pub(crate) fn close_if_empty(&self, thread: ThreadId, requests: &mpsc::Receiver<LaneRequest>) -> bool {
        let mut lanes = lock(&self.lanes);
        if requests.is_empty() {
            lanes.remove(&thread);
        }
        requests.is_empty()
    }

    /// Records that the client has unsubscribed from a thread.
    pub(crate) fn note_left(&self, thread: ThreadId) {
        lock(&self.left).insert(thread);
    }

    /// The status for a client that unsubscribes from a thread without a subscription.
    pub(crate) fn unsubscribed(&self, thread: ThreadId) -> UnsubscribeStatus {
        let was_subscribed = lock(&self.left).contains(&thread);
        let is_loaded = was_subscribed || self.host.start.threads.get(thread).is_some();
        if is_loaded { UnsubscribeStatus::NotSubscribed } else { UnsubscribeStatus::NotLoaded }
    }

    /// The thread of a v1 listener.
    pub(crate) fn listener(&self, name: &str) -> Option<ThreadId> {
        lock(&self.listeners).get(name).copied()
    }

    /// Registers a v1 listener.
    pub(crate) fn add_listener(&self, name: String, thread: ThreadId) {
        lock(&self.listeners).insert(name, thread);
    }

    /// Removes a v1 listener.
    pub(crate) fn remove_listener(&self, name: &str) {
        lock(&self.listeners).remove(name);
    }

    /// Closes all lanes once their queued requests are served.
    pub(crate) fn leave(&self) {
        self.has_left.store(true, Ordering::Relaxed);
        self.resources.leave();
        lock(&self.lanes).clear();
        lock(&self.awaited).clear();
    }

    /// Closes all lanes like [`Connection::leave`], while their threads continue without this client.
    pub(crate) fn part(&self) {
        // The lock is held so that no lane is added between the two.
        let lanes = lock(&self.lanes);
        self.has_parted.store(true, Ordering::Relaxed);
        drop(lanes);
        self.leave();
    }

    /// Whether the client is gone.
    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }

    /// Whether the client left threads behind that continue without it.
    pub(crate) fn has_parted(&self) -> bool {
        self.has_parted.load(Ordering::Relaxed)
    }
}

/// Whether a request may have policies whose spelling tells the age of the client.
fn names_policies(request: &ClientRequest) -> bool {
    matches!(
        request,
        ClientRequest::ThreadStart(_)
            | ClientRequest::ThreadResume(_)
            | ClientRequest::ThreadFork(_)
            | ClientRequest::TurnStart(_)
    )
}

/// Too many requests are pending.
pub(crate) fn overloaded() -> ErrorObject {
    let message = "Server overloaded; retry later.".to_owned();
    ErrorObject { code: OVERLOADED, message, data: None }
}

fn not_initialized() -> ErrorObject {
    ErrorObject::invalid("Not initialized")
}

/// No release answers a line that is not a message; it is reported on standard error, where logs go.
fn tracing_line(error: &serde_json::Error) {
    // The error may quote the line, and standard error may be a terminal.
    let error = error.to_string().replace(codex_wire::command_line::is_deceptive, "\u{fffd}");
    eprintln!("codex: skipped a line that is not a message: {error}");
}

/// The id of a truncated message, if it precedes every nested value.
fn leading_id(head: &[u8]) -> Option<RequestId> {
    let rest = head.trim_ascii_start().strip_prefix(b"{")?;
    let flat = rest.split(|byte| matches!(byte, b'{' | b'[')).next()?;
    flat.split(|byte| *byte == b',').find_map(|field| {
        let (name, value) = field.split_at_checked(field.iter().position(|byte| *byte == b':')?)?;
        let value = value[1..].trim_ascii();
        (name.trim_ascii() == b"\"id\"").then(|| serde_json::from_slice(value).ok()).flatten()
    })
}

/// Whether the brackets of a message are nested too deeply. Brackets in strings do not count.
fn is_too_deep(line: &[u8]) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return true;
                }
            }
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_skipped_line_is_found_if_it_comes_first() {
        let id = |head: &str| leading_id(head.as_bytes());
        assert_eq!(id(r#"{"id":630,"method":"x","params":{"a":"AAAA"#), Some(RequestId::Integer(630)));
        assert_eq!(id(r#"{ "method" : "x", "id" : "z" , "params":{"#), Some(RequestId::String("z".to_owned())));
        assert_eq!(id(r#"{"method":"x","params":{"text":"AAAA"#), None);
        assert_eq!(id(r#"{"params":{"id":5,"text":"AAAA"#), None);
        assert_eq!(id("AAAA"), None);
    }

    #[test]
    fn only_brackets_outside_of_texts_are_deep() {
        assert!(is_too_deep("[".repeat(101).as_bytes()));
        assert!(!is_too_deep(format!("\"{}\"", "[".repeat(101)).as_bytes()));
        assert!(!is_too_deep("[]".repeat(500).as_bytes()));
    }
}
