//! The program, driven by the client library.

use std::path::Path;

use codex_client::approvals::Approvals;
use codex_client::replay::{Replay, ReplayError, Speed};
use codex_client::supervisor::Launch;
use codex_client::{Options, State, Supervisor, markdown, router};
use serde_json::json;

use crate::exec::{exec, scripted};
use crate::program::Place;

const WORK: &str = r#"[
    {"items": [{"reasoning": ["**Look** around"]}, {"call": "shell", "args": {"command": ["bash", "-lc", "echo one; echo two; exit 3"]}}]},
    {"items": [{"custom": "apply_patch", "input": "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\n"}]},
    {"items": [{"call": "update_plan", "args": {"plan": [{"step": "all", "status": "completed"}]}}]},
    {"items": [{"text": "It is *done*."}]}]"#;

/// The program in the folders of a place.
fn launch(place: &Place, args: &[&str]) -> Launch {
    let variable = |name: &str, folder: &str| (name.into(), place.path(folder).into());
    Launch {
        program: env!("CARGO_BIN_EXE_codex").into(),
        args: args.iter().map(Into::into).collect(),
        env: vec![variable("CODEX_HOME", "home"), variable("HOME", "user"), variable("TMPDIR", "tmp")],
        cwd: Some(place.path("project")),
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts").block_on(future)
}

#[test]
fn the_export_of_the_library_is_that_of_the_program() {
    let place = scripted(WORK);
    let ran = exec(&place, &["--json", "--full-auto", "do it"], "");
    let id = ran.lines()[0]["thread_id"].as_str().expect("it has an id").to_owned();
    let exported = place.run(&["threads", "export", &id], "").stdout;
    for part in [
        "## User\n\ndo it",
        "> **Look** around",
        "(exit code 3)",
        "one\ntwo\n",
        "add `",
        "## Assistant\n\nIt is *done*.",
    ] {
        assert!(exported.contains(part), "{part}\n\n{exported}");
    }
    let (read, replayed) = run(async {
        let options = Options::new("test", "1.0");
        let mut supervisor = Supervisor::start(launch(&place, &["app-server"]), options, Approvals::deny_all(), |_| {});
        let (client, _events) = supervisor.connection().await.expect("the server starts");
        let answer =
            client.raw("thread/read", json!({"threadId": id, "includeTurns": true})).await.expect("it is read");
        supervisor.stop().await;
        let mut read = State::default();
        read.apply(&router::response(&answer).expect("it is a thread"));
        let replay = Replay::start(&launch(&place, &[]), Path::new(&id), Speed::Instant).expect("a replay starts");
        (read, replay.state().await.expect("it ends"))
    });
    for state in [read, replayed] {
        assert_eq!(state.thread(&id).map(markdown::thread), Some(exported.clone()));
    }
}

#[test]
fn a_replay_of_nothing_says_why() {
    let place = scripted("[]");
    let error = run(async {
        let replay = Replay::start(&launch(&place, &[]), Path::new("nothing.jsonl"), Speed::Instant);
        replay.expect("the program starts").state().await.expect_err("there is no such thread")
    });
    let ReplayError::Failed { why, .. } = error else { panic!("{error}") };
    assert!(why.contains("nothing.jsonl"), "{why}");
}
