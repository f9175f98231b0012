//! Several real servers that share one database, each with a client.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use codex_testkit::{PostgresCluster, postgres_cluster};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::{Value, json};

use crate::program::Place;

/// The time to wait for a message before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

const CONFIG: &str = "model_provider = 'mine'\napproval_policy = 'never'\nsandbox_mode = 'danger-full-access'\n\
                      [model_providers.mine]\nname = 'Mine'\nwire_api = 'scripted'\nscript = 'script.json'\n";

/// A new schema in the database, and the folder in which all its servers work.
pub(crate) struct Shared {
    pub(crate) database: &'static PostgresCluster,
    pub(crate) schema: String,
    pub(crate) workspace: Place,
}

impl Shared {
    /// `None` where PostgreSQL is not installed.
    pub(crate) fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let database = postgres_cluster()?;
        let schema = format!("servers_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        Some(Self { database, schema, workspace: Place::new() })
    }

    /// Runs a statement, in which `@.` stands for the schema.
    pub(crate) fn sql(&self, statement: &str) -> String {
        self.database.sql(&statement.replace("@.", &format!("{}.", self.schema))).join(",")
    }

    /// The home of a process that shares the database, with a script for its model.
    pub(crate) fn place(&self, script: &str) -> Place {
        let place = Place::new().file("home/config.toml", CONFIG).file("home/script.json", script);
        let place = place.variable("CODEX_STORE_URL", &self.database.url());
        place.variable("PATH", &std::env::var("PATH").unwrap_or_default())
    }

    /// Starts a server with a name, a script for its model, and more settings.
    pub(crate) fn server(&self, name: &str, script: &str, settings: &[&str]) -> Server {
        self.server_at(self.place(script), name, &[], settings)
    }

    /// Starts a server with a home of its own, which also listens at other addresses.
    pub(crate) fn server_at(&self, place: Place, name: &str, listen: &[&str], settings: &[&str]) -> Server {
        let socket = place.path("home/run/app-server.sock");
        let mut named = vec![
            format!("store.server_name={name}"),
            format!("store.schema={}", self.schema),
            format!("store.advertise=unix://{}", socket.display()),
        ];
        named.extend(settings.iter().map(|setting| (*setting).to_owned()));
        let settings = named.iter().flat_map(|setting| ["-c", setting.as_str()]);
        let listen = listen.iter().chain(&["unix://"]).flat_map(|address| ["--listen", *address]);
        let words: Vec<&str> = ["app-server"].into_iter().chain(listen).chain(settings).collect();
        let mut command = place.command(&words);
        command.current_dir(self.workspace.path("project")).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut addresses = Vec::new();
        while !addresses.last().is_some_and(|last: &String| last.starts_with("unix:")) {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).expect("it is text") > 0, "the server has ended");
            addresses.extend(line.strip_prefix("listening on ").map(|address| address.trim().to_owned()));
        }
        let (sender, notes) = channel();
        std::thread::spawn(move || {
            // Nobody may want to know, but the server must not be kept from writing.
            for note in stderr.lines().map_while(Result::ok) {
                let _: Result<(), _> = sender.send(note);
            }
        });
        Server { child, socket, addresses, notes, place }
    }
}

/// A running server, killed when dropped.
pub(crate) struct Server {
    child: Child,
    socket: PathBuf,
    /// Its addresses, in the order of the command line.
    pub(crate) addresses: Vec<String>,
    /// The lines that it prints once it listens. They end with it.
    pub(crate) notes: Receiver<String>,
    pub(crate) place: Place,
}

impl Server {
    pub(crate) fn client(&self) -> Client {
        self.client_with(&json!({}))
    }

    fn client_with(&self, capabilities: &Value) -> Client {
        let stream = UnixStream::connect(&self.socket).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a deadline");
        let lines = BufReader::new(stream.try_clone().expect("a copy"));
        let mut client = Client { stream, lines, next_id: 0, unread: Vec::new() };
        let info = json!({"name": "test", "version": "1"});
        client.ask("initialize", &json!({"clientInfo": info, "capabilities": capabilities}));
        client
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _: std::io::Result<()> = self.child.kill();
        let _: std::io::Result<std::process::ExitStatus> = self.child.wait();
    }
}

/// A client of one server.
pub(crate) struct Client {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
    next_id: i64,
    /// Messages that came while it waited for others.
    unread: Vec<Value>,
}

