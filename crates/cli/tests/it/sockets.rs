//! The real server over sockets: its output, the proxy, the daemon, signals.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::chat;
use crate::program::{Place, Run};
use crate::pty::Pty;

const SCRIPTED: &[&str] = &["-c", "model_provider=scripted"];

pub(crate) fn hello(id: u32) -> Value {
    json!({"id": id, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}})
}

/// Runs `app-server` with these arguments to its end.
fn run(place: &Place, words: &[&str], input: &str) -> Run {
    place.run(&[&["app-server"], words].concat(), input)
}

#[test]
fn standard_streams_may_be_one_socket() {
    let place = Place::new();
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    ours.set_read_timeout(Some(std::time::Duration::from_secs(30))).expect("a deadline");
    let end = || std::os::fd::OwnedFd::from(theirs.try_clone().expect("a copy"));
    let mut command = place.command(&[&["app-server"], SCRIPTED].concat());
    let mut child = command.stdin(end()).stdout(end()).stderr(Stdio::null()).spawn().expect("it starts");
    drop((command, theirs));
    writeln!(ours, "{}", hello(1)).expect("it reads");
    let mut lines = BufReader::new(ours.try_clone().expect("a copy")).lines();
    let answer = lines.next().expect("an answer").expect("before the deadline");
    assert_eq!(serde_json::from_str::<Value>(&answer).expect("JSON")["id"], 1);
    ours.shutdown(std::net::Shutdown::Write).expect("the input ends");
    assert!(child.wait().expect("it ends").success());
}

/// A listening server, killed when dropped.
pub(crate) struct Server {
    child: std::process::Child,
    pub(crate) urls: Vec<String>,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Server {
    /// Starts one, and reads where it listens.
    fn start(place: &Place, urls: &[&str], words: &[&str]) -> Self {
        Self::start_as("app-server", place, urls, words)
    }

    /// Starts one with this command, and reads where it listens.
    pub(crate) fn start_as(command: &str, place: &Place, urls: &[&str], words: &[&str]) -> Self {
        let listen: Vec<&str> = urls.iter().flat_map(|url| ["--listen", url]).collect();
        let words = [&[command], SCRIPTED, words, &listen].concat();
        let mut child = place.command(&words).stdin(Stdio::null()).spawn().expect("the program starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut found = Vec::new();
        while found.len() < urls.len() {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).expect("it is text") > 0, "the server has ended");
            if let Some(url) = line.trim_end().strip_prefix("listening on ") {
                found.push(url.to_owned());
            }
        }
        Self { child, urls: found, stderr }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM, and returns the exit status and the rest of standard error.
    pub(crate) fn terminate(mut self) -> (Option<i32>, String) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("it runs");
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.stderr, &mut said).expect("it is text");
        (self.child.wait().expect("it has ended").code(), said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _: std::io::Result<()> = self.child.kill();
        let _: std::io::Result<std::process::ExitStatus> = self.child.wait();
    }
}

/// A whole turn through the proxy.
fn turn_through_proxy(place: &Place, url: &str) {
    let mut proxy = place.start(&["app-server", "proxy", "--connect", url]);
    let mut ask = |message: &Value| proxy_ask(&mut proxy, message);
    ask(&hello(1));
    let started = ask(&json!({"id": 2, "method": "thread/start", "params": {}}));
    let thread = started["result"]["thread"]["id"].as_str().expect("a name").to_owned();
    let input = json!([{"type": "text", "text": "hello"}]);
    ask(&json!({"id": 3, "method": "turn/start", "params": {"threadId": thread, "input": input}}));
    loop {
        let message = proxy.message();
        if message["method"] == "turn/completed" {
            assert_eq!(message["params"]["turn"]["status"], "completed", "{url}");
            break;
        }
    }
    let done = proxy.finish();
    assert_eq!(done.code, Some(0), "{url}: {}", done.stderr);
}

pub(crate) fn proxy_ask(proxy: &mut crate::program::Running, message: &Value) -> Value {
    proxy.send(&format!("{message}\n"));
    loop {
        let answer = proxy.message();
        if answer["id"] == message["id"] && answer.get("method").is_none() {
            return answer;
        }
    }
}

#[test]
fn every_transport_serves_a_turn_through_the_proxy_and_sigterm_ends_them_all() {
    let place = Place::new();
    let urls = ["unix://", "ws://127.0.0.1:0", "tcp://127.0.0.1:0", "grpc://127.0.0.1:0"];
    let server = Server::start(&place, &urls, &[]);
    let token = place.path("home/run/app-server.token");
    assert_eq!(std::fs::metadata(&token).unwrap().permissions().mode() & 0o777, 0o600);
    for url in server.urls.clone() {
        assert!(!url.ends_with(":0"), "the real port is told: {url}");
        turn_through_proxy(&place, &url);
    }
    turn_through_proxy(&place, "unix://");
    let secret = std::fs::read_to_string(&token).unwrap();
    let (code, said) = server.terminate();
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains(secret.trim()), "the token is told to nobody");
    assert!(!place.path("home/run/app-server.sock").exists());
}

