//! Servers and clients that are killed at random moments of a turn: nothing is lost or doubled, every turn has an end,
//! and no process is left.
//!
//! `CODEX_TEST_KILLS` is the number of kills, of servers and of clients in turns.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use codex_client::approvals::Approvals;
use codex_client::registry::Registry;
use codex_client::state::{Item, Thread};
use codex_client::{CallError, Client, Event, Events, Options, State, Supervisor};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::client_library::launch;
use crate::exec::scripted;
use crate::program::Place;

/// The number of kills without a wish.
const FEW: usize = 6;
const AT_ONCE: usize = 6;
/// A kill comes within this time after the beginning of the turn.
const WITHIN_MS: u64 = 500;
/// The time limit of everything that a killed program leaves to do.
const PATIENCE: Duration = Duration::from_secs(60);
const ANSWERS: &str = r#"[
    {"when": "Once more", "repeat": true, "items": [{"text": "Again."}]},
    {"items": [{"reasoning": ["Hm."]},
               {"text": "one two three", "deltas": ["one ", {"pause_ms": 20}, "two ", {"pause_ms": 20}, "three"]},
               {"call": "shell", "args": {"command": ["bash", "-lc", "echo out; sleep 0.02; echo put"]}}]},
    {"items": [{"text": "four five", "deltas": ["four ", {"pause_ms": 20}, "five"]}]}]"#;

/// Everything that a client has seen of one thread.
#[derive(Default)]
struct Seen {
    state: State,
    /// Each item that was completed and each turn that was started or ended, and how often.
    counts: BTreeMap<String, u32>,
    notes: Vec<String>,
}

impl Seen {
    fn take(&mut self, event: &Event) {
        let what = match event {
            Event::ItemCompleted { item, .. } => format!("item {}", item["id"]),
            Event::TurnStarted { turn, .. } => format!("start of {turn}"),
            Event::TurnEnded { turn, .. } => format!("end of {turn}"),
            Event::Note { text } => {
                self.notes.push(text.clone());
                String::new()
            }
            _ => String::new(),
        };
        if !what.is_empty() {
            *self.counts.entry(what).or_default() += 1;
        }
        self.state.apply(event);
    }

    /// The status of the only turn.
    fn status(&self, thread: &str) -> Option<&str> {
        self.state.thread(thread)?.turns().last().map(codex_client::state::Turn::status)
    }
}

/// Texts, commands and their results, by item: they are the same for everybody who follows a thread.
fn essence(thread: &Thread, wants: impl Fn(&Item) -> bool) -> BTreeMap<String, String> {
    let items = thread.turns().iter().flat_map(|turn| turn.items().iter().map(move |item| (turn.id(), item)));
    let told = items.filter(|(_, item)| wants(item)).map(|(turn, item)| {
        let members = item.members();
        let shown = ["text", "summary", "command", "aggregatedOutput", "exitCode", "status"]
            .map(|name| members.get(name).cloned().unwrap_or_default().to_string());
        (item.id().to_owned(), format!("{turn} {} {}", item.kind(), shown.join(" ")))
    });
    told.collect()
}

fn options(registry: &Registry) -> Options {
    Options { numbers: registry.numbers(), deadline: PATIENCE, ..Options::new("kills", "1.0") }
}

/// The connection to a server that may be killed, and what is followed over it.
struct Following {
    supervisor: Supervisor,
    registry: Registry,
    client: Client,
    events: Events,
    seen: Seen,
}

impl Following {
    async fn start(place: &Place) -> Self {
        let registry = Registry::default();
        let server = launch(place, &["app-server"]);
        let mut supervisor = Supervisor::start(server, options(&registry), Approvals::deny_all(), |_| {});
        let (client, events) = supervisor.connection().await.expect("the server starts");
        Self { supervisor, registry, client, events, seen: Seen::default() }
    }

    /// Follows a thread, and sends a turn if a text is given.
    async fn begin(&mut self, thread: &str, text: &str, name: &str) {
        self.registry.follow(thread);
        let input = json!([{"type": "text", "text": text}]);
        let mut params = json!({"threadId": thread, "input": input, "clientUserMessageId": name});
        self.registry.sending(thread, &mut params);
        self.recover().await;
    }

    /// Subscribes and sends, over as many connections as it takes.
    async fn recover(&mut self) {
        while let Err(error) = self.registry.recover(&self.client).await {
            assert!(matches!(error, CallError::Closed { .. }), "{error}");
            self.reconnect().await;
        }
    }