impl Client {
    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.stream, "{message}").expect("it reads");
    }

    pub(crate) fn message(&mut self) -> Value {
        if !self.unread.is_empty() {
            return self.unread.remove(0);
        }
        self.read()
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).expect("a message comes in time") > 0, "the server has hung up");
        serde_json::from_str(&line).expect("it is JSON")
    }

    /// Sends a request and returns its response. Other messages are kept for later.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"id": id, "method": method, "params": params}));
        loop {
            let message = self.read();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.unread.push(message);
        }
    }

    /// The same for one that succeeds: its result.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let mut answer = self.request(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Waits for a notification or a server request, and skips those before it.
    pub(crate) fn next(&mut self, method: &str) -> Value {
        loop {
            let message = self.message();
            if message["method"] == method {
                return message;
            }
        }
    }

    pub(crate) fn start_thread(&mut self) -> String {
        self.ask("thread/start", &json!({}))["thread"]["id"].as_str().expect("it has an id").to_owned()
    }

    /// Starts a thread and lets its first turn end.
    pub(crate) fn begin_thread(&mut self) -> String {
        let thread = self.start_thread();
        self.start_turn(&thread, "first");
        self.rest_of_turn();
        thread
    }

    pub(crate) fn start_turn(&mut self, thread: &str, text: &str) -> Value {
        self.ask("turn/start", &json!({"threadId": thread, "input": [{"type": "text", "text": text}]}))
    }

    /// The text that the deltas up to the end of the turn add up to, and the status of the turn.
    pub(crate) fn rest_of_turn(&mut self) -> (String, Value) {
        let mut text = String::new();
        loop {
            let message = self.message();
            match message["method"].as_str() {
                Some("item/agentMessage/delta") => text += message["params"]["delta"].as_str().expect("a text"),
                Some("turn/completed") => return (text, message["params"]["turn"]["status"].clone()),
                _ => {}
            }
        }
    }
}

pub(crate) const TALK: &str =
    r#"[{"items": [{"text": "One two three.", "deltas": ["One ", "two ", "three."]}], "repeat": true}]"#;

/// A command that only ends when it is told to, and then a text.
pub(crate) const COMMAND: &str = r#"[
    {"items": [{"call": "shell", "args": {"command": ["sh", "-c", "echo begun > begun; while ! test -e go; do sleep 0.05; done"], "timeout_ms": 600000}}]},
    {"items": [{"text": "Done."}], "repeat": true}
]"#;

#[test]
fn a_thread_is_served_by_every_server() {
    for settings in [&[][..], &["store.plain_sql=true"]] {
        let Some(shared) = Shared::new() else { return };
        serve_everywhere(&shared, settings);
    }
}

fn serve_everywhere(shared: &Shared, settings: &[&str]) {
    let (a, b) = (shared.server("a", TALK, settings), shared.server("b", "[]", settings));
    let mut at_a = a.client();
    let thread = at_a.start_thread();
    at_a.start_turn(&thread, "first");
    assert_eq!(at_a.rest_of_turn(), ("One two three.".to_owned(), json!("completed")));

    // The model of the second server has nothing to say, so whatever comes is from the first one.
    let mut at_b = b.client();
    let subscribed = at_b.ask("thread/subscribe", &json!({"threadId": thread}));
    assert_eq!(subscribed["thread"]["id"], thread);
    at_b.start_turn(&thread, "second");
    assert_eq!(at_b.rest_of_turn(), ("One two three.".to_owned(), json!("completed")));
    assert_eq!(at_a.rest_of_turn(), ("One two three.".to_owned(), json!("completed")));
    let read = at_b.ask("thread/read", &json!({"threadId": thread, "includeTurns": true}));
    assert_eq!(read["thread"]["turns"].as_array().map(Vec::len), Some(2), "{read}");
    assert_eq!(read["thread"]["status"], json!({"type": "idle"}), "it is loaded, though not here: {read}");

    // Requests about nothing in particular, and copies, are served by the server itself.
    assert_eq!(at_b.ask("thread/loaded/list", &json!({}))["data"], json!([]));
    let copy = at_b.ask("thread/fork", &json!({"threadId": thread}))["thread"]["id"].clone();
    assert_eq!(at_b.ask("thread/loaded/list", &json!({}))["data"], json!([copy]));
    assert_eq!(shared.sql("SELECT count(*) FROM @.threads WHERE epoch > 1"), "0", "nobody took the thread over");
}

