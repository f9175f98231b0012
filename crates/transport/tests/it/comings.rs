//! Clients that connect, vanish and return, and a server that shuts down.

use std::path::{Path, PathBuf};

use codex_transport::{Address, dial};
use serde_json::{Value, json};

use crate::client::Client;
use crate::world::{ASKS, RUNS, World};

pub(crate) fn command(line: &str) -> Value {
    json!({"items": [{"call": "shell", "args": {"command": ["sh", "-c", line]}}]})
}

pub(crate) fn text(text: &str) -> Value {
    json!({"items": [{"text": text}]})
}

/// Blocks a command until the test lets it continue, so that nothing depends on timing: the command reads `gate`.
pub(crate) struct Gate(PathBuf);

impl Gate {
    pub(crate) fn new(world: &World) -> Self {
        let path = world.path("work/gate");
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
        assert!(made.success());
        Self(path)
    }

    /// Lets the command continue. Waits until the command is there.
    pub(crate) async fn open(self) {
        let open = move || std::fs::write(&self.0, "go").expect("the command reads");
        tokio::task::spawn_blocking(open).await.expect("it does not panic");
    }
}

/// A world whose model runs a gated command and then reports that it is done.
fn gated() -> (World, Gate) {
    let world = World::new(RUNS, &json!([]));
    let (gate, call) = (Gate::new(&world), command("cat gate > passed"));
    std::fs::write(world.path("home/script.json"), json!([call, text("Done.")]).to_string()).expect("it is written");
    (world, gate)
}

/// The turns of a thread with their statuses, once the last has ended.
async fn ended_turns(client: &mut Client, thread: &str) -> Vec<(String, String)> {
    let known = client.resume(thread).await;
    let is_running = known["status"]["type"] == "active";
    if is_running {
        client.notification_of(thread, "turn/completed").await;
    }
    let known = client.resume(thread).await;
    let turns = known["turns"].as_array().expect("turns").iter();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    turns.map(|turn| (word(&turn["id"]), word(&turn["status"]))).collect()
}

async fn check_vanished(url: &str) {
    let (mut world, gate) = gated();
    let address = world.listen(url).await;
    let mut client = Client::connect(&address, &World::token()).await;
    let thread = client.thread().await;
    let turn = client.say(&thread, "go").await;
    client.notification("item/started").await;
    drop(client);
    gate.open().await;
    let mut client = Client::connect(&address, &World::token()).await;
    assert_eq!(ended_turns(&mut client, &thread).await, [(turn, "completed".to_owned())]);
    assert!(world.path("work/passed").exists());
    world.end().await;
}

#[tokio::test]
async fn a_lost_unix_socket_client_finds_the_turn_completed() {
    check_vanished("unix://").await;
}

#[tokio::test]
async fn a_lost_websocket_client_finds_the_turn_completed() {
    check_vanished("ws://127.0.0.1:0").await;
}

#[tokio::test]
async fn a_lost_tcp_client_finds_the_turn_completed() {
    check_vanished("tcp://127.0.0.1:0").await;
}

#[tokio::test]
async fn a_lost_grpc_client_finds_the_turn_completed() {
    check_vanished("grpc://127.0.0.1:0").await;
}

#[tokio::test]
async fn a_question_waits_for_the_client_to_return() {
    let mut world = World::new(ASKS, &json!([command("echo ran > out"), text("Done.")]));
    let address = world.listen("unix://").await;
    let mut client = Client::connect(&address, &World::token()).await;
    let thread = client.thread().await;
    client.say(&thread, "go").await;
    client.request("item/commandExecution/requestApproval").await;
    drop(client);
    let mut client = Client::connect(&address, &World::token()).await;
    client.resume(&thread).await;
    let (id, _) = client.request("item/commandExecution/requestApproval").await;
    assert!(!world.path("work/out").exists(), "nobody has said yes yet");
    client.send(&json!({"id": id, "result": {"decision": "accept"}})).await;
    client.notification("turn/completed").await;
    assert!(world.path("work/out").exists());
    world.end().await;
}

