//! A scripted model behind real HTTP, on the loopback interface.
//!
//! It has its own thread and clock, so it works in tests without a runtime and with processes under test.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use codex_model::scripted::{End, Entry, Player, Script, Step, Taken, responses_events};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use crate::answer_wire::AnswerWire;
use crate::http::{RawRequest, Wire};
use crate::socket;

/// The time to wait for something before a test fails.
const PATIENCE: Duration = Duration::from_secs(10);

/// The number of bytes of a body that are collected before they are sent; a pause in the script sends them at once.
const WRITE_SIZE: usize = 64 * 1024;

/// The transfer options of a fake model.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The maximum chunk size of a chunked body, which is used with `keep_alive`.
    pub piece: Option<usize>,
    /// Whether connections stay open after a response.
    pub keep_alive: bool,
    /// Whether `GET …/responses` opens a WebSocket.
    pub websockets: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { piece: None, keep_alive: true, websockets: false }
    }
}

/// A request for an answer, as the model got it.
#[derive(Debug, Clone)]
pub struct Request {
    /// The path with its query.
    pub path: String,
    /// The headers in order of arrival, with names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The script entry that answers it, starting at 1; `None` if the script was exhausted.
    pub entry: Option<usize>,
    /// The connection it came on, starting at 1.
    pub connection: usize,
}

impl Request {
    /// The value of a header, named in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null if it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// An HTTP server that plays a script for `POST …/responses`, `…/chat/completions` or `…/messages`, each in its own
/// format. It stops when dropped.
#[derive(Debug)]
pub struct FakeModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Dropping it stops the server.
    _stop: oneshot::Sender<()>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    options: Options,
    player: Mutex<Player>,
    /// The names that `GET …/models` lists.
    models: Mutex<Vec<String>>,
    requests: watch::Sender<Vec<Request>>,
    connections: watch::Sender<usize>,
    hangups: watch::Sender<usize>,
}

impl FakeModel {
    /// Starts a server for a script, given as JSON.
    ///
    /// # Panics
    /// If the script is wrong or the server cannot start.
    #[must_use]
    pub fn start(script: &str) -> Self {
        Self::with(Options::default(), script)
    }

    /// Starts a server with transfer options.
    ///
    /// # Panics
    /// If the script is wrong or the server cannot start.
    #[must_use]
    pub fn with(options: Options, script: &str) -> Self {
        let script = Script::from_json(script).unwrap_or_else(|error| panic!("{error}"));
        let shared = Arc::new(Shared {
            options,
            player: Mutex::new(Player::new(script)),
            models: Mutex::new(vec!["mock-model".to_owned()]),
            requests: watch::Sender::new(Vec::new()),
            connections: watch::Sender::new(0),
            hangups: watch::Sender::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let address =
            start_server(Arc::clone(&shared), stopped).unwrap_or_else(|error| panic!("no fake model: {error}"));
        Self { address, shared, _stop: stop }
    }

    /// Lists these models from now on. `POST /api/pull` adds another, as Ollama does, unless its name is `missing`.
    #[must_use]
    pub fn listing(self, models: &[&str]) -> Self {
        *self.shared.models() = models.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// The base URL, without a trailing slash.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.borrow().clone()
    }

    /// The number of connections opened so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        *self.shared.connections.borrow()
    }

    /// Waits for this many requests, and returns them.
    ///
    /// # Panics
    /// If they do not arrive within ten seconds.
    pub async fn wait_for_requests(&self, count: usize) -> Vec<Request> {
        wait_for(&self.shared.requests, "requests", |requests| requests.len() >= count).await
    }

    /// Waits until clients have closed this many connections.
    ///
    /// # Panics
    /// If they do not within ten seconds.
    pub async fn wait_for_hangups(&self, count: usize) {
        wait_for(&self.shared.hangups, "closed connections", |hangups| *hangups >= count).await;
    }
}

async fn wait_for<T: Clone>(sender: &watch::Sender<T>, what: &str, enough: impl FnMut(&T) -> bool) -> T {
    let mut receiver = sender.subscribe();
    match tokio::time::timeout(PATIENCE, receiver.wait_for(enough)).await {
        Ok(Ok(value)) => value.clone(),
        Ok(Err(_)) | Err(_) => panic!("waited in vain for {what}"),
    }
}

fn start_server(shared: Arc<Shared>, stopped: oneshot::Receiver<()>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name("fake model".to_owned()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = stopped => {}
                failed = accept(shared, listener) => { let _ = failed; }
            }
        });
    })?;
    Ok(address)
}

async fn accept(shared: Arc<Shared>, listener: TcpListener) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        shared.connections.send_modify(|count| *count += 1);
        let number = *shared.connections.borrow();
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            if shared.serve(Wire::new(stream), number).await.is_err() {
                shared.hangups.send_modify(|count| *count += 1);
            }
        });
    }
}