#[test]
fn a_question_is_answered_through_any_server_once() {
    let script = r#"[
        {"items": [{"call": "shell", "args": {"command": ["touch", "made"]}}]},
        {"items": [{"text": "Done."}], "repeat": true}
    ]"#;
    let Some(shared) = Shared::new() else { return };
    let settings = ["approval_policy=untrusted"];
    let (a, b) = (shared.server("a", script, &settings), shared.server("b", "[]", &settings));
    let (mut at_a, mut at_b) = (a.client(), b.client());
    let thread = at_a.start_thread();
    // The first question of the other server, so that two servers have asked this client.
    at_b.ask("thread/list", &json!({}));
    at_a.start_turn(&thread, "go");
    let here = at_a.next("item/commandExecution/requestApproval");
    at_b.ask("thread/resume", &json!({"threadId": thread}));
    let there = at_b.next("item/commandExecution/requestApproval");
    assert_ne!(here["id"], there["id"], "the id tells which server asked");
    at_b.send(&json!({"id": there["id"], "result": {"decision": "accept"}}));
    assert_eq!(at_a.next("serverRequest/resolved")["params"]["requestId"], here["id"]);
    assert_eq!(at_b.next("serverRequest/resolved")["params"]["requestId"], there["id"]);
    // An answer that comes too late changes nothing.
    at_a.send(&json!({"id": here["id"], "result": {"decision": "cancel"}}));
    assert_eq!(at_a.rest_of_turn().1, "completed");
    assert_eq!(at_b.rest_of_turn().1, "completed");
    assert!(shared.workspace.path("project/made").exists());
}

#[test]
fn a_client_keeps_its_choices_on_the_way_to_another_server() {
    let Some(shared) = Shared::new() else { return };
    let (a, b) = (shared.server("a", TALK, &[]), shared.server("b", "[]", &[]));
    let mut at_a = a.client();
    let stored = at_a.start_thread();
    at_a.start_turn(&stored, "first");
    at_a.rest_of_turn();
    let mut quiet = b.client_with(&json!({"optOutNotificationMethods": ["item/*"]}));
    quiet.ask("thread/resume", &json!({"threadId": stored}));
    quiet.start_turn(&stored, "second");
    assert_eq!(quiet.rest_of_turn(), (String::new(), json!("completed")));
    let mut old = b.client_with(&json!({"dialect": "v1"}));
    let listener = old.ask("addConversationListener", &json!({"conversationId": stored}));
    assert!(listener["subscriptionId"].is_string(), "{listener}");
    let turn = json!({"conversationId": stored, "items": [{"type": "text", "data": {"text": "third"}}]});
    old.ask("sendUserMessage", &turn);
    assert_eq!(old.next("codex/event/task_complete")["params"]["msg"]["last_agent_message"], "One two three.");
    old.ask("removeConversationListener", &listener);
}

#[test]
fn the_client_of_a_relay_continues_here_when_the_owner_dies() {
    let Some(shared) = Shared::new() else { return };
    let (a, b) = (shared.server("a", COMMAND, &[]), shared.server("b", TALK, &[]));
    let mut at_a = a.client();
    let thread = at_a.start_thread();
    let mut at_b = b.client();
    at_a.start_turn(&thread, "first");
    let begun = at_a.next("item/started");
    assert_eq!(begun["params"]["item"]["type"], "userMessage", "{begun}");
    let subscribed = at_b.ask("thread/subscribe", &json!({"threadId": thread}));
    let seen = subscribed["seq"].as_i64().expect("events have numbers");
    a.signal(Signal::KILL);
    assert_eq!(at_b.next("thread/closed")["params"]["threadId"], thread);
    let again = json!({"threadId": thread, "after": seen, "logId": subscribed["logId"]});
    // Its lease still runs, so nobody may take the thread over.
    let refused = at_b.request("thread/subscribe", &again);
    let text = refused["error"]["message"].as_str().expect("an error").to_owned();
    assert!(text.contains("is open on server a, which cannot be reached: "), "{text}");
    shared.sql("UPDATE @.servers SET expires = now() WHERE name = 'a'");
    let subscribed = at_b.ask("thread/subscribe", &again);
    assert!(subscribed["seq"].as_i64().expect("a number") >= seen, "{subscribed}");
    assert_eq!(shared.sql("SELECT epoch FROM @.threads"), "2");
    assert_eq!(subscribed["reset"], false, "the numbers go on: {subscribed}");
    // The turn that was running is over, and the next one runs here.
    assert_eq!(at_b.next("turn/completed")["params"]["turn"]["status"], "interrupted");
    at_b.next("thread/caughtUp");
    at_b.start_turn(&thread, "second");
    assert_eq!(at_b.rest_of_turn(), ("One two three.".to_owned(), json!("completed")));
}

