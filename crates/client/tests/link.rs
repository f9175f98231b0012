//! A link to a server that a test plays, over connections that break.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use codex_client::approvals::{Approvals, Decision};
use codex_client::{Address, CallError, Event, Link, Options};
use codex_transport::{Limits, Listener, Reader, Shortage, Slots, Writer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::sync::{mpsc, watch};

const QUESTION: &str = "item/commandExecution/requestApproval";

/// The server's side of a connection. It hangs up when it is dropped.
struct Peer {
    input: Lines<BufReader<Reader>>,
    output: Writer,
}

impl Peer {
    async fn read(&mut self) -> Value {
        serde_json::from_str(&self.input.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn write(&mut self, message: Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        self.output.flush().await.unwrap();
    }

    /// Reads a request, and returns its id and its parameters.
    async fn request(&mut self, method: &str) -> (Value, Value) {
        let request = self.read().await;
        assert_eq!(request["method"], method, "{request}");
        (request["id"].clone(), request["params"].clone())
    }

    async fn answer(&mut self, method: &str, result: Value) -> Value {
        let (id, params) = self.request(method).await;
        self.write(json!({"id": id, "result": result})).await;
        params
    }

    async fn greet(&mut self) {
        self.answer("initialize", json!({"userAgent": "codex/0.200.0"})).await;
        assert_eq!(self.read().await["method"], "initialized");
    }
}

/// A server, whose connections the test plays one after the other.
struct Server {
    address: Address,
    peers: mpsc::Receiver<Peer>,
    _folder: TempDir,
    _stop: watch::Sender<bool>,
}

impl Server {
    async fn listen() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("socket");
        let options = codex_transport::Options {
            token: None,
            slots: Slots::new(8),
            limits: Limits::default(),
            shortage: Shortage::default(),
            allows_remote: false,
            takes_bearer: true,
        };
        let listener = Listener::bind(&Address::Unix(Some(path)), options).await.unwrap();
        let (address, (stop, stopping)) = (listener.address().clone(), watch::channel(false));
        let (sender, peers) = mpsc::channel(8);
        let service = move |input, output| {
            let sender = sender.clone();
            async move {
                let peer = Peer { input: BufReader::new(input).lines(), output };
                assert!(sender.send(peer).await.is_ok());
            }
        };
        tokio::spawn(listener.serve(service, stopping));
        Self { address, peers, _folder: folder, _stop: stop }
    }

    /// The next connection, after its handshake.
    async fn peer(&mut self) -> Peer {
        let mut peer = self.peers.recv().await.unwrap();
        peer.greet().await;
        peer
    }

    /// Connects, and returns the first connection too.
    async fn link(&mut self, approvals: impl Fn(u64) -> Approvals + Send + Sync + 'static) -> (Link, Peer) {
        let dialling = Link::dial(self.address.clone(), None, Options::new("test", "1.0"), approvals);
        let (link, peer) = tokio::join!(dialling, self.peer());
        (link.unwrap(), peer)
    }
}

fn named(name: &str) -> Value {
    json!({"threadId": "t", "clientUserMessageId": name})
}

fn call(link: &Link, params: Value) -> tokio::task::JoinHandle<Result<Value, CallError>> {
    let caller = link.caller().clone();
    tokio::spawn(async move { caller.raw("turn/start", params).await })
}

/// Follows the thread `t`, whose last event is 5.
async fn follow(link: &mut Link, peer: &mut Peer) {
    link.follow("t", None);
    let thread = json!({"id": "t", "turns": [], "status": {"type": "idle"}});
    let answer = json!({"thread": thread, "logId": "one", "seq": 5, "reset": false});
    let params = peer.answer("thread/subscribe", answer).await;
    assert_eq!(params, json!({"threadId": "t", "fromNow": true}));
    peer.write(json!({"method": "thread/caughtUp", "params": {"threadId": "t", "logId": "one", "seq": 5}})).await;
    assert!(matches!(link.events().next().await, Some(Event::Thread { whole: false, .. })));
    assert!(matches!(link.events().next().await, Some(Event::Other { .. })));
}

#[tokio::test]
async fn after_a_break_threads_go_on_and_messages_are_sent_again_in_their_order() {
    let mut server = Server::listen().await;
    let (mut link, mut peer) = server.link(|_| Approvals::deny_all()).await;
    follow(&mut link, &mut peer).await;
    let first = call(&link, named("first"));
    peer.request("turn/start").await;
    drop(peer);
    assert_eq!(link.events().next().await, Some(Event::Disconnected));
    assert!(link.lasts());
    let unnamed = link.caller().raw("thread/list", json!({})).await;
    assert_eq!(unnamed, Err(CallError::Closed { method: "thread/list".to_owned() }), "it is not repeated");
    let second = call(&link, named("second"));

    let mut peer = server.peer().await;
    let thread = json!({"id": "t", "turns": [], "status": {"type": "idle"}});
    let answer = json!({"thread": thread, "logId": "one", "seq": 6, "reset": false});
    let params = peer.answer("thread/subscribe", answer).await;
    assert_eq!(params, json!({"threadId": "t", "after": 5, "logId": "one"}));
    let told = link.events().next().await;
    assert!(matches!(told, Some(Event::Thread { whole: false, .. })), "{told:?}");
    assert_eq!(link.events().next().await, Some(Event::Reconnected { refused: BTreeMap::new() }));
    for (calling, name) in [(first, "first"), (second, "second")] {
        assert_eq!(peer.answer("turn/start", json!({"turn": {"id": name}})).await, named(name));
        assert_eq!(calling.await.unwrap(), Ok(json!({"turn": {"id": name}})));
    }
    link.close();
    assert!(peer.input.next_line().await.unwrap().is_none(), "it hangs up");
    drop(peer);
    assert_eq!(link.events().next().await, None);
    assert!(!link.lasts());
}

#[tokio::test]
async fn a_thread_that_the_server_does_not_know_any_more_is_named() {
    let mut server = Server::listen().await;
    let (mut link, mut peer) = server.link(|_| Approvals::deny_all()).await;
    follow(&mut link, &mut peer).await;
    drop(peer);
    assert_eq!(link.events().next().await, Some(Event::Disconnected));
    let mut peer = server.peer().await;
    for method in ["thread/subscribe", "thread/resume"] {
        let (id, _) = peer.request(method).await;
        peer.write(json!({"id": id, "error": {"code": -32600, "message": "no such thread"}})).await;
    }
    let refused = BTreeMap::from([("t".to_owned(), "no such thread".to_owned())]);
    assert_eq!(link.events().next().await, Some(Event::Reconnected { refused }));
}

#[tokio::test]
async fn each_connection_asks_its_own_questions() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    let mut server = Server::listen().await;
    let (mut link, mut peer) = server
        .link(move |connection| {
            let noted = Arc::clone(&noted);
            Approvals::handler(move |ask| {
                noted.lock().unwrap().push((connection, ask.id.clone()));
                // Nobody answers the first one.
                let is_first = connection == 0;
                async move { if is_first { std::future::pending().await } else { Decision::Allow } }
            })
        })
        .await;
    let question = json!({"id": 7, "method": QUESTION, "params": {"threadId": "t"}});
    peer.write(question.clone()).await;
    assert!(matches!(link.events().next().await, Some(Event::Asked { .. })));
    drop(peer);
    assert_eq!(link.events().next().await, Some(Event::Disconnected));
    let mut peer = server.peer().await;
    assert!(matches!(link.events().next().await, Some(Event::Reconnected { .. })));
    peer.write(question).await;
    assert_eq!(peer.read().await, json!({"id": 7, "result": {"decision": "accept"}}));
    let numbers: Vec<u64> = asked.lock().unwrap().iter().map(|(connection, _)| *connection).collect();
    assert_eq!(numbers, [0, 1]);
}

#[tokio::test]
async fn a_connection_that_cannot_be_dialled_ends_with_its_first_break() {
    let (near, far) = tokio::io::duplex(1024);
    let (input, output) = tokio::io::split(far);
    let mut peer = Peer { input: BufReader::new(Box::new(input) as Reader).lines(), output: Box::new(output) };
    let (input, output) = tokio::io::split(near);
    let connecting = codex_client::connect(input, output, Options::new("test", "1.0"), Approvals::deny_all());
    let (connected, ()) = tokio::join!(connecting, peer.greet());
    let mut link = Link::once(connected.unwrap());
    assert!(!link.lasts());
    let calling = call(&link, named("first"));
    peer.request("turn/start").await;
    drop(peer);
    assert_eq!(calling.await.unwrap(), Err(CallError::Closed { method: "turn/start".to_owned() }));
    assert_eq!(link.events().next().await, None);
}
