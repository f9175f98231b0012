//! Threads that a host runs: starting, listing and unloading them.

use std::sync::Arc;

use codex_config::{ConfigSource, Env, Home, Overrides};
use codex_engine::{CredentialsSource, HostOptions, LocalHost};
use codex_log::TurnId;
use codex_log::settings::SettingsChange;
use codex_store::FileStore;
use codex_thread::{
    ClientAdditions, ClientProfile, ExplicitOverrides, Fault, InitialHistory, LoadedThreads, OpenQuestions,
    StartThread, StartedThread, Thread, ThreadHost,
};
use codex_wire::input::UserInput;
use codex_wire::rollout::SessionSource;
use expect_test::expect;
use serde_json::{Map, Value};
use tempfile::TempDir;

const CONFIG: &str = "model_provider = 'mine'\n[model_providers.mine]\nname = 'Mine'\nwire_api = 'scripted'\n\
                      script = 'script.json'\n";

/// A host with its own home and folder, and a scripted model.
fn host(script: &str) -> (TempDir, LocalHost) {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let root = folder.path().canonicalize().expect("it exists");
    for name in ["home", "work"] {
        std::fs::create_dir(root.join(name)).expect("a folder can be made");
    }
    std::fs::write(root.join("home/config.toml"), CONFIG).expect("it can be written");
    std::fs::write(root.join("home/script.json"), script).expect("it can be written");
    let home = Home::at(root.join("home"));
    let store = Arc::new(FileStore::of(home.path()));
    let env = Env::from_iter([("TERM", "dumb")]);
    let host = LocalHost::new(HostOptions {
        agents: None,
        servers: None,
        config: Arc::new(ConfigSource::new(home, env, Overrides::default())),
        cwd: root.join("work"),
        programs: None,
        credentials: CredentialsSource::none(),
        originator: "tests".to_owned(),
        source: SessionSource::Exec,
        recent_bytes: 0,
        store,
    });
    (folder, host)
}

fn request() -> StartThread {
    StartThread {
        cwd: None,
        overrides: Map::new(),
        base_instructions: None,
        originator: None,
        profile: ClientProfile::V0166,
        initial_history: InitialHistory::New,
        additions: ClientAdditions::default(),
    }
}

#[tokio::test]
async fn a_thread_is_loaded_from_its_start_until_it_is_unloaded() {
    let (_folder, host) = host(r#"[{"items": [{"text": "Hi."}]}]"#);
    let StartedThread { thread, mut feed, shows_raw_reasoning } = host.start(request()).await.expect("it starts");
    assert!(!shows_raw_reasoning);
    let id = thread.id();
    assert_eq!(host.get(id).map(|thread| thread.id()), Some(id));
    assert_eq!(host.loaded().iter().map(Thread::id).collect::<Vec<_>>(), [id]);
    assert!(!host.is_idle(id, OpenQuestions::Wait).await, "somebody listens");
    assert!(!host.unload(id, OpenQuestions::Wait).await, "somebody listens");
    thread.say(TurnId::new("1"), vec![UserInput::text("hi")], SettingsChange::default()).await.expect("it is open");
    while thread.running().await.expect("it is open").is_some() {
        feed.next().await.expect("the turn ends");
    }
    drop(feed);
    assert!(host.is_idle(id, OpenQuestions::Wait).await);
    assert!(host.unload(id, OpenQuestions::Wait).await);
    assert!(host.get(id).is_none() && host.loaded().is_empty());
    assert!(!host.unload(id, OpenQuestions::Wait).await, "it is gone already");
}

#[tokio::test]
async fn a_thread_continues_where_it_was_released() {
    let (_folder, host) = host("[]");
    let started = host.start(request()).await.expect("it starts");
    let released = host.release(started.thread.id()).expect("it is loaded");
    released.close().await;
    assert!(host.loaded().is_empty());
    let initial_history = InitialHistory::Resumed { thread: released.id(), explicit: ExplicitOverrides::default() };
    let again = host.start(StartThread { initial_history, ..request() }).await.expect("it starts");
    assert_eq!(again.thread.id(), released.id());
    assert!(again.thread.started().is_resumed);
    host.close().await;
    assert!(host.loaded().is_empty() && again.thread.running().await.is_err());
}

#[tokio::test]
async fn overrides_apply_and_invalid_ones_are_reported() {
    let (folder, host) = host("[]");
    let overrides = Map::from_iter([("model".to_owned(), Value::from("another"))]);
    std::fs::create_dir(folder.path().join("work/sub")).expect("a folder can be made");
    let wishes = StartThread { cwd: Some("sub".into()), overrides, ..request() };
    let started = host.start(wishes).await.expect("it starts").thread;
    assert_eq!(started.started().settings.model, "another");
    assert!(started.started().settings.cwd.ends_with("work/sub"));
    let wrong = StartThread { cwd: Some("/nowhere/at/all".into()), ..request() };
    let error = host.start(wrong).await.expect_err("there is no such folder");
    expect!["the working directory /nowhere/at/all does not exist"].assert_eq(&error.to_string());
    assert_eq!(error.fault(), Fault::Request);
    let overrides = Map::from_iter([("model_provider".to_owned(), Value::from("nobody"))]);
    let error = host.start(StartThread { overrides, ..request() }).await.expect_err("there is no such provider");
    assert!(error.to_string().starts_with("failed to load configuration: "), "{error}");
}

#[tokio::test]
async fn one_opens_a_thread_at_a_time() {
    let (_folder, host) = host("[]");
    let id = host.start(request()).await.expect("it starts").thread.id();
    let turn = host.turn_to_open(id).await;
    let waiting = tokio::spawn({
        let host = host.clone();
        async move { host.unload(id, OpenQuestions::Wait).await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished() && host.get(id).is_some());
    drop(turn);
    assert!(waiting.await.expect("it does not panic"));
}