#[test]
fn clients_hear_that_their_server_has_lost_a_thread_and_miss_nothing_of_it() {
    let Some(shared) = Shared::new() else { return };
    let (a, b) = (shared.server("a", TALK, &[]), shared.server("b", TALK, &[]));
    let (mut at_a, mut at_b) = (a.client(), b.client());
    let thread = at_a.begin_thread();
    let here = at_a.ask("thread/subscribe", &json!({"threadId": thread}));
    let there = at_b.ask("thread/subscribe", &json!({"threadId": thread}));
    // The next renewal finds that the lease has expired. The thread is idle, and its clients wait.
    shared.sql("UPDATE @.servers SET expires = now() WHERE name = 'a'");
    for client in [&mut at_a, &mut at_b] {
        assert_eq!(client.next("thread/closed")["params"]["threadId"], thread);
    }
    let again = |seen: &Value| json!({"threadId": thread, "after": seen["seq"], "logId": seen["logId"]});
    assert_eq!(at_b.ask("thread/subscribe", &again(&there))["reset"], false);
    at_b.start_turn(&thread, "second");
    assert_eq!(at_b.rest_of_turn(), ("One two three.".to_owned(), json!("completed")));
    assert_eq!(at_a.ask("thread/subscribe", &again(&here))["reset"], false);
    assert_eq!(at_a.rest_of_turn().1, "completed", "what has happened meanwhile is told");
    at_a.next("thread/caughtUp");
}

#[test]
fn an_open_question_is_asked_again_by_the_next_owner() {
    let script = r#"[{"items": [{"call": "shell", "args": {"command": ["touch", "made"]}}]}]"#;
    let Some(shared) = Shared::new() else { return };
    let settings = ["approval_policy=untrusted"];
    let (a, b) = (shared.server("a", script, &settings), shared.server("b", TALK, &settings));
    let mut at_a = a.client();
    let thread = at_a.start_thread();
    let subscribed = at_a.ask("thread/subscribe", &json!({"threadId": thread}));
    at_a.start_turn(&thread, "first");
    let mut seen = 0;
    loop {
        let message = at_a.message();
        seen = message["seq"].as_i64().unwrap_or(seen);
        if message["method"] == "item/commandExecution/requestApproval" {
            break;
        }
    }
    a.signal(Signal::KILL);
    shared.sql("UPDATE @.servers SET expires = now() WHERE name = 'a'");
    let mut at_b = b.client();
    let again = json!({"threadId": thread, "after": seen, "logId": subscribed["logId"]});
    let subscribed = at_b.ask("thread/subscribe", &again);
    assert_eq!(subscribed["reset"], false, "{subscribed}");
    let asked = at_b.next("item/commandExecution/requestApproval");
    assert_eq!(asked["params"]["threadId"], thread);
    at_b.send(&json!({"id": asked["id"], "result": {"decision": "accept"}}));
    assert_eq!(at_b.rest_of_turn(), ("One two three.".to_owned(), json!("completed")));
    assert!(shared.workspace.path("project/made").exists());
}

#[test]
fn a_server_that_ends_hands_its_threads_over() {
    let Some(shared) = Shared::new() else { return };
    let (mut a, b) = (shared.server("a", COMMAND, &[]), shared.server("b", TALK, &[]));
    let mut at_a = a.client();
    let thread = at_a.start_thread();
    at_a.start_turn(&thread, "first");
    at_a.next("item/started");
    let told = Instant::now();
    a.signal(Signal::TERM);
    assert_eq!(at_a.next("turn/completed")["params"]["turn"]["status"], "interrupted");
    let moved = at_a.next("server/moved");
    let url = format!("unix://{}", b.socket.display());
    assert_eq!(moved["params"], json!({"servers": [{"name": "b", "url": url}]}));
    let mut at_b = b.client();
    at_b.ask("thread/resume", &json!({"threadId": thread}));
    assert!(told.elapsed() < Duration::from_secs(10), "{:?}", told.elapsed());
    at_b.start_turn(&thread, "second");
    assert_eq!(at_b.rest_of_turn(), ("One two three.".to_owned(), json!("completed")));
    assert_eq!(a.child.wait().expect("it has ended").code(), Some(0));
    assert_eq!(shared.sql("SELECT name FROM @.servers"), "b");
}