#[tokio::test]
async fn the_end_interrupts_turns_notifies_clients_and_removes_the_socket() {
    let mut world = World::new("", &json!([{"items": [{"hang": true}]}]));
    let mut clients = Vec::new();
    let mut thread: Option<String> = None;
    let urls = ["unix://", "ws://127.0.0.1:0", "tcp://127.0.0.1:0", "grpc://127.0.0.1:0"];
    for url in urls {
        let mut client = world.client(url).await;
        if let Some(thread) = &thread {
            client.resume(thread).await;
        } else {
            let name = client.thread().await;
            client.say(&name, "go").await;
            thread = Some(name);
        }
        clients.push(client);
    }
    world.end().await;
    for (client, url) in clients.into_iter().zip(urls) {
        let rest = client.rest().await;
        let ended = rest.iter().find(|message| message["method"] == "turn/completed");
        let ended = ended.unwrap_or_else(|| panic!("{url}: the end of the turn was told"));
        assert_eq!(ended["params"]["turn"]["status"], "interrupted", "{url}");
    }
    assert!(!world.path("home/run/socket").exists());
    let rollout = rollout(&world.path("home/sessions"));
    assert!(rollout.contains("turn_aborted"), "{rollout}");
}

/// The text of the only rollout below a folder.
fn rollout(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    match paths.as_slice() {
        [path] if path.is_dir() => rollout(path),
        [path] => std::fs::read_to_string(path).expect("it can be read"),
        paths => panic!("one file was expected: {paths:?}"),
    }
}

#[tokio::test]
async fn requests_before_the_end_of_input_are_answered() {
    let mut world = World::new("", &json!([{"items": [{"text": "Hi."}]}]));
    for url in ["unix://", "tcp://127.0.0.1:0", "grpc://127.0.0.1:0"] {
        let address: Address = world.listen(url).await;
        let (input, mut output) = dial(&address, Some(&World::token())).await.expect("the server is there");
        let hello = json!({"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "t", "version": "1"}}});
        let list = json!({"id": 2, "method": "thread/list", "params": {}});
        let lines = format!("{hello}\n{list}\n");
        tokio::io::AsyncWriteExt::write_all(&mut output, lines.as_bytes()).await.expect("the server reads");
        tokio::io::AsyncWriteExt::shutdown(&mut output).await.expect("the server reads");
        let mut text = String::new();
        let mut input = input;
        tokio::io::AsyncReadExt::read_to_string(&mut input, &mut text).await.expect("it is text");
        let ids: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("every line is JSON")["id"].take())
            .collect();
        assert_eq!(ids, [json!(1), json!(2)], "{url}");
    }
    world.end().await;
}

/// Three clients on five threads, each over a different kind of socket, vanish and return at random. Every turn that
/// was started ends once, and every returning client finds it.
#[tokio::test]
async fn clients_that_come_and_go_lose_no_turn() {
    let seed = fastrand::u64(..);
    let mut chance = fastrand::Rng::with_seed(seed);
    let script = json!([{"repeat": true, "items": [{"text": "All right.", "deltas": ["All ", "right."]}]}]);
    let mut world = World::new("", &script);
    let urls = ["unix://", "ws://127.0.0.1:0", "ws://127.0.0.1:0"];
    let mut addresses = Vec::new();
    for url in urls {
        addresses.push(world.listen(url).await);
    }
    let token = World::token();
    let mut clients = Vec::new();
    for address in &addresses {
        clients.push(Client::connect(address, &token).await);
    }
    let mut threads: Vec<(String, Vec<String>)> = Vec::new();
    for place in 0..5 {
        threads.push((clients[place % 3].thread().await, Vec::new()));
    }
    for _ in 0..60 {
        let (who, (thread, started)) = (chance.usize(..3), &mut threads[chance.usize(..5)]);
        match chance.u8(..4) {
            0 => clients[who] = Client::connect(&addresses[who], &token).await,
            1 => drop(clients[who].resume(thread).await),
            _ => {
                let turn = clients[who].say(thread, "go on").await;
                if !started.contains(&turn) {
                    started.push(turn);
                }
            }
        }
    }
    for (thread, started) in &threads {
        let known = ended_turns(&mut clients[0], thread).await;
        let expected: Vec<_> = started.iter().map(|turn| (turn.clone(), "completed".to_owned())).collect();
        assert_eq!(known, expected, "seed {seed}");
    }
    world.end().await;
}
