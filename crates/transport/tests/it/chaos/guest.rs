//! A client that is cut off again and again, and keeps its place.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use codex_transport::{Reader, Writer, dial};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use super::cutter::{Allowance, Cutter};
use super::view::View;
use crate::world::World;

/// The time to wait for a message before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client with its state across connections.
pub(super) struct Guest {
    name: usize,
    chance: fastrand::Rng,
    /// Its view of each thread.
    pub(super) views: BTreeMap<String, View>,
    /// Input that may not have arrived: the thread and the client's key.
    unsubscribed: Option<(String, String)>,
    /// Input that has arrived: the thread, the client's key, and the turn.
    pub(super) heard: Vec<(String, String, String)>,
    said: usize,
    /// The number of times that it could resume, and that it had to start over.
    pub(super) went_on: usize,
    pub(super) began_anew: usize,
}

/// The kind of a pending request.
enum Asked {
    Hello,
    Subscribe(String),
    Say,
    Turns(String),
}

/// A connection.
struct Line {
    input: BufReader<Reader>,
    output: Writer,
    next_id: i64,
    asked: HashMap<i64, Asked>,
    /// The turns of each thread, once they were requested.
    turns: BTreeMap<String, Vec<String>>,
}

impl Line {
    /// Sends a request. A broken connection is noticed when reading.
    async fn ask(&mut self, asked: Asked, method: &str, params: Value) {
        self.next_id += 1;
        self.asked.insert(self.next_id, asked);
        self.send(&json!({"id": self.next_id, "method": method, "params": params})).await;
    }

    async fn send(&mut self, message: &Value) {
        if self.output.write_all(format!("{message}\n").as_bytes()).await.is_ok() {
            let _: std::io::Result<()> = self.output.flush().await;
        }
    }

    /// The next complete message; `None` when the connection is gone.
    async fn read(&mut self) -> Option<Value> {
        let mut line = Vec::new();
        let read = tokio::time::timeout(PATIENCE, self.input.read_until(b'\n', &mut line)).await;
        let is_whole = read.expect("a message comes in time").is_ok() && line.ends_with(b"\n");
        is_whole.then(|| serde_json::from_slice(&line).expect("every line is JSON"))
    }
}

impl Guest {
    pub(super) fn new(name: usize, seed: u64, threads: &[String]) -> Self {
        Self {
            name,
            chance: fastrand::Rng::with_seed(seed),
            views: threads.iter().map(|thread| (thread.clone(), View::default())).collect(),
            unsubscribed: None,
            heard: Vec::new(),
            said: 0,
            went_on: 0,
            began_anew: 0,
        }
    }

    /// Connects, resumes, and talks until it is cut off.
    pub(super) async fn visit(&mut self, cutters: &[Cutter]) {
        let cutter = &cutters[self.chance.usize(..cutters.len())];
        cutter.allow(self.draw());
        if let Some(mut line) = self.arrive(cutter).await {
            while let Some(message) = line.read().await {
                self.take(&mut line, message).await;
                self.say_if_idle(&mut line).await;
            }
        }
        self.views.values_mut().for_each(View::cut);
    }

    /// The point where the next connection is cut: during the handshake, early, later, or in one of this client's
    /// messages.
    fn draw(&mut self) -> Allowance {
        match self.chance.u8(..10) {
            0 | 1 => Allowance { to_client: self.chance.u64(..6_000), ..Allowance::ALL },
            2..=6 => Allowance { to_client: self.chance.u64(6_000..120_000), ..Allowance::ALL },
            _ => Allowance { to_server: self.chance.u64(..4_000), ..Allowance::ALL },
        }
    }

    async fn arrive(&mut self, cutter: &Cutter) -> Option<Line> {
        let (input, output) = dial(&cutter.address, Some(&World::token().sent())).await.ok()?;
        let (asked, turns) = (HashMap::new(), BTreeMap::new());
        let mut line = Line { input: BufReader::new(input), output, next_id: 0, asked, turns };
        line.ask(Asked::Hello, "initialize", json!({"clientInfo": {"name": "test", "version": "1"}})).await;
        // The order of sending input and subscribing makes no difference.
        let speaks_first = self.chance.bool();
        if speaks_first {
            self.repeat(&mut line).await;
        }
        let mut threads: Vec<String> = self.views.keys().cloned().collect();
        self.chance.shuffle(&mut threads);
        for thread in threads {
            let view = &self.views[&thread];
            let params = json!({"threadId": thread, "after": view.seq, "logId": view.log});
            line.ask(Asked::Subscribe(thread), "thread/subscribe", params).await;
        }
        if !speaks_first {
            self.repeat(&mut line).await;
        }
        Some(line)
    }