/// A thread with one turn in a folder, which a server has given back at its end.
pub(crate) fn thread_given_back(server: &Server, folder: &Path) -> String {
    let mut client = server.client();
    let started = client.ask("thread/start", &json!({"cwd": folder}));
    let thread = started["thread"]["id"].as_str().expect("it has an id").to_owned();
    client.start_turn(&thread, "first");
    client.rest_of_turn();
    server.signal(Signal::TERM);
    client.next("server/moved");
    thread
}

#[test]
fn a_thread_whose_folder_is_not_here_can_be_read_but_not_continued() {
    let Some(shared) = Shared::new() else { return };
    let (a, b) = (shared.server("a", TALK, &[]), shared.server("b", TALK, &[]));
    let folder = shared.workspace.path("project/work");
    std::fs::create_dir(&folder).expect("a folder can be made");
    let thread = thread_given_back(&a, &folder);
    std::fs::remove_dir(&folder).expect("it is empty");
    let mut at_b = b.client();
    let refused = at_b.request("thread/resume", &json!({"threadId": thread}));
    let text = refused["error"]["message"].as_str().expect("an error").to_owned();
    assert!(
        text.contains("work, which does not exist here; it was last open on server a. It can be read here"),
        "{text}"
    );
    let read = at_b.ask("thread/read", &json!({"threadId": thread, "includeTurns": true}));
    assert_eq!(read["thread"]["turns"].as_array().map(Vec::len), Some(1), "{read}");
    // A person may name another folder.
    let here = shared.workspace.path("project");
    assert_eq!(at_b.ask("thread/resume", &json!({"threadId": thread, "cwd": here}))["thread"]["id"], thread);
}

#[test]
fn turns_have_the_configured_time_to_finish() {
    let Some(shared) = Shared::new() else { return };
    let a = shared.server("a", COMMAND, &["store.drain_sec=60"]);
    let mut at_a = a.client();
    let thread = at_a.start_thread();
    at_a.start_turn(&thread, "first");
    while at_a.next("item/started")["params"]["item"]["type"] != "commandExecution" {}
    a.signal(Signal::TERM);
    std::fs::write(shared.workspace.path("project/go"), "").expect("a file can be written");
    assert_eq!(at_a.rest_of_turn().1, "completed");
    assert_eq!(at_a.next("server/moved")["params"], json!({"servers": []}));
}

#[test]
fn the_commands_of_a_halted_server_end_before_its_lease_does() {
    let script = r#"[
        {"items": [{"call": "shell", "args": {"command": ["sh", "-c", "echo $$; sleep 1000; true"]}}]},
        {"items": [{"text": "Done."}], "repeat": true}
    ]"#;
    let Some(shared) = Shared::new() else { return };
    let (a, b) = (shared.server("a", script, &[]), shared.server("b", TALK, &[]));
    let mut at_a = a.client();
    let thread = at_a.start_thread();
    at_a.start_turn(&thread, "first");
    let told = at_a.next("item/commandExecution/outputDelta");
    let pid: i32 = told["params"]["delta"].as_str().and_then(|pid| pid.trim().parse().ok()).expect("its number");
    let command = pidfd_open(Pid::from_raw(pid).expect("a number"), PidfdFlags::empty()).expect("it runs");
    a.signal(Signal::STOP);
    let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
    let ended = poll(&mut [PollFd::new(&command, PollFlags::IN)], Some(&patience)).expect("it can be waited for");
    assert_eq!(ended, 1, "the command ends by itself");
    assert_eq!(shared.sql("SELECT expires > now() FROM @.servers WHERE name = 'a'"), "t", "nobody could take over yet");
    shared.sql("UPDATE @.servers SET expires = now() WHERE name = 'a'");
    let mut at_b = b.client();
    at_b.ask("thread/resume", &json!({"threadId": thread}));
    at_b.start_turn(&thread, "second");
    assert_eq!(at_b.rest_of_turn(), ("One two three.".to_owned(), json!("completed")));
    // The first server wakes up late: it finds that the thread is no longer its own, and asks its owner from now on.
    a.signal(Signal::CONT);
    let mut late = a.client();
    let until = Instant::now() + PATIENCE;
    loop {
        let read = late.request("thread/read", &json!({"threadId": thread, "includeTurns": true}));
        match read["result"]["thread"]["turns"].as_array() {
            Some(turns) if turns.len() == 2 => break,
            _ => assert!(Instant::now() < until, "{read}"),
        }
    }
    assert_eq!(shared.sql("SELECT count(*) FROM @.lines WHERE epoch = 1 AND number > (SELECT min(number) FROM @.lines WHERE epoch = 2)"), "0");
}