#[test]
fn a_proxy_reports_a_missing_server_and_a_wrong_token() {
    let place = Place::new().variable("CODEX_APP_SERVER_TOKEN", "the-right-token-0123456789");
    let lost = run(&place, &["proxy"], "");
    assert_eq!(lost.code, Some(1));
    assert!(lost.stderr.contains("could not connect to unix://"), "{}", lost.stderr);
    assert!(lost.stderr.contains("\nhint: start a server there"), "{}", lost.stderr);
    let server = Server::start(&place, &["ws://127.0.0.1:0"], &[]);
    assert!(!place.path("home/run/app-server.token").exists(), "the variable is enough");
    std::fs::write(place.path("token"), "the-wrong-token-0123456789").unwrap();
    std::fs::set_permissions(place.path("token"), PermissionsExt::from_mode(0o600)).unwrap();
    let file = place.path("token");
    let wrong = ["proxy", "--connect", &server.urls[0], "--token-file", file.to_str().unwrap()];
    let wrong = run(&place, &wrong, "");
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.stderr.contains("did not prove that it knows the token"), "{}", wrong.stderr);
    assert!(!wrong.stderr.contains("the-wrong-token"), "{}", wrong.stderr);
}

#[test]
fn addresses_that_should_not_be_served_are_refused() {
    let place = Place::new();
    let file = place.path("file");
    std::fs::write(&file, "precious").unwrap();
    let occupied = format!("unix://{}", file.display());
    for (url, what) in [
        ("ws://0.0.0.0:0", "hint: nothing is encrypted"),
        ("tcp://[::]:0", "can be reached from other machines"),
        (&occupied, "exists already"),
        ("http://127.0.0.1:1", "is not an address"),
    ] {
        let refused = run(&place, &["--listen", url], "");
        assert_ne!(refused.code, Some(0), "{url}");
        assert!(refused.stderr.contains(what), "{url}: {}", refused.stderr);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
}

#[test]
fn standard_input_can_be_one_of_many_and_its_end_ends_the_server() {
    let place = Place::new();
    let socket = place.path("tmp/s");
    let url = format!("unix://{}", socket.display());
    let mut server = place.start(&[&["app-server"], SCRIPTED, &["--listen", "stdio://", "--listen", &url]].concat());
    let started = {
        proxy_ask(&mut server, &hello(1));
        proxy_ask(&mut server, &json!({"id": 2, "method": "thread/start", "params": {}}))
    };
    let other = exchange(&socket, &[hello(1), json!({"id": 2, "method": "thread/loaded/list", "params": {}})]);
    assert_eq!(other["result"]["data"], json!([started["result"]["thread"]["id"]]));
    assert_eq!(server.finish().code, Some(0));
    assert!(!socket.exists());
}

/// Sends requests, and returns the response to the last.
fn exchange(socket: &Path, requests: &[Value]) -> Value {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    for request in requests {
        writeln!(stream, "{request}").expect("it reads");
    }
    let last = &requests.last().expect("there is one")["id"];
    let answers = BufReader::new(stream).lines().map(|line| {
        let line = line.expect("it is text");
        serde_json::from_str::<Value>(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    });
    answers.into_iter().find(|answer| answer["id"] == *last).expect("it is answered")
}

/// Stops the daemon however the test ends.
struct Stopped<'a>(&'a Place);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        run(self.0, &["daemon", "stop"], "");
    }
}

fn daemon(place: &Place, word: &str) -> (Option<i32>, Value) {
    let done = run(place, &["daemon", word, "--json", "-c", "model_provider=scripted"], "");
    let state =
        serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", done.stdout, done.stderr));
    (done.code, state)
}

