//! One client: what it sends is read here, one line after the other.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use codex_config::user_agent;
use codex_log::QuestionId;
use codex_protocol::methods::{ClientRequest, call};
use codex_protocol::rpc::{ErrorObject, Incoming, OVERLOADED};
use codex_protocol::v2::initialize::{Capabilities, Dialect, InitializeParams, InitializeResponse};
use codex_protocol::v2::thread::UnsubscribeStatus;
use codex_wire::ids::{RequestId, ThreadId};
use tokio::io::AsyncRead;
use tokio::sync::mpsc;

use super::disk::blocking;
use super::host::Host;
use super::outbox::Outbox;
use super::server_methods::ClientResources;
use super::subscriber::{SubscriberRequest, WAITING_REQUESTS};
use crate::lines::{Line, LineReader, MAX_LINE_BYTES};
use codex_dialects::ProtocolRelease;

/// How deep the objects of a message may lie within each other.
const MAX_DEPTH: usize = 100;

/// Notifications that only those are sent who may use what is not settled yet.
const UNSETTLED: &[&str] = &["thread/readState/changed"];

/// One client.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) host: Arc<Host>,
    pub(crate) outbox: Outbox,
    /// What goes on beside threads.
    pub(crate) resources: ClientResources,
    client: OnceLock<Client>,
    /// Where the requests about each thread go.
    subscribers: Mutex<HashMap<ThreadId, mpsc::Sender<Box<SubscriberRequest>>>>,
    /// The listeners of the first version, and the thread that each listens to.
    listeners: Mutex<HashMap<String, ThreadId>>,
    /// Requests of ours that the client has not answered.
    asked: Mutex<HashMap<i64, Asked>>,
    /// What it was told of the configuration.
    pub(crate) warned_of: Mutex<BTreeSet<String>>,
    /// Backlog by every request that is not answered yet.
    unanswered: Mutex<Option<mpsc::Sender<()>>>,
    /// Threads that the client has said it listens to no more.
    left: Mutex<HashSet<ThreadId>>,
    /// Whether the client has left threads behind that go on without it.
    has_parted: AtomicBool,
}

/// Who the client is and what it wants.
#[derive(Debug)]
pub(crate) struct Client {
    /// Its name.
    pub(crate) name: String,
    /// How this program names itself to providers on its behalf.
    pub(crate) user_agent: String,
    /// Which release's ways it knows.
    pub(crate) release: ProtocolRelease,
    /// The dialect it is spoken to in, whatever it asks in.
    pub(crate) dialect: Option<Dialect>,
    /// Notifications it does not want.
    unwanted: HashSet<String>,
    /// Beginnings of notifications it does not want.
    unwanted_groups: Vec<String>,
    /// Whether it wants the events of the queue beside the notifications.
    pub(crate) has_events: bool,
}

impl Client {
    /// Whether it does not want a notification. A name with a star at its end stands for all that begin like it.
    pub(crate) fn is_unwanted(&self, method: &str) -> bool {
        self.unwanted.contains(method)
            || self.unwanted_groups.iter().any(|beginning| method.starts_with(beginning.as_str()))
    }
}

/// A question to the client, and who wants to know.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The thread.
    pub(crate) thread: ThreadId,
    /// The question.
    pub(crate) question: QuestionId,
}

/// A request that must be answered. As long as one is held the connection does not end.
#[derive(Debug)]
pub(crate) struct Unanswered {
    /// What the answer carries.
    pub(crate) id: RequestId,
    _held: Option<mpsc::Sender<()>>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is one insertion or removal.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    pub(crate) fn new(host: Arc<Host>, outbox: Outbox) -> (Self, mpsc::Receiver<()>) {
        let (held, all_answered) = mpsc::channel(1);
        let connection = Self {
            host,
            outbox,
            resources: ClientResources::default(),
            client: OnceLock::new(),
            subscribers: Mutex::default(),
            listeners: Mutex::default(),
            asked: Mutex::default(),
            left: Mutex::default(),
            warned_of: Mutex::default(),
            unanswered: Mutex::new(Some(held)),
            has_parted: AtomicBool::new(false),
        };
        (connection, all_answered)
    }

    /// The client, once it has said who it is.
    pub(crate) fn client(&self) -> Option<&Client> {
        self.client.get()
    }

    /// Which release's ways are followed.
    pub(crate) fn release(&self) -> ProtocolRelease {
        self.client().map(|client| client.release).unwrap_or_default()
    }

