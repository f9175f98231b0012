//! One session of the client library with servers of several releases, and a model that the test plays.
//!
//! `CODEX_TEST_PEERS` has programs of other releases, separated by colons.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codex_client::approvals::{Approvals, Decision};
use codex_client::supervisor::Launch;
use codex_client::{CallError, Client, Event, Events, Options, State, Supervisor};
use codex_testkit::FakeModel;
use serde_json::{Value, json};

use crate::program::{Place, has_sandbox};

const PATIENCE: Duration = Duration::from_secs(60);

/// A server, and what was seen of its threads.
struct Session {
    supervisor: Supervisor,
    client: Client,
    events: Events,
    state: State,
}

impl Session {
    async fn start(launch: &Launch, asked: &Arc<Mutex<Vec<String>>>) -> Self {
        let asked = Arc::clone(asked);
        let approvals = Approvals::handler(move |ask| {
            asked.lock().unwrap_or_else(PoisonError::into_inner).push(ask.method);
            std::future::ready(Decision::Allow)
        });
        let options = Options::new("releases", "1.0");
        let mut supervisor = Supervisor::start(launch.clone(), options, approvals, |_| {});
        let (client, events) = supervisor.connection().await.expect("the server starts");
        Self { supervisor, client, events, state: State::default() }
    }

    async fn open(&self, method: &str, mut params: Value, launch: &Launch) -> String {
        params["cwd"] = json!(launch.cwd);
        params["approvalPolicy"] = json!("untrusted");
        params["sandbox"] = json!("workspace-write");
        let opened = self.client.raw(method, params).await.expect("there is a thread");
        opened["thread"]["id"].as_str().expect("it has an id").to_owned()
    }

    /// Starts a turn, interrupts it if it is to wait, and returns its end and the kinds of its items.
    async fn turn(&mut self, thread: &str, text: &str) -> (String, Vec<String>) {
        let input = json!([{"type": "text", "text": text}]);
        let started = self.client.raw("turn/start", json!({"threadId": thread, "input": input})).await;
        let turn = started.expect("a turn starts")["turn"]["id"].clone();
        let mut is_waiting = text == "Wait.";
        while let Some(event) = self.events.next().await {
            self.state.apply(&event);
            let is_end = matches!(&event, Event::TurnEnded { turn: ended, .. } if *ended == turn);
            if is_waiting && matches!(event, Event::ItemCompleted { .. }) {
                is_waiting = self.interrupt(thread, &turn).await.is_err();
            }
            if is_end {
                break;
            }
        }
        let last = self.state.thread(thread).and_then(|thread| thread.turns().last()).expect("there is a turn");
        let kinds = last.items().iter().map(|item| item.kind().to_owned()).filter(|kind| kind != "reasoning");
        (last.status().to_owned(), kinds.collect())
    }

    async fn interrupt(&self, thread: &str, turn: &Value) -> Result<Value, CallError> {
        self.client.raw("turn/interrupt", json!({"threadId": thread, "turnId": turn})).await
    }
}

/// A home whose model is played.
fn configure(place: &Place, model: &FakeModel) {
    let provider = format!("name = \"played\"\nbase_url = \"{}/v1\"\nwire_api = \"responses\"\n", model.url());
    let retries = "request_max_retries = 0\nstream_max_retries = 0\n";
    let head = "model = \"mock-model\"\nmodel_provider = \"played\"\n[model_providers.played]\n";
    std::fs::write(place.path("home/config.toml"), format!("{head}{provider}{retries}")).expect("it is written");
}

/// The call that makes a file, with the tool for commands that a model was offered.
fn call(model: &FakeModel) -> Value {
    let request = model.requests().first().expect("there was a request").json();
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    let offered = |name: &str| tools.iter().any(|tool| tool["name"] == name);
    let calls = [
        ("shell", json!({"command": ["bash", "-lc", "touch made"]})),
        ("shell_command", json!({"command": "touch made"})),
        ("exec_command", json!({"cmd": "touch made"})),
    ];
    let (name, args) = calls.into_iter().find(|(name, _)| offered(name)).expect("there is a tool for commands");
    json!({"call": name, "args": args})
}

async fn session(program: &str) {
    let place = Place::new();
    let variable = |name: &str, folder: &str| (name.into(), place.path(folder).into());
    let env = vec![variable("CODEX_HOME", "home"), variable("HOME", "user"), variable("TMPDIR", "tmp")];
    let launch =
        Launch { program: program.into(), args: vec!["app-server".into()], env, cwd: Some(place.path("project")) };
    let asked = Arc::new(Mutex::new(Vec::new()));
    let said = |text: &str| json!({"items": [{"text": text}]});

    let model = FakeModel::start(&json!([said("Said.")]).to_string());
    configure(&place, &model);
    let mut first = Session::start(&launch, &asked).await;
    let thread = first.open("thread/start", json!({}), &launch).await;
    let message = ["userMessage", "agentMessage"].map(str::to_owned).to_vec();
    assert_eq!(first.turn(&thread, "Say it.").await, ("completed".to_owned(), message.clone()), "{program}");
    first.supervisor.stop().await;

    let script = json!([{"items": [call(&model)]}, said("Ran."), said("Said again."), {"items": [{"hang": true}]}]);
    let model = FakeModel::start(&script.to_string());
    configure(&place, &model);
    let mut second = Session::start(&launch, &asked).await;
    assert_eq!(second.open("thread/resume", json!({"threadId": thread}), &launch).await, thread);
    let kinds = ["userMessage", "commandExecution", "agentMessage"].map(str::to_owned).to_vec();
    assert_eq!(second.turn(&thread, "Run it.").await, ("completed".to_owned(), kinds), "{program}");
    assert!(place.path("project/made").exists(), "{program}");
    assert_eq!(second.turn(&thread, "Say it again.").await, ("completed".to_owned(), message), "{program}");
    // It may be interrupted before the model is asked, so it comes last.
    assert_eq!(second.turn(&thread, "Wait.").await.0, "interrupted", "{program}");
    second.supervisor.stop().await;
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!(asked, ["item/commandExecution/requestApproval"], "{program}");
}

#[test]
fn a_session_is_the_same_with_every_release() {
    if !has_sandbox() {
        return;
    }
    let peers = std::env::var("CODEX_TEST_PEERS").unwrap_or_default();
    let peers = peers.split(':').filter(|peer| !peer.is_empty());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    for program in std::iter::once(env!("CARGO_BIN_EXE_codex")).chain(peers) {
        let in_time = async { tokio::time::timeout(PATIENCE, session(program)).await };
        assert!(runtime.block_on(in_time).is_ok(), "{program} does not end in time");
    }
}