#[test]
fn a_daemon_is_started_once_answers_and_is_stopped() {
    let place = Place::new();
    let (code, state) = daemon(&place, "status");
    assert_eq!((code, &state["running"]), (Some(1), &json!(false)));
    let _stopped = Stopped(&place);
    let (code, started) = daemon(&place, "start");
    assert_eq!((code, &started["running"], &started["started"]), (Some(0), &json!(true), &json!(true)));
    let (code, again) = daemon(&place, "start");
    assert_eq!((code, &again["pid"], &again["started"]), (Some(0), &started["pid"], &json!(false)));
    let (code, state) = daemon(&place, "status");
    assert_eq!((code, &state["pid"]), (Some(0), &started["pid"]));
    assert!(state["userAgent"].as_str().is_some_and(|agent| agent.starts_with("codex")), "{state}");
    let second = run(&place, &["--listen", "unix://"], "");
    assert_eq!(second.code, Some(1));
    assert!(second.stderr.contains("listens on"), "{}", second.stderr);
    turn_through_proxy(&place, "unix://");
    let (code, stopped) = daemon(&place, "stop");
    assert_eq!((code, &stopped["stopped"], &stopped["forced"]), (Some(0), &json!(true), &json!(false)));
    assert!(!place.path("home/run/app-server.sock").exists());
    assert_eq!(daemon(&place, "stop").1["stopped"], false);
    assert_eq!(run(&place, &["daemon", "status"], "").stdout, "not running\n");
    let log = std::fs::read_to_string(place.path("home/run/app-server.log")).unwrap();
    assert!(log.starts_with("listening on unix://"), "{log}");
}

#[test]
fn a_process_that_a_lock_names_but_that_does_not_listen_is_not_stopped() {
    let place = Place::new();
    // It waits for its input, which stays open.
    let mut innocent = std::process::Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    std::fs::create_dir_all(place.path("home/run")).unwrap();
    let path = place.path("home/run/app-server.sock.lock");
    std::fs::write(&path, format!("{}\n", innocent.id())).unwrap();
    let lock = std::fs::File::open(&path).unwrap();
    lock.lock().unwrap();
    let stopped = run(&place, &["daemon", "stop"], "");
    assert_eq!(stopped.code, Some(1), "{}", stopped.stderr);
    assert!(stopped.stderr.contains("does not listen on"), "{}", stopped.stderr);
    assert!(innocent.try_wait().unwrap().is_none(), "it goes on");
    innocent.kill().unwrap();
    innocent.wait().unwrap();
}

#[test]
fn a_daemon_that_was_killed_leaves_nothing_in_the_way() {
    let place = Place::new();
    let _stopped = Stopped(&place);
    let (_, first) = daemon(&place, "start");
    let pid = i32::try_from(first["pid"].as_i64().expect("a number")).expect("a process");
    // It leads its own session, so closing a terminal does not end it.
    let process = Pid::from_raw(pid).expect("a process");
    assert_eq!(rustix::process::getsid(Some(process)).expect("it runs"), process);
    kill_process(process, Signal::KILL).expect("it runs");
    let (code, second) = loop {
        // The system takes a moment to release the resources of the process.
        let (code, second) = daemon(&place, "start");
        if second["started"] == true {
            break (code, second);
        }
    };
    assert_eq!(code, Some(0));
    assert_ne!(first["pid"], second["pid"]);
    turn_through_proxy(&place, "unix://");
}

#[test]
fn a_daemon_that_cannot_start_reports_the_reason() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("home/run/app-server.sock")).unwrap();
    let failed = run(&place, &["daemon", "start"], "");
    assert_eq!(failed.code, Some(1));
    assert!(failed.stderr.contains("exists already") && failed.stderr.contains("app-server.log"), "{}", failed.stderr);
}

#[test]
fn a_thread_that_the_daemon_has_open_is_joined() {
    let script = json!([{"items": [{"text": "First."}]}, {"items": [{"text": "Ha", "done": false}, {"hang": true}]},
        {"items": [{"text": "Third."}]}, {"items": [{"text": "Fourth."}]}]);
    let place = chat::place("", &script);
    let _stopped = Stopped(&place);
    let (code, state) = {
        let done = run(&place, &["daemon", "start", "--json"], "");
        (done.code, serde_json::from_str::<Value>(&done.stdout).expect("JSON"))
    };
    assert_eq!(code, Some(0), "{state}");
    let mut proxy = place.start(&["app-server", "proxy"]);
    proxy_ask(&mut proxy, &hello(1));
    let started = proxy_ask(&mut proxy, &json!({"id": 2, "method": "thread/start", "params": {}}));
    let thread = started["result"]["thread"]["id"].as_str().expect("a name").to_owned();
    let say = |id: u32, text: &str| {
        let input = json!([{"type": "text", "text": text}]);
        json!({"id": id, "method": "turn/start", "params": {"threadId": thread, "input": input}})
    };
    proxy_ask(&mut proxy, &say(3, "one"));
    while proxy.message()["method"] != "turn/completed" {}
    proxy_ask(&mut proxy, &say(4, "two"));
    while proxy.message()["method"] != "item/agentMessage/delta" {}
    // A thread with a running turn that is not joined is refused with the process id of the daemon.
    let refused = place.run(&["exec", "--skip-git-repo-check", "resume", &thread, "more"], "");
    let told = format!("error: This thread is open in another Codex (pid {}). Close it, or", state["pid"]);
    assert!(refused.stderr.starts_with(&told), "{}", refused.stderr);
    // The running turn can be seen, stopped and followed by another, which the first client receives.
    let mut chat = Pty::start(&place, &["resume", &thread]);
    chat.until("First.");
    chat.until("background server");
    chat.send("\x03");
    chat.until("nterrupted");
    chat.send("three\r");
    chat.until("Third.");
    chat.until("tokens: ");
    chat.send("\x04");
    let ended = chat.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    while proxy.message()["params"]["item"]["text"] != "Third." {}
    // The daemon keeps running, gives the idle thread away, and takes it back.
    let resumed = place.run(&["exec", "--skip-git-repo-check", "resume", &thread, "more"], "");
    assert_eq!((resumed.code, resumed.stdout.as_str()), (Some(0), "First.\n"), "{}", resumed.stderr);
    proxy_ask(&mut proxy, &say(5, "five"));
    while proxy.message()["params"]["item"]["text"] != "Fourth." {}
}

