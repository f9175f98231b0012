//! The program, driven by the client library.

use std::path::Path;

use codex_client::approvals::Approvals;
use codex_client::replay::{Replay, ReplayError, Speed};
use codex_client::supervisor::Launch;
use codex_client::{Options, State, Supervisor, markdown, router};
use expect_test::expect_file;
use serde_json::{Value, json};

use crate::exec::{exec, scripted};
use crate::program::Place;

const WORK: &str = r#"[
    {"items": [{"reasoning": ["**Look** around"]}, {"call": "shell", "args": {"command": ["bash", "-lc", "echo one; echo two; exit 3"]}}]},
    {"items": [{"custom": "apply_patch", "input": "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\n"}]},
    {"items": [{"call": "update_plan", "args": {"plan": [{"step": "all", "status": "completed"}]}}]},
    {"items": [{"text": "It is *done*."}]}]"#;

/// The program in the folders of a place.
pub(crate) fn launch(place: &Place, args: &[&str]) -> Launch {
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
    for state in [read(&place, &id), replayed(&place, &id)] {
        assert_eq!(state.thread(&id).map(markdown::thread), Some(exported.clone()));
    }
}

/// A thread as the server reads it.
fn read(place: &Place, id: &str) -> State {
    run(async {
        let options = Options::new("test", "1.0");
        let mut supervisor = Supervisor::start(launch(place, &["app-server"]), options, Approvals::deny_all(), |_| {});
        let (client, _events) = supervisor.connection().await.expect("the server starts");
        let answer =
            client.raw("thread/read", json!({"threadId": id, "includeTurns": true})).await.expect("it is read");
        supervisor.stop().await;
        let mut read = State::default();
        read.apply(&router::response(&answer).expect("it is a thread"));
        read
    })
}

/// A thread as the program replays it.
fn replayed(place: &Place, id: &str) -> State {
    run(async {
        let replay = Replay::start(&launch(place, &[]), Path::new(id), Speed::Instant).expect("a replay starts");
        replay.state().await.expect("it ends")
    })
}

/// Threads that other releases have recorded, as the program and the library export them.
#[test]
fn recorded_threads_of_other_releases_are_exported() {
    for (release, expected) in [
        ("0.42", expect_file!["exports/0.42.md"]),
        ("0.77", expect_file!["exports/0.77.md"]),
        ("0.166", expect_file!["exports/0.166.md"]),
        ("0.166-child-agent", expect_file!["exports/0.166-child-agent.md"]),
    ] {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/samples");
        let rollout = std::fs::read_to_string(samples.join(format!("rollout-{release}.jsonl"))).expect("it is there");
        let first: Value = serde_json::from_str(rollout.lines().next().expect("it has lines")).expect("JSON");
        let id = first["payload"]["id"].as_str().expect("it has an id").to_owned();
        let place = Place::new();
        let folder = place.path("home/sessions/2026/11/15");
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let name = format!("rollout-2026-11-15T08-00-00-{id}.jsonl");
        std::fs::write(folder.join(name), rollout).expect("it can be written");
        let exported = place.run(&["threads", "export", &id], "").stdout;
        expected.assert_eq(&exported);
        // A server names its own provider for a thread that names none.
        let known =
            |text: &str| text.lines().filter(|line| !line.starts_with("- provider")).collect::<Vec<_>>().join("\n");
        let state = read(&place, &id);
        let library = state.thread(&id).map(markdown::thread).expect("it is there");
        assert_eq!(known(&library), known(&exported), "{release}");
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