impl Shared {
    /// Handles requests until we close the connection; an error means that the client did.
    async fn serve(&self, mut wire: Wire, connection: usize) -> io::Result<()> {
        loop {
            let request = wire.read_request().await?;
            let path = request.target.split('?').next().unwrap_or_default();
            if request.method == "GET" && path.ends_with("/responses") && self.options.websockets {
                return socket::serve(self, wire, request, connection).await;
            }
            if request.method == "POST"
                && let Some(mut answer) = AnswerWire::of(path)
            {
                let Taken { number, entry } = self.take(request, connection);
                wire.keep_silent(Some(entry.delay)).await?;
                if entry.plain.is_none() {
                    let end = entry.end.clone();
                    self.stream(&mut wire, entry, number.unwrap_or_default(), &mut answer).await?;
                    match end {
                        End::Reset => return wire.reset(),
                        _ if !self.options.keep_alive => return Ok(()),
                        _ => continue,
                    }
                }
                self.plain(&mut wire, &entry).await?;
            } else if request.method == "GET" && path.ends_with("/models") {
                let list = list(&self.models());
                self.record(request, None, connection);
                self.plain(&mut wire, &list).await?;
            } else if request.method == "POST" && path.ends_with("/api/pull") {
                let pulled = self.pull(&request);
                self.record(request, None, connection);
                self.plain(&mut wire, &pulled).await?;
            } else {
                self.plain(&mut wire, &Entry::refusal(404, "not found")).await?;
            }
            if !self.options.keep_alive {
                return Ok(());
            }
        }
    }

    pub(crate) fn take(&self, request: RawRequest, connection: usize) -> Taken {
        let taken = {
            let mut player = self.player.lock().unwrap_or_else(PoisonError::into_inner);
            player.take(|| request.body.clone())
        };
        self.record(request, taken.number, connection);
        taken
    }

    fn record(&self, request: RawRequest, entry: Option<usize>, connection: usize) {
        let RawRequest { target: path, headers, body, .. } = request;
        let request = Request { path, headers, body, entry, connection };
        self.requests.send_modify(|requests| requests.push(request));
    }

    fn models(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pretends to download a model in two parts.
    fn pull(&self, request: &RawRequest) -> Entry {
        let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let name = asked["model"].as_str().unwrap_or_default();
        let lines = if name == "missing" {
            vec![json!({"error": "pull model manifest: file does not exist"})]
        } else {
            self.models().push(name.to_owned());
            let part =
                |completed: u64| json!({"status": "pulling a", "digest": "a", "total": 4000, "completed": completed});
            vec![json!({"status": "pulling manifest"}), part(0), part(2000), part(4000), json!({"status": "success"})]
        };
        answer(&lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n"))
    }

    async fn plain(&self, wire: &mut Wire, entry: &Entry) -> io::Result<()> {
        let Some(plain) = &entry.plain else { return Ok(()) };
        let mut headers = self.headers(entry, "application/json");
        headers.push(("content-length".to_owned(), plain.body.len().to_string()));
        wire.write_head(plain.status, &headers).await?;
        wire.write(plain.body.as_bytes()).await
    }

    fn headers(&self, entry: &Entry, content_type: &str) -> Vec<(String, String)> {
        let mut headers = vec![("content-type".to_owned(), content_type.to_owned())];
        if !self.options.keep_alive {
            headers.push(("connection".to_owned(), "close".to_owned()));
        }
        headers.extend(entry.headers.iter().cloned());
        headers
    }

    async fn stream(&self, wire: &mut Wire, entry: Entry, number: usize, answer: &mut AnswerWire) -> io::Result<()> {
        let mut headers = self.headers(&entry, "text/event-stream");
        if self.options.keep_alive {
            headers.push(("transfer-encoding".to_owned(), "chunked".to_owned()));
        }
        wire.write_head(200, &headers).await?;
        let is_reset = matches!(entry.end, End::Reset);
        let mut unsent = Vec::new();
        for step in responses_events(entry, number) {
            if !matches!(step, Step::Event(_)) || unsent.len() >= WRITE_SIZE {
                wire.write(&std::mem::take(&mut unsent)).await?;
            }
            match step {
                Step::Event(event) => {
                    answer.translate(event).iter().for_each(|event| self.encode_event(&mut unsent, event));
                }
                Step::Pause(span) => wire.keep_silent(Some(span)).await?,
                Step::Hang => wire.keep_silent(None).await?,
            }
        }
        if self.options.keep_alive && !is_reset {
            unsent.extend_from_slice(b"0\r\n\r\n");
        }
        wire.write(&unsent).await
    }

    fn encode_event(&self, out: &mut Vec<u8>, event: &Value) {
        let kind = event["type"].as_str().map_or_else(String::new, |kind| format!("event: {kind}\n"));
        let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        let text = format!("{kind}data: {data}\n\n");
        if !self.options.keep_alive {
            out.extend_from_slice(text.as_bytes());
            return;
        }
        for piece in text.as_bytes().chunks(self.options.piece.unwrap_or(usize::MAX).max(1)) {
            out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            out.extend_from_slice(piece);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// A list of models.
fn list(names: &[String]) -> Entry {
    let models: Vec<Value> = names.iter().map(|name| json!({"id": name, "object": "model"})).collect();
    answer(&json!({"object": "list", "data": models, "models": []}).to_string())
}

fn answer(body: &str) -> Entry {
    let mut entry = Entry::refusal(200, "");
    if let Some(plain) = &mut entry.plain {
        body.clone_into(&mut plain.body);
    }
    entry
}