#[test]
fn a_chat_with_a_server_elsewhere_uses_nothing_of_this_machine() {
    let place = chat::place(
        "approval_policy = 'untrusted'",
        &json!([chat::asked_about("touch canary"), {"items": [{"text": "Done there."}]}]),
    );
    let socket = place.path("server.sock");
    let server = Server::start(&place, &[&format!("unix://{}", socket.display()), "ws://127.0.0.1:0"], &[]);
    // The client has neither a provider nor a key of its own.
    let client = Place::new().variable("TERM", "xterm-256color").variable("PATH", "/usr/bin:/bin");
    let token = client.path("token");
    std::fs::copy(place.path("home/run/app-server.token"), &token).expect("the server has made one");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    let token = token.to_string_lossy().into_owned();
    let mut chat = Pty::start(&client, &["--connect", &server.urls[1], "--token-file", &token, "do it"]);
    chat.until("| sh -c 'touch canary'");
    chat.until("[y] yes");
    chat.send("y");
    chat.until("Done there.");
    chat.send("\x04");
    let ended = chat.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    assert!(place.path("project/canary").exists(), "the command runs where the server is");
    let id = ended.text.rsplit("codex resume ").next().expect("it says how to go on").trim().to_owned();
    let mut chat = Pty::start(&client, &["resume", "--connect", &server.urls[0], &id]);
    chat.until("Done there.");
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
    let refused = Pty::start(&client, &["--connect", &server.urls[1]]).wait();
    assert_eq!(refused.code, Some(1), "without a token there is no connection: {}", refused.text);
}

#[test]
fn a_request_is_on_every_screen_and_answered_once() {
    let script =
        json!([{"items": [{"text": "First."}]}, chat::asked_about("echo x >> canary"), {"items": [{"text": "Done."}]}]);
    let place = chat::full_place("approval_policy = 'untrusted'", &script);
    let _stopped = Stopped(&place);
    assert_eq!(run(&place, &["daemon", "start", "--json"], "").code, Some(0));
    let mut proxy = place.start(&["app-server", "proxy"]);
    proxy_ask(&mut proxy, &hello(1));
    let params = json!({"cwd": place.path("project")});
    let started = proxy_ask(&mut proxy, &json!({"id": 2, "method": "thread/start", "params": params}));
    let thread = started["result"]["thread"]["id"].as_str().expect("a name").to_owned();
    let input = json!([{"type": "text", "text": "one"}]);
    proxy_ask(&mut proxy, &json!({"id": 3, "method": "turn/start", "params": {"threadId": thread, "input": input}}));
    while proxy.message()["method"] != "turn/completed" {}
    let mut screens = [0, 1].map(|_| Pty::start(&place, &["resume", &thread]));
    for screen in &mut screens {
        screen.until("First.");
    }
    screens[0].send("do it\r");
    for screen in &mut screens {
        screen.until("| sh -c 'echo x >> canary'");
        screen.until("[y] yes");
    }
    screens[1].send("y");
    for screen in &mut screens {
        screen.until("Done.");
    }
    // The key is text on the screen whose request was answered by the other.
    screens[0].send("yes");
    screens[0].until("> yes");
    for screen in &mut screens {
        screen.send("\x15\x04");
        assert_eq!(screen.wait().code, Some(0));
    }
    assert_eq!(std::fs::read_to_string(place.path("project/canary")).expect("it ran"), "x\n");
}
