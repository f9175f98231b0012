//! The cost of a subscriber: an event is encoded once for all subscribers of one kind, so ten cost at most three times
//! one.
//!
//! `cargo test -p codex-server --test subscribers -- --nocapture` prints the figures. They are the CPU time of the
//! whole process, including the scripted model and the engine. The test has its own binary so that no other test is
//! counted.

#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "a test may fail where it stands")]

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use codex_config::{ConfigSource, Env, Home, Overrides};
use codex_dialects::ProtocolRelease;
use codex_engine::{CredentialsSource, HostOptions, LocalHost};
use codex_login::Accounts;
use codex_server::app::{AppServer, Start};
use codex_store::FileStore;
use codex_wire::rollout::SessionSource;
use serde_json::{Value, json};
use tokio::io::{AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::Notify;

/// The number of deltas of a turn.
const DELTAS: usize = 4000;
/// The number of deltas after which the model pauses, so that no subscriber falls behind and receives merged ones.
const AT_ONCE: usize = 40;
/// The number of measurements for each number of subscribers; the smallest counts.
const ROUNDS: usize = 3;

/// The messages that a client received.
#[derive(Clone, Default)]
struct Received {
    bytes: Arc<Mutex<Vec<u8>>>,
    more: Arc<Notify>,
}

impl AsyncWrite for Received {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.bytes.lock().expect("nobody panics").extend_from_slice(bytes);
        self.more.notify_one();
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Received {
    /// Waits until a message has arrived, checking only the end of the input, and discards everything before it.
    async fn until(&self, what: &str) -> String {
        loop {
            let told = {
                let mut bytes = self.bytes.lock().expect("nobody panics");
                let end = bytes.len().saturating_sub(64 * 1024);
                let is_there = String::from_utf8_lossy(&bytes[end..]).contains(what);
                is_there.then(|| std::mem::take(&mut *bytes))
            };
            if let Some(told) = told {
                return String::from_utf8(told).expect("a text");
            }
            tokio::time::timeout(Duration::from_secs(60), self.more.notified()).await.expect("it comes in time");
        }
    }
}

/// A client that reads everything immediately.
struct Client {
    input: DuplexStream,
    told: Received,
}

impl Client {
    async fn new(server: &AppServer) -> Self {
        let (input, read) = duplex(64 * 1024);
        let told = Received::default();
        let (server, output) = (server.clone(), told.clone());
        tokio::spawn(async move { server.serve(read, output).await });
        let mut client = Self { input, told };
        client.call("initialize", json!({"clientInfo": {"name": "test", "version": "1"}})).await;
        client
    }

    async fn send(&mut self, method: &str, params: Value) {
        let line = format!("{}\n", json!({"id": 1, "method": method, "params": params}));
        self.input.write_all(line.as_bytes()).await.expect("the server reads");
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.send(method, params).await;
        let told = self.told.until("{\"id\":1,").await;
        let answer = told.lines().find(|line| line.starts_with("{\"id\":1,")).expect("it is there");
        serde_json::from_str::<Value>(answer).expect("every line is JSON")["result"].take()
    }
}

fn server(root: &std::path::Path, release: ProtocolRelease) -> AppServer {
    let home = Home::at(root);
    let pieces = (0..DELTAS).flat_map(|number| {
        let pause = (number % AT_ONCE == 0).then(|| json!({"pause_ms": 1}));
        [Some(json!("some words ")), pause].into_iter().flatten()
    });
    let text = "some words ".repeat(DELTAS);
    let script = json!([{"items": [{"text": text, "deltas": pieces.collect::<Vec<_>>()}], "repeat": true}]);
    std::fs::write(root.join("script.json"), script.to_string()).expect("a file can be written");
    let config = "model_provider = 'mine'\n[model_providers.mine]\nname = 'Mine'\nwire_api = 'scripted'\nscript = 'script.json'\n";
    std::fs::write(home.config_file(), config).expect("a file can be written");
    let store = Arc::new(FileStore::of(home.path()));
    let config = Arc::new(ConfigSource::new(home, Env::from_iter([("TERM", "dumb")]), Overrides::default()));
    let accounts = Accounts::new(config.home(), config.env());
    let logins = Arc::new(accounts.clone());
    let threads = LocalHost::new(HostOptions {
        agents: None,
        servers: None,
        config: Arc::clone(&config),
        store: store.clone(),
        cwd: root.to_owned(),
        programs: None,
        credentials: CredentialsSource::new(move |config, provider| accounts.credentials(config.login(), provider)),
        originator: "test".to_owned(),
        source: SessionSource::VsCode,
        recent_bytes: 0,
    });
    AppServer::new(Start {
        servers: None,
        threads: Arc::new(threads),
        accounts: logins,
        store,
        config,
        cwd: root.to_owned(),
        programs: None,
        originator: "test".to_owned(),
        release: Some(release),
        dialect: None,
        delta_interval: None,
    })
}

/// The CPU time of all threads of this process.
fn cpu() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").expect("it is Linux");
    let time = |task: std::io::Result<std::fs::DirEntry>| {
        let stat = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        stat.split_whitespace().next()?.parse::<u64>().ok()
    };
    Duration::from_nanos(tasks.filter_map(time).sum())
}

/// The cost of a delta with this many subscribers.
async fn cost(server: &AppServer, count: usize) -> Duration {
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(Client::new(server).await);
    }
    let started = clients[0].call("thread/start", json!({})).await;
    let thread = started["thread"]["id"].as_str().expect("a name").to_owned();
    for client in &mut clients[1..] {
        client.call("thread/resume", json!({"threadId": thread})).await;
    }
    let mut least = Duration::MAX;
    for _ in 0..ROUNDS {
        let before = cpu();
        let input = json!([{"type": "text", "text": "Go on"}]);
        clients[0].send("turn/start", json!({"threadId": thread, "input": input})).await;
        let mut told = Vec::new();
        for client in &clients {
            told.push(client.told.until("\"turn/completed\"").await);
        }
        least = least.min(cpu().saturating_sub(before));
        for told in told {
            let deltas = told.lines().filter(|line| line.starts_with("{\"method\":\"item/agentMessage/delta\""));
            assert_eq!(deltas.count(), DELTAS, "nobody fell behind");
        }
    }
    least / u32::try_from(DELTAS).expect("few")
}

#[expect(clippy::print_stdout, reason = "whoever runs this wants to see the figures")]
fn print(figures: &str) {
    println!("{figures}");
}

#[tokio::test]
async fn ten_subscribers_cost_at_most_three_times_one() {
    for release in [ProtocolRelease::V0166, ProtocolRelease::V077] {
        let home = tempfile::tempdir().expect("a folder can be made");
        let server = server(&home.path().canonicalize().expect("it exists"), release);
        let (one, ten) = (cost(&server, 1).await, cost(&server, 10).await);
        print(&format!("{release:?}: {one:?} of CPU for a delta with one subscriber, {ten:?} with ten"));
        assert!(ten <= one * 3, "{release:?}: {one:?} with one subscriber, {ten:?} with ten");
        server.close().await;
    }
}
