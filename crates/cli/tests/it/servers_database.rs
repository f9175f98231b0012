//! Servers whose database is away for a while, and homes that are imported while they are used.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use codex_testkit::Pooler;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::eventually;
use crate::servers::{COMMAND, Client, Server, Shared, TALK};

/// A way to the database that can be closed.
struct Gate {
    socket: PathBuf,
    database: PathBuf,
    open: Arc<Mutex<Option<Vec<UnixStream>>>>,
    _folder: tempfile::TempDir,
}

impl Gate {
    fn new(shared: &Shared) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join(".s.PGSQL.5432");
        let gate = Self { socket, database: shared.database.socket(), open: Arc::default(), _folder: folder };
        gate.open();
        gate
    }

    fn url(&self) -> String {
        let folder = self.socket.parent().expect("it has a folder").display().to_string();
        format!("postgres://postgres@{}/postgres", folder.replace('/', "%2F"))
    }

    fn open(&self) {
        *self.open.lock().expect("it holds") = Some(Vec::new());
        let listener = UnixListener::bind(&self.socket).expect("the place is free");
        let (open, database) = (Arc::clone(&self.open), self.database.clone());
        std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let Ok(server) = UnixStream::connect(&database) else { continue };
                let copies = [&client, &server].map(|stream| stream.try_clone().expect("a copy"));
                // A connection that came while the gate was closed ends.
                let Some(known) = &mut *open.lock().expect("it holds") else { return };
                known.extend(copies);
                for (mut from, mut to) in
                    [(client.try_clone().expect("a copy"), server.try_clone().expect("a copy")), (server, client)]
                {
                    std::thread::spawn(move || {
                        // It ends when either side hangs up.
                        let _: std::io::Result<u64> = std::io::copy(&mut from, &mut to);
                        let _: std::io::Result<()> = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
    }

    fn close(&self) {
        let open = self.open.lock().expect("it holds").take();
        // The listener ends with the connection that finds the gate closed.
        let _: std::io::Result<UnixStream> = UnixStream::connect(&self.socket);
        std::fs::remove_file(&self.socket).expect("it is there");
        for stream in open.into_iter().flatten() {
            let _: std::io::Result<()> = stream.shutdown(Shutdown::Both);
        }
    }
}

/// The status and the text of `/readyz`.
fn readiness(server: &Server) -> (String, String) {
    let address = server.addresses[0].strip_prefix("ws://").expect("it is the first address");
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, text) = answer.split_once("\r\n\r\n").expect("a response");
    (head.get(9..12).unwrap_or_default().to_owned(), text.trim().to_owned())
}

/// A server behind a gate, with a client whose turn runs a command.
fn running_command(shared: &Shared, gate: &Gate, settings: &[&str]) -> (Server, Client, String) {
    let place = shared.place(COMMAND).variable("CODEX_STORE_URL", &gate.url());
    let server = shared.server_at(place, "a", &["ws://127.0.0.1:0"], settings);
    let mut client = server.client();
    let thread = client.start_thread();
    client.start_turn(&thread, "first");
    while client.next("item/started")["params"]["item"]["type"] != "commandExecution" {}
    (server, client, thread)
}

/// Lets the command of a turn end.
fn go(shared: &Shared) {
    std::fs::write(shared.workspace.path("project/go"), "").expect("a file can be written");
}

/// The messages up to the end of the turn.
fn rest(client: &mut Client) -> Vec<Value> {
    let mut messages = vec![client.message()];
    while messages.last().is_some_and(|last| last["method"] != "turn/completed") {
        messages.push(client.message());
    }
    messages
}

#[test]
fn a_turn_fails_after_the_patience_and_work_goes_on_when_the_database_is_back() {
    let Some(shared) = Shared::new() else { return };
    let gate = Gate::new(&shared);
    let (server, mut client, thread) = running_command(&shared, &gate, &["store.patience_sec=2"]);
    assert_eq!(readiness(&server).0, "200");
    let stored = shared.sql("SELECT count(*) FROM @.lines");
    gate.close();
    let closed = Instant::now();
    go(&shared);
    let messages = rest(&mut client);
    assert!(closed.elapsed().as_secs() >= 1, "it was patient for {:?}", closed.elapsed());
    let told = |method: &str| messages.iter().filter(|message| message["method"] == method).count();
    assert_eq!(told("item/completed"), 0, "the command has ended, but that is not saved: {messages:?}");
    let turn = &messages.last().expect("the end")["params"]["turn"];
    let why = turn["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert_eq!(turn["status"], "failed", "{turn}");
    assert!(why.contains("cannot be reached"), "{why}");
    assert_eq!(shared.sql("SELECT count(*) FROM @.lines"), stored, "nothing of it is stored");

    eventually("it is not ready", || readiness(&server).0 == "503");
    assert_eq!(readiness(&server).1, "the database cannot be reached");
    gate.open();
    eventually("it is ready", || readiness(&server).0 == "200");
    let mut again = server.client();
    let read = again.ask("thread/read", &json!({"threadId": thread, "includeTurns": true}));
    assert_eq!(read["thread"]["turns"].as_array().map(Vec::len), Some(1), "{read}");
    again.ask("thread/resume", &json!({"threadId": thread}));
    again.start_turn(&thread, "second");
    assert_eq!(again.rest_of_turn().1, "completed");
    assert_eq!(shared.sql("SELECT count(DISTINCT owner) FROM @.threads"), "1");
}

#[test]
fn commits_wait_for_a_database_that_comes_back_in_time() {
    let Some(shared) = Shared::new() else { return };
    let gate = Gate::new(&shared);
    let (_server, mut client, thread) = running_command(&shared, &gate, &[]);
    gate.close();
    go(&shared);
    // The command has ended, and its end waits to be stored: the answer to this request comes without it.
    client.ask("thread/loaded/list", &json!({}));
    gate.open();
    let messages = rest(&mut client);
    let turn = &messages.last().expect("the end")["params"]["turn"];
    assert_eq!(turn["status"], "completed", "{turn}");
    let completed: Vec<&str> = messages
        .iter()
        .filter(|message| message["method"] == "item/completed")
        .filter_map(|message| message["params"]["item"]["type"].as_str())
        .collect();
    assert_eq!(completed, ["commandExecution", "agentMessage"], "each is told once");
    let read = client.ask("thread/read", &json!({"threadId": thread, "includeTurns": true}));
    assert_eq!(read["thread"]["turns"][0]["status"], "completed");
}

/// A pooler gives every transaction another session.
#[test]
fn servers_work_behind_a_pooler() {
    let Some(shared) = Shared::new() else { return };
    let pooler = Pooler::start(shared.database, "pool_mode = transaction");
    let Some(pooler) = pooler else { return };
    let server = |name, script| {
        shared.server_at(shared.place(script).variable("CODEX_STORE_URL", &pooler.url()), name, &[], &[])
    };
    let (a, b) = (server("a", COMMAND), server("b", TALK));
    let (mut at_a, mut at_b) = (a.client(), b.client());
    let thread = at_a.start_thread();
    at_a.start_turn(&thread, "first");
    while at_a.next("item/started")["params"]["item"]["type"] != "commandExecution" {}
    at_b.ask("thread/subscribe", &json!({"threadId": thread}));
    go(&shared);
    assert_eq!(at_b.rest_of_turn(), ("Done.".to_owned(), json!("completed")), "it ran at the first one");
    a.signal(Signal::TERM);
    at_a.next("server/moved");
    at_b.ask("thread/resume", &json!({"threadId": thread}));
    at_b.start_turn(&thread, "second");
    assert_eq!(at_b.rest_of_turn(), ("One two three.".to_owned(), json!("completed")));
    assert_eq!(shared.sql("SELECT epoch FROM @.threads"), "2");
}

#[test]
fn a_home_is_imported_while_another_process_writes_to_it() {
    let Some(shared) = Shared::new() else { return };
    // A server with files. Its home is the one that is imported.
    let place = shared.place(COMMAND).variable("CODEX_STORE_URL", "");
    let files = shared.server_at(place, "files", &[], &[]);
    let mut client = files.client();
    let thread = client.start_thread();
    client.start_turn(&thread, "first");
    while client.next("item/started")["params"]["item"]["type"] != "commandExecution" {}

    let home = files.place.path("home").display().to_string();
    let schema = format!("store.schema={}", shared.schema);
    let store = |words: &[&str]| {
        let run = shared.place("[]").run(&[&["store", "-c", &schema], words].concat(), "");
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{words:?}: {}", run.stdout);
        run.stdout
    };
    assert_eq!(store(&["import", &home]), "1 threads copied, 0 were there already, 0 have problems\n");
    let first: u64 = shared.sql("SELECT count(*) FROM @.lines").parse().expect("a number");
    assert_eq!(store(&["import", &home]), "0 threads copied, 1 were there already, 0 have problems\n");
    go(&shared);
    assert_eq!(client.rest_of_turn().1, "completed", "the writer was not disturbed");
    assert_eq!(store(&["import", &home]), "1 threads copied, 0 were there already, 0 have problems\n");
    let second: u64 = shared.sql("SELECT count(*) FROM @.lines").parse().expect("a number");
    assert!(first > 0 && second > first, "{first} lines, then {second}");
    assert!(store(&["check"]).ends_with(" 0 problems\n"));

    // The export has what the other process has written.
    let copy = tempfile::tempdir().expect("a folder");
    store(&["export", &copy.path().display().to_string()]);
    let rollout = client.ask("thread/read", &json!({"threadId": thread}))["thread"]["path"].clone();
    let rollout = PathBuf::from(rollout.as_str().expect("it is a file"));
    let below = rollout.strip_prefix(files.place.path("home")).expect("it is in the home");
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("it can be read");
    assert_eq!(read(copy.path().join(below)), read(rollout.clone()));
}

#[test]
fn every_mistake_is_one_line_that_says_what_is_wrong_and_what_to_do() {
    let Some(shared) = Shared::new() else { return };
    let (database, schema) = (shared.database.url(), format!("store.schema={}", shared.schema));
    // Without a mistake it works. It also waits until the database has started.
    let used = format!("{schema}_used");
    assert_eq!(shared.place("[]").run(&["store", "migrate", "-c", &used], "").code, Some(0));
    shared.sql("CREATE ROLE stranger LOGIN");
    let stranger = database.replace("postgres@", "stranger:canary@");
    let place = shared.place("[]").file("home/history.jsonl", "");
    let mistakes = [
        ("nonsense:canary".to_owned(), "store.url cannot be used: it does not start with postgres://"),
        ("postgres://u:canary@/x".to_owned(), "store.url cannot be used: it names no host"),
        ("postgres://u:canary@127.0.0.1:1/x".to_owned(), "check that it runs, and store.url"),
        ("postgres://u:canary@192.0.2.1/x?sslmode=disable".to_owned(), "is only possible on this machine"),
        (shared.database.url_of("nosuch"), "create the database first"),
        (format!("{database}?sslmode=require"), "a Unix socket has no TLS; remove sslmode"),
        (format!("{database}?options=-c%20default_transaction_read_only%3Don"), "not of a replica"),
        (stranger, "grant the user rights on the schema"),
    ];
    let check = |words: &[&str], schema: &str, url: &str, advice: &str| {
        let settings = ["-c", "store.patience_sec=1", "-c", schema];
        let mut command = place.command(&[words, &settings[..]].concat());
        let run = command.env("CODEX_STORE_URL", url).stdin(std::process::Stdio::null()).output();
        let run = run.expect("the program runs");
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(!run.status.success() && said.contains(advice), "{words:?} with {url}: {said}");
        assert!(said.lines().count() == 1 && !said.contains("canary"), "{said}");
    };
    let exec = ["exec", "--skip-git-repo-check", "hi"];
    for (url, advice) in &mistakes {
        for words in [&["store", "status"][..], &["threads", "list"], &exec] {
            check(words, &schema, url, advice);
        }
    }
    // A replica with threads can be read.
    let replica = format!("{database}?options=-c%20default_transaction_read_only%3Don");
    check(&exec, &used, &replica, "not of a replica");
    assert!(!place.path("home/sessions").exists(), "no file was made");
}