    /// Repeats input that may not have arrived.
    async fn repeat(&mut self, line: &mut Line) {
        if let Some((thread, key)) = &self.unsubscribed {
            let input = json!([{"type": "text", "text": format!("This is {key}.")}]);
            let params = json!({"threadId": thread, "input": input, "clientUserMessageId": key});
            line.ask(Asked::Say, "turn/start", params).await;
        }
    }

    /// Sends input to an idle thread, and sometimes to a busy one.
    async fn say_if_idle(&mut self, line: &mut Line) {
        let listens = self.views.values().all(|view| view.is_listening && view.has_caught_up);
        let is_idle = self.views.values().all(View::is_idle);
        if self.unsubscribed.is_none() && listens && (is_idle || self.chance.u8(..100) == 0) {
            let thread = self.chance.choice(self.views.keys()).expect("there are threads").clone();
            self.said += 1;
            self.unsubscribed = Some((thread, format!("{}-{}", self.name, self.said)));
            self.repeat(line).await;
        }
    }

    async fn take(&mut self, line: &mut Line, mut message: Value) {
        let id = message["id"].as_i64();
        match (id, message.get("method").is_some()) {
            (Some(id), false) => {
                assert!(message.get("error").is_none(), "{message}");
                self.answered(line, id, message["result"].take());
            }
            (id, _) => {
                let about = message["params"]["threadId"].as_str();
                if let Some(view) = about.and_then(|thread| self.views.get_mut(thread)) {
                    view.hear(&message);
                }
                if let Some(id) = id {
                    let decision = if self.chance.u8(..8) == 0 { "decline" } else { "accept" };
                    line.send(&json!({"id": id, "result": {"decision": decision}})).await;
                }
            }
        }
    }

    fn answered(&mut self, line: &mut Line, id: i64, answer: Value) {
        match line.asked.remove(&id).expect("it was asked") {
            Asked::Hello => {}
            Asked::Subscribe(thread) => {
                let view = self.views.get_mut(&thread).expect("it is one of ours");
                view.subscribed(&answer);
                *(if answer["reset"] == false { &mut self.went_on } else { &mut self.began_anew }) += 1;
            }
            Asked::Say => {
                let (thread, key) = self.unsubscribed.take().expect("something was said");
                self.heard.push((thread, key, answer["turn"]["id"].as_str().expect("a name").to_owned()));
            }
            Asked::Turns(thread) => {
                let turns = answer["thread"]["turns"].as_array().expect("turns").iter();
                let names = turns.map(|turn| turn["id"].as_str().expect("a name").to_owned());
                line.turns.insert(thread, names.collect());
            }
        }
    }

    /// Connects a last time, sends the remaining input, and reads until everything is over. `all_said` waits for the
    /// others.
    pub(super) async fn conclude(&mut self, cutter: &Cutter, all_said: &tokio::sync::Barrier) {
        cutter.allow(Allowance::ALL);
        let mut line = self.arrive(cutter).await.expect("the server is there");
        while self.unsubscribed.is_some() || !self.views.values().all(|view| view.has_caught_up) {
            self.take_next(&mut line).await;
        }
        all_said.wait().await;
        for thread in self.views.keys().cloned().collect::<Vec<_>>() {
            let params = json!({"threadId": thread, "includeTurns": true});
            line.ask(Asked::Turns(thread), "thread/read", params).await;
        }
        let knows = |line: &Line, thread: &String, view: &View| line.turns.get(thread).is_some_and(|it| view.knows(it));
        while !self.views.iter().all(|(thread, view)| knows(&line, thread, view)) {
            self.take_next(&mut line).await;
        }
    }

    async fn take_next(&mut self, line: &mut Line) {
        let message = line.read().await.expect("the server is there");
        self.take(line, message).await;
    }
}