    async fn reconnect(&mut self) {
        while let Some(event) = self.events.next().await {
            self.seen.take(&event);
        }
        (self.client, self.events) = self.supervisor.connection().await.expect("the server comes back");
    }

    /// Reads until the last turn of a thread is over.
    async fn read_to_end(&mut self, thread: &str) {
        while self.seen.status(thread).is_none_or(|status| status == "inProgress") {
            let next = tokio::time::timeout(PATIENCE, self.events.next()).await;
            if let Some(event) = next.unwrap_or_else(|_| panic!("the turn has no end: {}", self.seen.state.to_value()))
            {
                self.seen.take(&event);
            } else {
                self.reconnect().await;
                self.recover().await;
            }
        }
    }

    /// The thread as it is stored.
    async fn stored(&mut self, thread: &str) -> State {
        let params = json!({"threadId": thread, "includeTurns": true});
        loop {
            match self.client.raw("thread/read", params.clone()).await {
                Ok(answer) => {
                    let mut state = State::default();
                    state.apply(&codex_client::router::response(&answer).expect("it is a thread"));
                    return state;
                }
                Err(CallError::Closed { .. }) => {
                    self.reconnect().await;
                    self.recover().await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Checks what was seen against what is stored, and that the thread goes on.
    async fn check(&mut self, thread: &str) -> String {
        let stored = self.stored(thread).await;
        let stored = stored.thread(thread).expect("it is stored");
        let status = self.seen.status(thread).expect("it has a turn").to_owned();
        assert!(["completed", "interrupted"].contains(&status.as_str()), "{status}");
        assert_eq!(stored.turns().len(), 1, "no turn is lost or doubled");
        self.settle(thread, stored).await;
        for (what, count) in &self.seen.counts {
            assert_eq!(*count, 1, "{what} is told once; {:?}", self.seen.counts);
        }
        // A number that comes again is left out by the library, which says so.
        let odd: Vec<_> = self.seen.notes.iter().filter(|note| !note.ends_with("was reported already")).collect();
        assert!(odd.is_empty(), "{odd:?}");
        self.begin(thread, "Once more.", "again").await;
        self.read_second(thread).await;
        status
    }

    /// Reads until everything that is stored was seen. A server that finds a turn that was cut ends its calls, and an
    /// item that broke off has no end.
    async fn settle(&mut self, thread: &str, stored: &Thread) {
        loop {
            let seen = self.seen.state.thread(thread).expect("it was seen");
            let (all, open) = (essence(seen, |_| true), essence(seen, |item| !item.is_complete()));
            let stored = essence(stored, |_| true);
            let missing: Vec<_> = stored.iter().filter(|(id, told)| all.get(*id) != Some(told)).collect();
            if missing.iter().all(|(id, _)| open.contains_key(*id)) {
                let lost: Vec<_> =
                    all.keys().filter(|id| !stored.contains_key(*id) && !open.contains_key(*id)).collect();
                assert!(lost.is_empty(), "seen and not stored: {lost:?}");
                return;
            }
            let next = tokio::time::timeout(PATIENCE, self.events.next()).await;
            let Ok(Some(event)) = next else { panic!("stored and not seen: {missing:?}; seen: {all:?}") };
            self.seen.take(&event);
        }
    }

    async fn read_second(&mut self, thread: &str) {
        let is_over = |state: &State| {
            let turns = state.thread(thread).map(Thread::turns).unwrap_or_default();
            turns.len() == 2 && turns[1].status() != "inProgress"
        };
        while !is_over(&self.seen.state) {
            let next = tokio::time::timeout(PATIENCE, self.events.next()).await;
            let event = next.unwrap_or_else(|_| panic!("no second turn: {}", self.seen.state.to_value()));
            self.seen.take(&event.expect("this server is not killed"));
        }
        let turns = self.seen.state.thread(thread).expect("it was seen").turns();
        assert_eq!(turns[1].status(), "completed");
        assert!(turns[1].items().iter().any(|item| item.members().get("text") == Some(&json!("Again."))));
    }
}

async fn start_thread(client: &Client) -> String {
    let opened = client.raw("thread/start", json!({"sandbox": "read-only", "approvalPolicy": "never"})).await;
    opened.expect("a thread starts")["thread"]["id"].as_str().expect("it has an id").to_owned()
}

/// Kills a server at some moment of a turn.
async fn kill_server(place: &Place) -> String {
    let mut following = Following::start(place).await;
    let thread = start_thread(&following.client).await;
    let pid = following.supervisor.pid().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    let moment = Duration::from_millis(fastrand::u64(0..WITHIN_MS));
    let killer = tokio::spawn(async move {
        tokio::time::sleep(moment).await;
        kill_process(pid.expect("it runs"), Signal::KILL).expect("it runs");
    });
    following.begin(&thread, "Begin.", "begin").await;
    following.read_to_end(&thread).await;
    killer.await.expect("it is killed");
    let status = following.check(&thread).await;
    following.supervisor.stop().await;
    status
}

/// Kills a client, with its server, at some moment of a turn. Another one goes on in its place.
async fn kill_client(place: &Place) -> String {
    let (mut child, thread) = start_client(place);
    tokio::time::sleep(Duration::from_millis(fastrand::u64(0..WITHIN_MS))).await;
    child.kill().and_then(|()| child.wait()).expect("it is killed");
    let mut following = Following::start(place).await;
    // The server of the killed one notices the end of its input, and closes the thread.
    let until = Instant::now() + PATIENCE;
    while let Err(error) = following.client.raw("thread/resume", json!({"threadId": thread})).await {
        assert!(Instant::now() < until, "{error}");
        tokio::task::yield_now().await;
    }
    following.begin(&thread, "Begin.", "begin").await;
    following.read_to_end(&thread).await;
    let status = following.check(&thread).await;
    following.supervisor.stop().await;
    status
}

/// Starts a client in a process of its own, and returns its thread.
fn start_client(place: &Place) -> (Child, String) {
    let mut command = Command::new(std::env::current_exe().expect("this test is a program"));
    command.args(["kills::a_client_that_may_be_killed", "--exact", "--nocapture", "--test-threads", "1"]);
    command.env(PLACE, place.path("")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("a client starts");
    let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let mut threads = lines.map_while(Result::ok).filter_map(|line| Some(line.split_once("thread: ")?.1.to_owned()));
    let thread = threads.next().expect("it tells its thread");
    (child, thread)
}

const PLACE: &str = "CODEX_TEST_KILLED_CLIENT";

/// A client for [`kill_client`]; without its variable there is nothing to do.
#[test]
fn a_client_that_may_be_killed() {
    let Some(folder) = std::env::var_os(PLACE) else { return };
    let place = Place::at(Path::new(&folder));
    run(async {
        let mut following = Following::start(&place).await;
        let thread = start_thread(&following.client).await;
        eprintln!("thread: {thread}");
        following.begin(&thread, "Begin.", "begin").await;
        following.read_to_end(&thread).await;
        // It stays until it is killed.
        std::future::pending::<()>().await;
    });
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts").block_on(future)
}

/// The processes that work in a folder or have it in their environment.
fn processes(folder: &Path) -> Vec<String> {
    let needle = folder.display().to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().into_string().ok()?.parse::<u32>().ok());
    let is_there = |pid: &u32| {
        let is_alive = std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|it| it.contains("VmRSS"));
        let variables = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        is_alive && (String::from_utf8_lossy(&variables).contains(&needle) || cwd.starts_with(folder))
    };
    let shown =
        |pid: u32| format!("{pid} {}", std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default());
    pids.filter(is_there).map(shown).collect()
}

#[test]
fn nothing_is_lost_or_doubled_and_no_process_is_left() {
    let wish = std::env::var("CODEX_TEST_KILLS").ok().and_then(|count| count.parse().ok());
    let kills: usize = wish.unwrap_or(FEW);
    let place = std::sync::Arc::new(scripted(ANSWERS));
    let mut ends = BTreeMap::<String, usize>::new();
    run(async {
        for first in (0..kills).step_by(AT_ONCE) {
            let batch: Vec<_> = (first..kills.min(first + AT_ONCE))
                .map(|number| {
                    let place = std::sync::Arc::clone(&place);
                    tokio::spawn(async move {
                        let killing = async {
                            let is_server = number % 2 == 0;
                            let status = if is_server { kill_server(&place).await } else { kill_client(&place).await };
                            format!("{} killed, turn {status}", if is_server { "server" } else { "client" })
                        };
                        tokio::time::timeout(3 * PATIENCE, killing).await.expect("it ends in time")
                    })
                })
                .collect();
            for killed in batch {
                *ends.entry(killed.await.expect("a kill is survived")).or_default() += 1;
            }
        }
    });
    eprintln!("{kills} kills: {ends:?}");
    let until = Instant::now() + PATIENCE;
    while !processes(&place.path("")).is_empty() {
        assert!(Instant::now() < until, "{:?}", processes(&place.path("")));
        std::thread::yield_now();
    }
    assert_eq!(ends.values().sum::<usize>(), kills);
}