    /// Reads and obeys until the client has said everything, or is gone.
    pub(crate) async fn read<R: AsyncRead + Unpin>(self: &Arc<Self>, input: R) -> std::io::Result<()> {
        let read = self.read_lines(input).await;
        self.resources.hang_up();
        // From here on only requests that are being served hold the connection open.
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

    /// Answers something that has no id.
    async fn complain(&self, error: ErrorObject) {
        #[derive(serde::Serialize)]
        struct Complaint {
            error: ErrorObject,
            id: Option<RequestId>,
        }
        let mut bytes = Vec::new();
        super::outbox::add_line(&mut bytes, &Complaint { error, id: None });
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
        // Text that is not UTF-8 is none of JSON, but the rest of the message may be understood without it.
        let repaired;
        let line = if std::str::from_utf8(line).is_ok() {
            line
        } else {
            repaired = String::from_utf8_lossy(line).into_owned();
            repaired.as_bytes()
        };
        match Incoming::read(line) {
            Ok(Incoming::Request { id, method, params }) => match ClientRequest::read(&method, params) {
                Ok(request) => self.obey(id, request).await,
                Err(error) => {
                    let error = if self.client().is_some() { error } else { not_initialized() };
                    self.outbox.refuse(&id, error).await;
                }
            },
            Ok(Incoming::Response { id, result }) => self.answered(&id, result).await,
            // The one notification of clients is `initialized`, which changes nothing.
            Ok(Incoming::Notification { .. }) => {}
            Err(error) => tracing_line(&error),
        }
    }

    async fn obey(self: &Arc<Self>, id: RequestId, request: ClientRequest) {
        if let ClientRequest::Initialize(params) = request {
            let result = self.initialize(*params).await;
            let is_new = result.is_ok();
            self.outbox.answer::<call::Initialize>(&id, result).await;
            if is_new {
                super::config_warnings::greet(self).await;
            }
            return;
        }
        if self.client().is_none() {
            return self.outbox.refuse(&id, not_initialized()).await;
        }
        let unanswered = Unanswered { id, _held: lock(&self.unanswered).clone() };
        super::dispatch::dispatch(self, unanswered, request).await;
    }

    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResponse, ErrorObject> {
        let InitializeParams { client_info, capabilities } = params;
        client_info.check_name()?;
        let asked = self.host.start.release.or_else(|| capabilities.as_ref().map(implied_release));
        let release = if let Some(release) = asked {
            release
        } else {
            let host = Arc::clone(&self.host);
            blocking(move || Ok(host.release())).await?
        };
        let capabilities = capabilities.unwrap_or_default();
        let start = &self.host.start;
        let agent = user_agent(self.host.originator(&client_info.name), start.config.env());
        let response = InitializeResponse {
            user_agent: format!("{agent} ({}; {})", client_info.name, client_info.version),
            codex_home: start.config.home().path().to_owned(),
            platform_family: std::env::consts::FAMILY,
            platform_os: std::env::consts::OS,
        };
        let mut unwanted = capabilities.opt_out_notification_methods.unwrap_or_default();
        if release != ProtocolRelease::V0166 || !capabilities.experimental_api {
            unwanted.extend(UNSETTLED.iter().map(|name| (*name).to_owned()));
        }
        let (groups, unwanted): (Vec<_>, Vec<_>) = unwanted.into_iter().partition(|name| name.ends_with('*'));
        let client = Client {
            name: client_info.name,
            user_agent: response.user_agent.clone(),
            release,
            dialect: capabilities.dialect.or(start.dialect),
            unwanted_groups: groups.into_iter().map(|name| name.trim_end_matches('*').to_owned()).collect(),
            unwanted: unwanted.into_iter().collect(),
            // Only clients of the newest release say what they can, and that release sends none.
            has_events: asked != Some(ProtocolRelease::V0166),
        };
        self.client.set(client).map_err(|_| ErrorObject::invalid("Already initialized"))?;
        Ok(response)
    }

    /// Hands an answer of the client to whoever wants to know.
    async fn answered(&self, id: &RequestId, result: Result<Option<&serde_json::value::RawValue>, ErrorObject>) {
        let RequestId::Integer(number) = id else { return };
        let Some(asked) = lock(&self.asked).remove(number) else { return };
        let Some(subscriber) = self.subscriber(asked.thread) else { return };
        let answer = result.ok().flatten().map(|answer| answer.get().to_owned());
        let _: Result<(), _> = subscriber
            .send(Box::new(SubscriberRequest::Answered { number: *number, question: asked.question, answer }))
            .await;
    }

    /// Remembers a question to the client.
    pub(crate) fn ask(&self, number: i64, asked: Asked) {
        lock(&self.asked).insert(number, asked);
    }

    /// Forgets a question to the client.
    pub(crate) fn forget(&self, number: i64) {
        lock(&self.asked).remove(&number);
    }

    /// Where requests about a thread go.
    pub(crate) fn subscriber(&self, thread: ThreadId) -> Option<mpsc::Sender<Box<SubscriberRequest>>> {
        lock(&self.subscribers).get(&thread).filter(|subscriber| !subscriber.is_closed()).cloned()
    }

    /// Makes place for the subscriber of a thread: requests about it wait there from here on. None if it has one already, so
    /// that nobody is told anything twice.
    pub(crate) fn reserve_subscriber(&self, thread: ThreadId) -> Option<mpsc::Receiver<Box<SubscriberRequest>>> {
        let mut subscribers = lock(&self.subscribers);
        if subscribers.get(&thread).is_some_and(|subscriber| !subscriber.is_closed()) {
            return None;
        }
        let (sender, requests) = mpsc::channel(WAITING_REQUESTS);
        // The subscriber of a client that has parted closes as soon as it opens.
        if !self.has_parted() {
            subscribers.insert(thread, sender);
        }
        Some(requests)
    }

    /// Sends requests about a thread nowhere from here on.
    pub(crate) fn remove_subscriber(&self, thread: ThreadId) {
        lock(&self.subscribers).remove(&thread);
    }

    /// Notes that the client listens to a thread no more.
    pub(crate) fn leave_thread(&self, thread: ThreadId) {
        self.remove_subscriber(thread);
        lock(&self.left).insert(thread);
    }

    /// What a client is told that wants to hear no more of a thread it does not listen to.
    pub(crate) fn unheard(&self, thread: ThreadId) -> Option<UnsubscribeStatus> {
        if self.subscriber(thread).is_some() {
            return None;
        }
        let was_heard = lock(&self.left).contains(&thread);
        let is_loaded = was_heard || self.host.start.threads.get(thread).is_some();
        Some(if is_loaded { UnsubscribeStatus::NotSubscribed } else { UnsubscribeStatus::NotLoaded })
    }

    /// The thread that a listener of the first version listens to.
    pub(crate) fn listener(&self, name: &str) -> Option<ThreadId> {
        lock(&self.listeners).get(name).copied()
    }

    /// Remembers a listener of the first version.
    pub(crate) fn add_listener(&self, name: String, thread: ThreadId) {
        lock(&self.listeners).insert(name, thread);
    }

    /// Forgets a listener of the first version.
    pub(crate) fn remove_listener(&self, name: &str) {
        lock(&self.listeners).remove(name);
    }

    /// Closes all subscribers once what they were given is done.
    pub(crate) fn leave(&self) {
        self.resources.leave();
        lock(&self.subscribers).clear();
    }

    /// Closes all subscribers like [`Connection::leave`], while their threads go on without this client.
    pub(crate) fn part(&self) {
        // Under the lock, so that no subscriber finds its place between the two.
        let subscribers = lock(&self.subscribers);
        self.has_parted.store(true, Ordering::Relaxed);
        drop(subscribers);
        self.leave();
    }

    /// Whether the client has left threads behind that go on without it.
    pub(crate) fn has_parted(&self) -> bool {
        self.has_parted.load(Ordering::Relaxed)
    }
}

/// The release that a client was written for which says what it can: one with events of the queue if it wants them, else
/// the newest, whose clients alone say anything.
fn implied_release(capabilities: &Capabilities) -> ProtocolRelease {
    match capabilities.dialect {
        Some(Dialect::V1 | Dialect::Both | Dialect::Items) => ProtocolRelease::V077,
        Some(Dialect::V2) | None => ProtocolRelease::V0166,
    }
}

/// Too much is asked at once.
pub(crate) fn overloaded() -> ErrorObject {
    let message = "Server overloaded; retry later.".to_owned();
    ErrorObject { code: OVERLOADED, message, data: None }
}

fn not_initialized() -> ErrorObject {
    ErrorObject::invalid("Not initialized")
}

/// A line that is no message gets no answer in any release; it is told on standard error, where logs go.
fn tracing_line(error: &serde_json::Error) {
    // It may quote the line, and standard error may be a terminal.
    let error = error.to_string().replace(codex_wire::command_line::is_deceptive, "\u{fffd}");
    eprintln!("codex: a line that is no message was passed over: {error}");
}

/// The id of a message of which only the beginning is there, if it comes before everything that nests.
fn leading_id(head: &[u8]) -> Option<RequestId> {
    let rest = head.trim_ascii_start().strip_prefix(b"{")?;
    let flat = rest.split(|byte| matches!(byte, b'{' | b'[')).next()?;
    flat.split(|byte| *byte == b',').find_map(|field| {
        let (name, value) = field.split_at_checked(field.iter().position(|byte| *byte == b':')?)?;
        let value = value[1..].trim_ascii();
        (name.trim_ascii() == b"\"id\"").then(|| serde_json::from_slice(value).ok()).flatten()
    })
}

/// Whether the brackets of a message lie too deep within each other. What stands in quotes does not count.
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
    fn the_id_of_a_line_that_was_skipped_is_found_where_it_comes_first() {
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
